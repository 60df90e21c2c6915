-- strings compare byte by byte without a collation
-- engines: memtx, vinyl

s = box.schema.space.create('t')

_ = s:create_index('primary', {parts = {1, 'string'}})

for _, v in ipairs{'b', 'a', 'B', 'aa', '', 'ä', 'a\0', 'a\0b', '\255', 'z', '~', ' '} do s:insert{v} end

s:select()

s:select('a')

s:select('a', {iterator = 'GT', limit = 2})

s:select('a\0', {iterator = 'GE', limit = 1})

s:insert{'a\0'}

s:get(('x'):rep(10))

-- length is of no account before the bytes are

s = box.schema.space.create('long')

_ = s:create_index('primary', {parts = {1, 'string'}})

for _, n in ipairs{31, 32, 8, 300, 7, 9} do s:insert{('x'):rep(n)} end

s:pairs():map(function(t) return #t[1] end):totable()

s:get(('x'):rep(9)) ~= nil

s:pairs(('x'):rep(9), {iterator = 'GE'}):map(function(t) return #t[1] end):totable()
