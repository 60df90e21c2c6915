-- min, max and random of an index
-- engines: memtx, vinyl

s = box.schema.space.create('t')

_ = s:create_index('primary', {parts = {1, 'unsigned', 2, 'unsigned'}})

_ = s:create_index('name', {parts = {3, 'string'}, unique = false})

s.index.primary:min()

s.index.primary:max()

s.index.primary:random(3)

for a = 1, 3 do for b = 1, 3 do s:insert{a, b, 'n' .. (b % 2)} end end

s.index.primary:min()

s.index.primary:max()

s.index.primary:min{2}

s.index.primary:max{2}

s.index.primary:min(2)

s.index.primary:min{2, 2}

s.index.primary:max{9}

s.index.primary:min{}

s.index.name:min()

s.index.name:max()

s.index.name:max('n0')

s.index.name:min('zzz')

s.index.primary:min('x')

s.index.primary:min{1, 2, 3}

s.index.primary:random(0) ~= nil

s.index.primary:random(4) == s.index.primary:random(4)

s.index.primary:random()

s.index.primary:random('x')

s.index.primary.min()

s.index.primary:len()

s.index.primary:count(1)
