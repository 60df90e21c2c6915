-- limit and offset of select
-- engines: memtx, vinyl

s = box.schema.space.create('t')

_ = s:create_index('primary')

for i = 1, 10 do s:insert{i} end

s:select({}, {limit = 3})

s:select({}, {limit = 3, offset = 8})

s:select({}, {offset = 8})

s:select({}, {offset = 10})

s:select({}, {limit = 0})

s:select({5}, {iterator = 'GE', limit = 2})

s:select({5}, {iterator = 'LE', limit = 2, offset = 1})

s:select({5}, {iterator = 'GT', limit = 2, offset = 1})

s:select(5, {limit = 10})

s:select({}, {iterator = 'REQ', limit = 3})

s:select(nil, {limit = 1})

s:select({}, {limit = 4294967295, offset = 9})

s:select({}, {limit = 2.5})

s:select({}, {limit = box.NULL, offset = 9})

s:select({}, nil)

#s:select()

s.index.primary:select({}, {limit = 1})

s.index.primary:select({5}, {iterator = 'GE', limit = 1, offset = 2})
