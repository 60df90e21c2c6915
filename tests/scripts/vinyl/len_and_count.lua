-- len counts what is stored, versions and deletes included; count reads
-- engines: vinyl

s = box.schema.space.create('t')

_ = s:create_index('primary')

for i = 1, 10 do s:replace{i, 0} end

s:len()

s:count()

for i = 1, 10 do s:replace{i, 1} end

s:count()

for i = 1, 5 do s:delete(i) end

s:count()

s:count({7}, {iterator = 'GT'})

s.index.primary:count({7}, 'LE')

box.snapshot()

s:len()

s:count()

s:truncate()

s:len()

s:count()

s:bsize()

_ = s:create_index('second', {parts = {2, 'unsigned'}, unique = false})

for i = 1, 10 do s:insert{i, i % 2} end

s:len()

s.index.second:len()

s.index.second:count(1)

s.index.second:count()

s.index.primary:random(1)

s.index.primary:min()

s.index.primary:max()

s.index.second:min(1)

s.index.second:max(0)
