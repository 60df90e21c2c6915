-- what before_replace triggers make of a row is what all indexes have
-- engines: memtx, vinyl

s = box.schema.space.create('t')

_ = s:create_index('primary')

_ = s:create_index('name', {parts = {2, 'string'}})

_ = s:create_index('value', {unique = false, parts = {3, 'unsigned'}})

for i = 1, 4 do s:insert{i, 'n' .. i, i * 10} end

-- nothing returned: the statement goes on as if there were no trigger

f = s:before_replace(function() end)

_ = s:replace{1, 'one', 11}

_ = s:update(2, {{'=', 2, 'two'}, {'=', 3, 22}})

s:upsert({3, 'x', 0}, {{'=', 2, 'three'}, {'=', 3, 33}})

_ = s:delete(4)

_ = s:insert{5, 'five', 55}

s:select()

s.index.name:select()

s.index.value:select()

-- another row instead

f = s:before_replace(function(old, new) return new and new:update{{'=', 2, 'other' .. new[1]}, {'+', 3, 100}} end, f)

_ = s:replace{1, 'uno', 11}

_ = s:update(2, {{'=', 2, 'due'}})

s.index.name:select()

s.index.value:select()

s.index.name:get('two')

-- a delete that becomes a change, a change that becomes a delete

f = s:before_replace(function(old, new) return new == nil and old:update{{'=', 3, 0}} or nil end, f)

_ = s:delete(3)

_ = s:replace{5, 'cinque', 5}

s:select()

s.index.name:select()

s.index.value:select()

-- the old row kept

f = s:before_replace(function(old, new) return old end, f)

_ = s:delete(1)

_ = s:replace{1, 'again', 1}

s.index.name:select()

s.index.value:select()

-- a trigger that changes the row itself

f = s:before_replace(function(old, new) if new ~= nil and new[3] == 1 then s:replace{new[1], 'meanwhile', 2} end end, f)

_ = s:replace{1, 'then', 1}

s:select()

s.index.name:select()

s.index.value:select()

_ = s:before_replace(nil, f)

for _, row in ipairs(s:select()) do s:delete(row[1]) end

s.index.name:select()

s.index.value:select()
