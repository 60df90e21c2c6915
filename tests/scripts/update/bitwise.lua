-- the operations &, | and ^ work on unsigned 64-bit integers
-- engines: memtx, vinyl

s = box.schema.space.create('t')

_ = s:create_index('primary')

s:insert{1, 12, -1, 'text', 1.5}

s:update(1, {{'&', 2, 10}})

s:update(1, {{'|', 2, 5}})

s:update(1, {{'^', 2, 255}})

s:update(1, {{'|', 2, 18446744073709551615ULL}})

s:update(1, {{'&', 2, 9223372036854775808ULL}})

s:update(1, {{'&', 3, 1}})

s:update(1, {{'&', 4, 1}})

s:update(1, {{'&', 5, 1}})

s:update(1, {{'&', 2, -1}})

s:update(1, {{'|', 2, 'x'}})

s:update(1, {{'^', 2, 1.5}})

s:update(1, {{'&', 9, 1}})
