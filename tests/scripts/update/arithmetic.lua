-- update adds and subtracts within the range of 64 bits and keeps integers integers
-- engines: memtx, vinyl

s = box.schema.space.create('counters')

_ = s:create_index('primary')

s:insert{1, 10, 2.5, 'text'}

s:update(1, {{'+', 2, 5}})

s:update(1, {{'-', 2, 20}})

s:update(1, {{'+', 3, 0.25}})

s:update(1, {{'+', 2, 0.5}})

s:update(1, {{'=', 2, 10}, {'+', 2, 1}})

s:update(1, {{'+', 4, 1}})

s:update(1, {{'+', 2, 'one'}})

s:update(1, {{'+', 2, {}}})

s:update(1, {{'+', 9, 1}})

-- overflow at both ends

s:replace{2, 18446744073709551615ULL, -9223372036854775808LL}

s:update(2, {{'+', 2, 1}})

s:update(2, {{'-', 3, 1}})

s:update(2, {{'-', 2, 1}})

s:update(2, {{'+', 3, 1}})

s:update(2, {{'=', 2, 9223372036854775807LL}, {'+', 2, 9223372036854775807LL}})

s:update(2, {{'=', 2, 1}, {'-', 2, 18446744073709551615ULL}})

s:get(2)

s:update(99, {{'+', 2, 1}})
