-- thousands of rows in many layers, one from each snapshot: every way to read them finds the same
-- engines: memtx, vinyl
-- wal_mode: write

s = box.schema.space.create('t')

_ = s:create_index('primary', {parts = {1, 'unsigned', 2, 'string'}})

_ = s:create_index('value', {unique = false, parts = {{3, 'unsigned', is_nullable = true}}})

_ = s:create_index('name', {parts = {4, 'string'}})

text = string.rep('text', 20)

-- each round changes other rows in another way

for round = 1, 8 do box.begin() for i = 1, 400 do local id = (i * 7 + round * 131) % 500 s:replace{id, 'k' .. round % 3, (id * round) % 50, id .. '/' .. round % 3, text} end box.commit() if round % 2 == 0 then box.begin() for i = round, 500, 5 do s:delete{i, 'k0'} end box.commit() else box.begin() for i = round, 500, 7 do s:upsert({i, 'k1', box.NULL, i .. '/1'}, {{'=', 3, i % 13}, {'=', 6, round}}) end box.commit() end box.snapshot() end

s:count()

-- a row as a number, and what a walk over an index adds up to; the order counts

function weight(row) return row[1] * 31 + (row[3] ~= nil and row[3] or 7) * 17 + #row[2] + (row[6] ~= nil and row[6] or 3) end

function walk(index, key, iterator) local sum, count = 0, 0 for _, row in s.index[index]:pairs(key, {iterator = iterator}) do count = count + 1 sum = (sum * 33 + weight(row)) % 1000000007 end return count, sum end

walk('primary', {}, 'GE')

walk('primary', {}, 'LE')

walk('primary', {250}, 'GE')

walk('primary', {250}, 'LT')

walk('primary', {250}, 'REQ')

walk('primary', {250, 'k1'}, 'GT')

walk('primary', {250, 'k1'}, 'LE')

walk('value', {}, 'GE')

walk('value', {}, 'LE')

walk('value', {7}, 'EQ')

walk('value', {7}, 'REQ')

walk('value', {7}, 'GT')

walk('value', {7}, 'LT')

walk('value', {box.NULL}, 'EQ')

walk('name', {}, 'GE')

walk('name', {'250/1'}, 'LE')

-- one by one

found = 0

for id = 0, 499 do for k = 0, 2 do local row = s:get{id, 'k' .. k} if row ~= nil then found = found * 5 % 1000003 + weight(row) end end end

found

found = 0

for id = 0, 499 do for k = 0, 2 do local row = s.index.name:get(id .. '/' .. k) if row ~= nil then found = found * 5 % 1000003 + weight(row) end end end

found

-- page by page, from a key to the next one

function pages(size) local after, sum, count = nil, 0, 0 repeat local rows = s:select(after, {iterator = 'GT', limit = size}) for _, row in ipairs(rows) do count = count + 1 sum = (sum * 33 + weight(row)) % 1000000007 after = {row[1], row[2]} end until #rows < size return count, sum end

pages(7)

pages(1000)

-- an index that is made now has them all, and the same after everything has become one layer

_ = s:create_index('late', {unique = false, parts = {{3, 'unsigned', is_nullable = true}, {1, 'unsigned'}}})

walk('late', {}, 'GE')

walk('late', {7}, 'LE')

s.index.primary:compact()

box.snapshot()

walk('primary', {}, 'GE')

walk('value', {}, 'LE')

walk('late', {7}, 'EQ')

-- nothing is left behind a delete of all

for _, row in s:pairs() do s:delete{row[1], row[2]} end

walk('primary', {}, 'GE')

box.snapshot()

walk('value', {}, 'LE')

s:count()
