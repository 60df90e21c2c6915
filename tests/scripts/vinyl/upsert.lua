-- upsert with and without secondary indexes, before and after rows go to disk
-- engines: vinyl

s = box.schema.space.create('plain')

_ = s:create_index('primary')

for i = 1, 3 do s:upsert({1, 10, 'new'}, {{'+', 2, i}}) end

s:get(1)

box.snapshot()

s:upsert({1, 10, 'new'}, {{'+', 2, 100}})

s:get(1)

box.snapshot()

s:get(1)

s:upsert({1, 10}, {{'=', 3, 'changed'}, {'!', 4, true}})

s:upsert({2, 20}, {{'+', 2, 5}})

s:select()

-- after a delete it is the row, not the operations

s:delete(1)

s:upsert({1, 'born'}, {{'+', 2, 1}})

s:get(1)

-- operations that do not fit the row change nothing, and the others of the chain do

s:replace{5, 1, 'x'}

s:upsert({5, 0}, {{'+', 2, 1}})

s:upsert({5, 0}, {{'+', 3, 1}})

s:upsert({5, 0}, {{'+', 2, 1}})

s:upsert({5, 0}, {{'=', 9, 1}})

s:upsert({5, 0}, {{'+', 2, 1}, {'=', 3, 'y'}})

s:get(5)

box.snapshot()

s:get(5)

-- the primary key stays what it is

s:upsert({5, 0}, {{'=', 1, 6}})

s:upsert({5, 0}, {{'+', 1, 1}})

s:select({5}, {iterator = 'GE'})

-- what the wire checks

s:upsert({'text'}, {})

s:upsert({7}, {{'?', 2, 1}})

s:upsert({7}, {{'+', 2}})

s:upsert({7}, {{'+', 2, 'text'}})

s:upsert({7}, {{'=', 0, 1}})

s:upsert({7})

s:upsert({7, 1}, {})

s:upsert({7, 1}, {})

s:get(7)

-- chains that iterators meet

for i = 10, 13 do s:upsert({i, 0}, {{'+', 2, 1}}) s:upsert({i, 0}, {{'+', 2, 1}}) end

s:delete(11)

s:select({9}, {iterator = 'GE'})

s:select({14}, {iterator = 'LT', limit = 2})

s:count()

-- with secondary indexes it reads, and the indexes follow

t = box.schema.space.create('indexed')

_ = t:create_index('primary')

_ = t:create_index('value', {unique = false, parts = {2, 'unsigned'}})

_ = t:create_index('name', {parts = {{3, 'string', is_nullable = true}}})

t:upsert({1, 10, 'one'}, {{'+', 2, 1}})

t:upsert({1, 10, 'one'}, {{'+', 2, 1}})

t.index.value:select()

t:upsert({2, 20, 'one'}, {{'+', 2, 1}})

t:upsert({2, 20, 'two'}, {{'+', 2, 1}})

t:upsert({2, 20, 'two'}, {{'=', 3, 'one'}})

t:upsert({2, 20, 'two'}, {{'=', 2, 'text'}})

t:upsert({2, 20, 'two'}, {{'-', 2, 100}})

t.index.name:select()

t:select()

box.snapshot()

t:upsert({2, 20, 'two'}, {{'=', 3, box.NULL}})

t.index.name:get('two')

t:select()
