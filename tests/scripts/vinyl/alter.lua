-- indexes made, changed and dropped on a space with rows, on disk and in memory
-- engines: vinyl

s = box.schema.space.create('t')

_ = s:create_index('primary')

for i = 1, 5 do s:insert{i, i * 10, 'n' .. i} end

box.snapshot()

for i = 4, 8 do s:replace{i, i * 10 + 1, 'n' .. i} end

s:delete(1)

-- a new index has the rows of both

second = s:create_index('second', {parts = {2, 'unsigned'}})

second:select()

box.snapshot()

second:select({41}, {iterator = 'LE'})

s:create_index('string', {parts = {2, 'string'}})

s.index.string

s:replace{9, 21, 'n9'}

s:create_index('missing', {parts = {4, 'unsigned'}})

s:create_index('optional', {parts = {{4, 'unsigned', is_nullable = true}}}).name

s.index.optional:select({box.NULL}, {limit = 2})

s:replace{10, 20, 'n2'}

s:create_index('unique', {parts = {3, 'string'}})

s:create_index('not_unique', {parts = {3, 'string'}, unique = false}).unique

-- which may change

s.index.not_unique:alter{unique = true}

s.index.not_unique:alter{parts = {{3, 'string', is_nullable = true}}}

s.index.not_unique.parts

s.index.not_unique:alter{parts = {2, 'unsigned'}}

s.index.not_unique:select({21}, {iterator = 'LE'})

s.index.not_unique:alter{parts = {2, 'integer'}}

s.index.second:alter{name = 'zweiter'}

s.index.zweiter:get(30)

-- and go

s.index.zweiter:drop()

s.index.zweiter

s.index.primary:drop()

s.index.not_unique:drop()

s.index.optional:drop()

s:select({8}, {iterator = 'GE'})

-- the format

s:format({{'id', 'unsigned'}, {'n', 'string'}})

s:format({{'id', 'unsigned'}, {'n', 'unsigned'}, {'name', 'string'}, {'more', 'any'}})

s:format({{'id', 'unsigned'}, {'n', 'unsigned'}, {'name', 'string'}, {'more', 'any', is_nullable = true}})

s:insert{11, 'text', 'x'}

s:get(10).name

s:rename('other')

box.space.other:get(10)

-- truncate and drop take what is on disk with them

box.snapshot()

s:truncate()

s:select()

s:insert{2, 2, 'again'}

box.snapshot()

s:select()

s:drop()

s = box.schema.space.create('t')

_ = s:create_index('primary')

s:select()

s:drop()

-- a change of the schema inside a transaction

s = box.schema.space.create('t')

_ = s:create_index('primary')

box.begin() s:insert{1}

s:create_index('in_transaction', {parts = {2, 'unsigned'}})

box.rollback()

s:truncate()

s:select()
