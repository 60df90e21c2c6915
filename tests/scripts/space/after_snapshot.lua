-- statements answer the same after a snapshot, which brings what is in memory to disk
-- engines: memtx, vinyl
-- wal_mode: write

s = box.schema.space.create('t')

_ = s:create_index('primary')

_ = s:create_index('value', {unique = false, parts = {2, 'unsigned'}})

_ = s:create_index('name', {parts = {{3, 'string', is_nullable = true}}})

for i = 1, 100 do s:insert{i, i % 10, i % 3 ~= 0 and 'n' .. i or box.NULL} end

box.snapshot()

s:get(50)

s:get(500)

s.index.name:get('n50')

s.index.name:get('n51')

s:select({97}, {iterator = 'GE'})

s.index.value:select({3}, {iterator = 'REQ', limit = 3})

s.index.name:select({box.NULL}, {limit = 3})

-- changes above what is on disk

s:insert{50, 0, 'again'}

s:insert{500, 0, 'n50'}

s:replace{50, 5, 'fifty'}

s:update(51, {{'=', 2, 5}, {'=', 3, 'n51'}})

s.index.name:update('n52', {{'+', 2, 100}})

s:upsert({53, 1}, {{'+', 2, 1000}})

s:upsert({153, 1}, {{'+', 2, 1000}})

for i = 1, 40 do s:delete(i) end

s:select({}, {limit = 3})

s:select({45}, {iterator = 'LT'})

s.index.value:select({5}, {limit = 4})

s.index.value:select({100}, {iterator = 'GE'})

s.index.name:get('n50')

s.index.name:get('fifty')

box.snapshot()

-- and once these are there too

s:select({}, {limit = 3})

s:select({45}, {iterator = 'LT'})

s.index.value:select({5}, {limit = 4})

s.index.value:select({100}, {iterator = 'GE'})

s.index.name:get('n50')

s.index.name:get('fifty')

s:get(53)

s:get(153)

s:count()

s:count({60}, {iterator = 'LT'})

s.index.value:min()

s.index.value:max()

s.index.name:max()

-- a row that has come and gone on disk

s:insert{1, 1, 'one'}

box.snapshot()

s:delete(1)

box.snapshot()

s:get(1)

s.index.name:get('one')

s:insert{1, 2, 'one'}

s:select({}, {limit = 2})

s:truncate()

box.snapshot()

s:select()

s:insert{1, 2, 'one'}

s:drop()

box.snapshot()
