-- the operations =, ! and # set, insert and remove fields
-- engines: memtx, vinyl

s = box.schema.space.create('t')

_ = s:create_index('primary')

s:insert{1, 'a', 'b', 'c'}

s:update(1, {{'=', 2, 'x'}})

s:update(1, {{'=', 5, 'appended'}})

s:update(1, {{'=', 7, 'too far'}})

s:update(1, {{'=', -1, 'last'}})

s:update(1, {{'=', -9, 'x'}})

s:update(1, {{'=', 0, 'x'}})

s:update(1, {{'!', 2, 'new'}})

s:update(1, {{'!', -1, 'end'}})

s:update(1, {{'!', 8, 'append'}})

s:update(1, {{'!', 99, 'x'}})

s:update(1, {{'#', 2, 1}})

s:update(1, {{'#', 3, 2}})

s:update(1, {{'#', -1, 1}})

s:update(1, {{'#', 3, 100}})

s:update(1, {{'#', 2, 0}})

s:update(1, {{'#', 9, 1}})

s:update(1, {{'#', 2, -1}})

s:update(1, {{'#', 2, 'one'}})

s:update(1, {{'#', 1, 1}})

s:replace{1, 'a', 'b', 'c', 'd'}

s:update(1, {{'#', 2, 1}, {'=', 2, 'x'}})

s:update(1, {{'!', 2, 'i'}, {'!', 2, 'j'}, {'=', 4, 'k'}})

s:update(1, {{'=', 2, box.NULL}, {'=', 3, {1, 2}}, {'=', 4, {a = 1}}})

s:update(1, {{'=', 2, 1}, {'#', 2, 1}})

s:update(1, {})

s:update(1, {{'=', 1, 5}})

s:update(1, {{'!', 1, 5}})

s:update(1, {{'=', 'name', 5}})

s:update(1, {{'=', {}, 5}})

s:update(1, {{'=', true, 5}})

s:update(1, {{'=', 2.5, 5}})

s:update(1, {{'+', 2, 1, 3}})

-- many operations at once

ops = {}

for i = 1, 30 do table.insert(ops, {'!', 2, i}) end

s:update(1, ops)

for i = 1, 4001 do ops[i] = {'=', 2, i} end

s:update(1, ops)
