-- what follows a value that was set out of range, and limits that no sequence has

try = function(options, value) local q = box.schema.sequence.create('q', options) q:set(value) local ok, result = pcall(q.next, q) q:drop() return ok and tonumber(result) or tostring(result) end

try(nil, 0)

try(nil, -5)

try({min = 1, max = 10}, 100)

try({min = 1, max = 10, cycle = true}, 100)

try({step = -1, max = -1, min = -10}, 5)

try({step = -1, max = -1, min = -10}, -100)

try({step = -1, max = -1, min = -10, cycle = true}, -100)

try({start = 5}, 0)

try({step = 3}, 0)

try({min = 5}, 1)

try({min = -3}, -100)

box.schema.sequence.create('r', {max = 18446744073709551615ULL})

box.schema.sequence.create('r', {max = 9223372036854775808ULL})

box.schema.sequence.create('r', {start = 2 ^ 64})

box.space._sequence:insert{77, 1, 'raw', 1, 1, 18446744073709551615ULL, 1, 0, false}

_ = box.schema.sequence.create('r', {max = 9223372036854775807LL})

box.space._sequence_data:insert{box.sequence.r.id, 18446744073709551615ULL}

-- a sequence serves integer keys

s = box.schema.space.create('t')

s:create_index('primary', {parts = {{1, 'number'}}, sequence = true})

s:create_index('primary', {parts = {{1, 'scalar'}}, sequence = true})

_ = s:create_index('primary', {parts = {{1, 'integer'}}, sequence = true})

s:insert{nil, 5}
