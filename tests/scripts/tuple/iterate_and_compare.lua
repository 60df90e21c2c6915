-- pairs, ipairs and == of tuples

t = box.tuple.new{10, 20, box.NULL, 40}

seen = {}

for i, v in t:pairs() do table.insert(seen, {i, v}) end

seen

seen = {}

for i, v in t:ipairs() do table.insert(seen, {i, v}) end

seen

seen = {}

for i, v in ipairs(t) do table.insert(seen, {i, v}) end

seen

seen = {}

for i, v in pairs(t) do table.insert(seen, {i, v}) end

seen

t:pairs():totable()

t:pairs():filter(function(v) return v ~= nil and v > 15 end):totable()

t == t

t == box.tuple.new{10, 20, box.NULL, 40}

t == box.tuple.new{10, 20}

t ~= box.tuple.new{10, 20}

t == {10, 20, box.NULL, 40}

{10, 20, box.NULL, 40} == t

t == nil

t == box.NULL

nil == t

t == 5

t == 'text'

t < t

box.tuple.new{1} == box.tuple.new{1.0}

box.tuple.new{{a = 1}} == box.tuple.new{{a = 1}}

tostring(t) == tostring(box.tuple.new{10, 20, box.NULL, 40})
