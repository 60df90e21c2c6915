-- before_replace triggers may change the row, or cancel the change
-- engines: memtx, vinyl

s = box.schema.space.create('t')

_ = s:create_index('primary')

_ = s:create_index('name', {parts = {{2, 'string', is_nullable = true}}})

f = s:before_replace(function(old, new) if new ~= nil then return new:update{{'!', 3, 'stamp'}} end end)

s:insert{1, 'a'}

s:get(1)

s:replace{1, 'b'}

s:update(1, {{'=', 2, 'c'}})

s:delete(1)

s:before_replace()[1] == f

-- returning the old row cancels

f = s:before_replace(function(old, new) return old end, f)

s:insert{2, 'x'}

s:get(2)

s:select()

f = s:before_replace(function(old, new) return new end, f)

_ = s:insert{3, 'three'}

f = s:before_replace(function(old, new) return old end, f)

s:delete(3)

s:replace{3, 'changed'}

s:update(3, {{'=', 2, 'changed'}})

s:upsert({3, 'changed'}, {{'=', 2, 'changed'}})

s:get(3)

-- returning nil deletes or prevents; returning nothing lets it pass

f = s:before_replace(function(old, new) return nil end, f)

s:insert{4, 'four'}

s:get(4)

s:replace{3, 'gone'}

s:get(3)

f = s:before_replace(function(old, new) end, f)

s:insert{5, 'five'}

-- a table serves as a row; another key is refused; the format still counts

f = s:before_replace(function(old, new) return {new[1], 'from table'} end, f)

s:insert{6, 'six'}

f = s:before_replace(function(old, new) return box.tuple.new{new[1] + 100, 'moved'} end, f)

s:insert{7, 'seven'}

f = s:before_replace(function(old, new) return box.tuple.new{new[1], 55} end, f)

s:insert{8, 'eight'}

f = s:before_replace(function(old, new) return 5 end, f)

s:insert{9, 'nine'}

f = s:before_replace(function(old, new) error('refused') end, f)

s:insert{10, 'ten'}

f = s:before_replace(function(old, new) return box.tuple.new{new[1], 'five'} end, f)

s:insert{11, 'eleven'}

s:before_replace(nil, f)

s:select()

-- triggers run from the newest on, each on what the last returned; on_replace sees the end

log = {}

_ = s:before_replace(function(old, new, space, op) table.insert(log, {1, new[2], space, op}) return new:update{{'=', 2, new[2] .. '1'}} end)

_ = s:before_replace(function(old, new, space, op) table.insert(log, {2, new[2], space, op}) return new:update{{'=', 2, new[2] .. '2'}} end)

_ = s:on_replace(function(old, new, space, op) table.insert(log, {3, new[2], space, op}) end)

s:replace{20, 'x'}

s:upsert({20}, {{'=', 2, 'y'}})

s:upsert({21, 'z'}, {{'=', 2, 'y'}})

log

s:before_replace('x')
