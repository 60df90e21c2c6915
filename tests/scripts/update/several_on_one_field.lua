-- several operations on one field, paths of one step, tuples as operations
-- engines: memtx, vinyl

s = box.schema.space.create('t')

_ = s:create_index('primary')

s:replace{1, 10, {5, 6, {a = 1}}}

s:update(1, {{'+', 2, 1}, {'=', 2, 5}})

s:update(1, {{'!', 2, 1}, {'+', 2, 5}})

s:update(1, {{'=', 2, 1}, {'+', 2, 5}})

s:update(1, {{'+', 2, 1}, {'+', 2, 5}})

s:update(1, {{'#', 2, 1}, {'-', 2, 5}})

s:update(1, {{'=', 4, 1}, {'+', 4, 5}})

s:update(1, {{'#', 4, 1}, {'+', 3, 1}, {'#', 3, 1}})

s:replace{1, 10, {5, 6, {a = 1}}}

s:update(1, {{'=', '[3][1]', 1}, {'+', '[3][1]', 1}})

s:update(1, {{'=', '[3][1]', 1}, {'=', '[3][2]', 1}, {'=', '[3][1]', 7}})

s:update(1, {{'+', '[3][1]', 1}, {'!', '[3][1]', 1}, {'+', '[3][1]', 1}})

s:update(1, {{'=', '[3][1]', 1}, {'=', 3, 'all'}})

-- paths of one step

s:replace{1, 'text'}

s:update(1, {{'!', '[2]', 'x'}})

s:update(1, {{'#', '[2]', 1}})

s:update(1, {{':', '[2]', 1, 1, 'T'}})

s:update(1, {{'=', '[3]', 3}})

s:update(1, {{'=', '[9]', 3}})

s:upsert({1}, {{'!', '[2]', 'x'}, {'#', '[3]', 1}, {'#', '[9]', 1}})

s:get(1)

-- upserts do what updates do

s:replace{1, 10, 20}

s:upsert({1}, {{'+', 2, 1}, {'=', 2, 5}})

s:get(1)

s:upsert({1}, {{'!', 2, 1}, {'+', 2, 5}})

s:get(1)

s:upsert({1}, {{'=', 2, 1}, {'+', 2, 5}, {'+', 3, 1}})

s:get(1)

-- nobody looks at operations that have nothing to update

s:update(5, {{'=', 2}})

s:update(5, {{'%', 2, 1}})

s:update(5, {{'=', 'name', 1}})

s:update(5, {1})

-- of an upsert they are checked

s:upsert({5}, {{'=', 2}})

s:upsert({5}, {{'%', 2, 1}})

s:upsert({5}, {{'=', 'name', 1}})

s:upsert({5}, {{'=', '[0]', 1}})

s:upsert({5}, {{'+', 2, 'a'}})

s:upsert({5}, {{'#', 2, 0}})

s:upsert({5}, {{'#', 2, 4294967296}})

s:upsert({5}, {{':', 2, 0, 1, 'x'}})

s:upsert({5}, {{':', 2, 1, 2147483648, 'x'}})

s:upsert({5}, {{'=', 0, 1}})

s:upsert({5}, {{'=', 9, 1}})

s:get(5)

-- tuples as operations

s:update(1, box.tuple.new{{'=', 2, 7}})

s:update(1, {box.tuple.new{'=', 2, 8}})

s:update(box.tuple.new{1}, {{'=', 2, 9}})

s:upsert({1}, box.tuple.new{{'=', 2, 10}})

s:upsert({1}, {box.tuple.new{'=', 3, 10}})

s:get(1)

s.index.primary:update(1, box.tuple.new{{'=', 2, 11}})

s:update(1, 'x')

s:get(1):update(box.tuple.new{{'=', 2, 12}})

s:get(1):update({{'+', 2, 1}, {'=', 2, 5}})

s:get(1):upsert({{'=', 2, 5}, {'+', 2, 1}, {'+', 3, 1}})
