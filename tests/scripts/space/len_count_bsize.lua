-- len, count and bsize measure a space and its indexes
-- engines: memtx, vinyl

s = box.schema.space.create('t')

_ = s:create_index('primary', {parts = {1, 'unsigned', 2, 'unsigned'}})

_ = s:create_index('second', {parts = {3, 'string'}, unique = false})

s:len()

s:bsize()

s:count()

for a = 1, 3 do for b = 1, 3 do s:insert{a, b, 'v' .. b} end end

s:len()

s:bsize()

s:count()

s:count(2)

s:count{2, 2}

s:count({2}, {iterator = 'GE'})

s:count({2}, {iterator = 'GT'})

s:count({2}, {iterator = 'LE'})

s:count({2}, {iterator = 'LT'})

s:count({2}, {iterator = 'REQ'})

s:count({}, {iterator = 'ALL'})

s:count({9})

s:count('x')

s:count({2}, {iterator = 'none'})

s.index.second:count('v1')

s.index.second:len()

s.index.primary:len()

s:delete{1, 1}

s:bsize()

s:len()

_ = s:replace{1, 2, ('x'):rep(1000)}

s:bsize()

s.index.primary:bsize() > 0

s.index.second:bsize() > 0
