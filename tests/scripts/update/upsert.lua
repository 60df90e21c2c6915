-- upsert inserts, or updates and swallows the faults that depend on the row
-- engines: memtx, vinyl

s = box.schema.space.create('t')

_ = s:create_index('primary')

s:upsert({1, 1}, {{'+', 2, 1}})

s:get(1)

s:upsert({1, 1}, {{'+', 2, 1}})

s:get(1)

s:upsert({1, 100}, {{'=', 3, 'new field'}, {'+', 2, 10}})

s:get(1)

s:upsert({1}, {{'+', 3, 1}})

s:get(1)

s:upsert({1}, {{'+', 9, 1}})

s:get(1)

s:upsert({1}, {{'=', 1, 2}})

s:get(1)

s:upsert({1}, {{'+', 9, 1}, {'=', 2, 'still done'}})

s:get(1)

s:upsert({1}, {})

s:upsert({5}, {})

s:select()

s:upsert({1, 2}, {{'%', 2, 1}})

s:upsert({'x'}, {{'+', 2, 1}})

s:upsert({}, {{'+', 2, 1}})

s:upsert({6, 6}, {{'+', 'name', 1}})

s:upsert({1}, {{'=', 'name', 1}})

-- uniqueness of another index is not swallowed

_ = s:create_index('second', {parts = {{2, 'scalar', is_nullable = true}}})

_ = s:replace{7, 'seven'}

_ = s:replace{8, 'eight'}

s:upsert({7}, {{'=', 2, 'eight'}})

s:upsert({9, 'eight'}, {})

s:get(7)

s:get(9)
