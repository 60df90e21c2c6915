-- what replace, delete and upsert answer: without a secondary index they do not look at what is there
-- engines: vinyl

b = box.schema.space.create('blind')

_ = b:create_index('primary')

b:replace{1, 'a'}

b:replace{1, 'b'}

b:put{1, 'c'}

b:delete(1)

b:delete(1)

b:get(1)

b:upsert({1, 'd'}, {{'=', 2, 'e'}})

b:upsert({1, 'd'}, {{'=', 2, 'e'}})

b:get(1)

b:insert{1, 'f'}

b:update(1, {{'=', 2, 'g'}})

b:update(2, {{'=', 2, 'g'}})

-- with one, they do

s = box.schema.space.create('seeing')

_ = s:create_index('primary')

_ = s:create_index('second', {parts = {2, 'string'}, unique = false})

s:replace{1, 'a'}

s:delete(1)

s:delete(1)

s:upsert({1, 'd'}, {{'=', 2, 'e'}})

s:upsert({1, 'd'}, {{'=', 2, 'e'}})

s.index.second:select()

-- by a secondary index the row has to be found

u = box.schema.space.create('unique')

_ = u:create_index('primary')

_ = u:create_index('name', {parts = {2, 'string'}})

u:replace{1, 'a'}

u.index.name:delete('a')

u.index.name:delete('a')

-- a trigger wants to see the old row, so it is read

b:truncate()

seen = {}

f = b:on_replace(function(old, new) table.insert(seen, {old or box.NULL, new or box.NULL}) end)

b:replace{1, 'a'}

b:replace{1, 'b'}

b:delete(1)

b:upsert({2, 1}, {{'+', 2, 1}})

b:upsert({2, 1}, {{'+', 2, 1}})

seen

-- inside a transaction

_ = b:on_replace(nil, f)

box.begin() b:replace{3, 1} x = b:delete(3) b:upsert({3, 5}, {{'+', 2, 1}}) y = b:get(3) box.commit()

x

y
