-- a sequence may serve another field of the key, by number or by name
-- engines: memtx, vinyl

s = box.schema.space.create('t', {format = {{'kind', 'string'}, {'n', 'unsigned'}, {'v', 'any', is_nullable = true}}})

_ = s:create_index('primary', {parts = {'kind', 'n'}, sequence = {field = 'n'}})

s:insert{'a', box.NULL}

s:insert{'b', box.NULL, 'x'}

s:insert{'a', 10}

s:insert{'a', box.NULL}

s.index.primary.sequence_fieldno

s.index.primary:alter{sequence = false}

s:insert{'a', box.NULL}

s.index.primary.sequence_id

s.index.primary:alter{sequence = true}

s:insert{'a', box.NULL}

s.index.primary:alter{sequence = {field = 2}}

s:insert{'a', box.NULL}

s:create_index('second', {parts = {'n'}, sequence = true, unique = false})

s.index.primary:drop()

-- the sequence is taken for failing and rolled back inserts, too

s = box.schema.space.create('u')

_ = s:create_index('primary', {sequence = true})

_ = s:create_index('name', {parts = {2, 'string'}})

s:insert{nil, 'a'}

s:insert{nil, 'a'}

s:insert{nil, 'b'}

box.begin() s:insert{nil, 'c'} box.rollback()

s:insert{nil, 'd'}

s:upsert({nil, 'e'}, {})

s:insert{100, 'f'}

s:delete(100)

s:insert{nil, 'g'}

s:auto_increment{'h'}

s:select()

-- a negative or too large key

s = box.schema.space.create('i')

_ = s:create_index('primary', {parts = {1, 'integer'}, sequence = true})

s:insert{-5}

s:insert{nil, 1}

s:insert{9223372036854775807LL}

s:insert{nil, 1}

-- auto_increment without a sequence counts from the largest key

s = box.schema.space.create('w')

_ = s:create_index('primary')

s:auto_increment{'one'}

s:insert{41, 'x'}

s:auto_increment{'two'}

s:auto_increment()

s:insert{nil, 'no'}
