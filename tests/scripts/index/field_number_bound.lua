-- how large the number of an indexed field may be
-- engines: memtx, vinyl

s = box.schema.space.create('t')

_ = s:create_index('primary')

s:create_index('a', {parts = {{2147483647, 'unsigned', is_nullable = true}}})

s:create_index('b', {parts = {{32769, 'unsigned', is_nullable = true}}})

_ = s:create_index('c', {parts = {{32768, 'unsigned', is_nullable = true}}, unique = false})

box.space._index:insert{s.id, 5, 'x', 'tree', {unique = true}, {{2147483646, 'unsigned'}}}

box.space._index:insert{s.id, 5, 'x', 'tree', {unique = true}, {{100000, 'unsigned'}}}

s:insert{1}
