-- pairs walks a space with an iterator of the fun library
-- engines: memtx, vinyl

s = box.schema.space.create('t')

_ = s:create_index('primary')

for i = 1, 6 do s:insert{i, i * i} end

rows = {}

for state, tuple in s:pairs() do table.insert(rows, tuple) end

rows

rows = {}

for _, tuple in s:pairs(4) do table.insert(rows, tuple) end

rows

s:pairs({4}, {iterator = 'GT'}):totable()

s:pairs({4}, {iterator = 'LE'}):map(function(t) return t[2] end):totable()

s:pairs():filter(function(t) return t[1] % 2 == 0 end):totable()

s:pairs():take(2):totable()

s:pairs():length()

s:pairs():nth(3)

s:pairs():foldl(function(sum, t) return sum + t[2] end, 0)

s.index.primary:pairs(5):totable()

s:pairs('x')

s:pairs({4}, {iterator = 'none'})

-- rows deleted behind or before the iterator

seen = {}

for _, t in s:pairs() do table.insert(seen, t[1]) s:delete(t[1]) end

seen

s:len()

for i = 1, 6 do s:insert{i} end

seen = {}

for _, t in s:pairs() do table.insert(seen, t[1]) s:delete(t[1] + 1) end

seen

-- rows inserted while walking

s:truncate()

_ = s:insert{1}

seen = {}

for _, t in s:pairs() do
    table.insert(seen, t[1])
    if t[1] < 5 then s:insert{t[1] + 1} end
end

seen
