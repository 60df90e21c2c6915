-- A flat list of fields and types says nothing but that: nullability and collation are not taken over from the format.
-- engines: memtx, vinyl
s = box.schema.space.create('s', {format = {{'a', 'unsigned'}, {'b', 'string', is_nullable = true}, {name = 'c', type = 'scalar', is_nullable = true}}})

s:create_index('p')

s:create_index('x', {parts = {3, 'scalar'}, unique = false}).parts

s:insert{1}

s:insert{1, 'a'}

s:insert{1, 'a', box.NULL}

s.index.x:drop()

s:create_index('x', {parts = {{3, 'scalar', is_nullable = false}}, unique = false}).parts

s:insert{1}

s.index.x:drop()

s:create_index('y', {parts = {3}, unique = false}).parts

s:create_index('z', {parts = {'c'}, unique = false}).parts

s:create_index('two', {parts = {2, 'string', 3, 'scalar'}, unique = false}).parts

s:create_index('nullable', {parts = {2, 'string', is_nullable = true}, unique = false}).parts

s:create_index('collated', {parts = {2, 'string', collation = 'unicode'}, unique = false}).parts

s:create_index('nested', {parts = {{2, 'string', collation = 'UNICODE'}}, unique = false}).parts

s:create_index('bad', {parts = {2, 'string', 3}})

s:create_index('bad', {parts = {2, 'string', 'c', 'scalar'}})

s:create_index('bad', {parts = {2, 'string', 3, 5}})
