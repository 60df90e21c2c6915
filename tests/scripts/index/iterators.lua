-- each iterator of a TREE index walks its own part of a composite key, in its own direction
-- engines: memtx, vinyl

s = box.schema.space.create('t')

_ = s:create_index('primary', {parts = {1, 'unsigned', 2, 'string'}})

for a = 1, 4 do for _, b in ipairs{'x', 'y', 'z'} do s:insert{a, b} end end

s:select({2})

s:select({2}, {iterator = 'EQ'})

s:select({2}, {iterator = 'REQ'})

s:select({2}, {iterator = 'GE'})

s:select({2}, {iterator = 'GT'})

s:select({2}, {iterator = 'LE'})

s:select({2}, {iterator = 'LT'})

s:select({2, 'y'}, {iterator = 'EQ'})

s:select({2, 'y'}, {iterator = 'GE'})

s:select({2, 'y'}, {iterator = 'GT'})

s:select({2, 'y'}, {iterator = 'LE'})

s:select({2, 'y'}, {iterator = 'LT'})

s:select({2, 'yy'}, {iterator = 'GE', limit = 2})

s:select({2, 'yy'}, {iterator = 'LE', limit = 2})

s:select({}, {iterator = 'ALL', limit = 2})

s:select({}, {iterator = 'GE', limit = 2})

s:select({}, {iterator = 'LE', limit = 2})

s:select({}, {iterator = 'LT', limit = 2})

s:select({}, {iterator = 'REQ', limit = 2})

s:select({}, {iterator = 'EQ', limit = 2, offset = 3})

s:select({9})

s:select({9}, {iterator = 'LE', limit = 1})

-- numbers and constants name iterators too

s:select({3}, {iterator = box.index.GT})

s:select({3}, {iterator = 2, limit = 1})

s:select({3}, {iterator = 'gt'})

s:select({3}, {iterator = 'sideways'})

s:select({3}, {iterator = 77})

s:select({3}, {iterator = true})

s:select({3}, {iterator = 'OVERLAPS'})

s:select({3}, {iterator = 'BITS_ALL_SET'})

s:select({3}, 'LE')

s:select({3}, {iterator = 'GE', limit = 0})

s:select({3}, {iterator = 'GE', offset = 100})

s:select('2')

s:select({2, 'x', 3})

s:select({'2'})

s:select({2, 3})

box.index
