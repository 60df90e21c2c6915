-- what the disk engine refuses, and how
-- engines: vinyl

s = box.schema.space.create('t')

s:create_index('primary', {type = 'HASH'})

s:create_index('primary', {type = 'RTREE', parts = {1, 'array'}})

s:create_index('primary', {type = 'BITSET', parts = {1, 'unsigned'}})

s:create_index('primary', {unique = false})

s:create_index('primary', {parts = {{1, 'unsigned', is_nullable = true}}})

s:create_index('primary', {parts = {1, 'array'}})

s:create_index('primary', {parts = {1, 'map'}})

s:create_index('primary', {parts = {{1, 'unsigned', path = 'a'}}}).parts[1].path

s.index.primary:drop()

s:create_index('second', {id = 1, parts = {2, 'unsigned'}})

_ = s:create_index('primary')

s:create_index('many', {parts = {{path = '[*].a', field = 2, type = 'unsigned'}}})

if s.index.many then s.index.many:drop() end

s:create_index('by_function', {func = 'nothing', parts = {1, 'unsigned'}})

box.schema.space.create('temporary', {engine = 'vinyl', temporary = true})

box.schema.space.create('local', {engine = 'vinyl', is_local = true}).is_local

box.schema.space.create('other', {engine = 'nothing'})

box.schema.space.create('blackhole', {engine = 'blackhole'}).engine

-- the primary key of a space with rows

s:insert{1, 2, 'x'}

s.index.primary:alter{parts = {2, 'unsigned'}}

s.index.primary:alter{parts = {1, 'integer'}}

s.index.primary:alter{parts = {1, 'unsigned', 2, 'unsigned'}}

s.index.primary:alter{type = 'HASH'}

s.index.primary.parts

-- and of one without

s:delete(1)

s.index.primary:alter{parts = {2, 'unsigned'}}

s:truncate()

s.index.primary:alter{parts = {2, 'unsigned'}}

s.index.primary.parts

-- options of an index

s:create_index('x', {parts = {3, 'string'}, page_size = 0})

s:create_index('x', {parts = {3, 'string'}, page_size = -1})

s:create_index('x', {parts = {3, 'string'}, range_size = 100, page_size = 1000})

s:create_index('x', {parts = {3, 'string'}, run_count_per_level = 0})

s:create_index('x', {parts = {3, 'string'}, run_size_ratio = 1})

s:create_index('x', {parts = {3, 'string'}, run_size_ratio = 'a'})

s:create_index('x', {parts = {3, 'string'}, bloom_fpr = 0})

s:create_index('x', {parts = {3, 'string'}, bloom_fpr = 1.1})

x = s:create_index('x', {parts = {3, 'string'}, page_size = 1024, range_size = 65536, run_count_per_level = 3, run_size_ratio = 2.5, bloom_fpr = 0.1})

x.options

x:alter{page_size = 2048}

box.space._index:get{s.id, x.id}

x:alter{page_size = 0}

box.space._index:get{s.id, 0}

-- reads that it does not have

s.index.primary:random()

s:select({2}, {iterator = 'BITS_ALL_SET'})

s:select({2}, {iterator = 'OVERLAPS'})

s.index.primary:rename('first')

s.index.first.name

-- the primary key goes as a whole, with the rows

s:replace{1, 2, 'x'}

s.index.x:drop()

s.index.first:drop()

s:replace{1, 2, 'x'}

_ = s:create_index('primary')

s:select()
