-- truncate empties a space and keeps its indexes, its format and its sequence
-- engines: memtx, vinyl

s = box.schema.space.create('t', {format = {{'id', 'unsigned'}, {'name', 'string'}}})

_ = s:create_index('primary', {sequence = true})

_ = s:create_index('name', {parts = {'name'}, unique = false})

for i = 1, 5 do s:insert{nil, 'n' .. i} end

s:len()

s:truncate()

s:len()

s:select()

s.index.name:select()

s:bsize()

s:insert{nil, 'after'}

s:insert{'x', 'y'}

s:truncate()

s:truncate()

s:count()

-- truncation is part of a transaction

_ = s:insert{1, 'kept'}

box.begin() s:truncate() box.rollback()

s:select()

box.begin() s:truncate() s:insert{2, 'new'} box.commit()

s:select()

box.space._truncate:get(s.id) ~= nil
