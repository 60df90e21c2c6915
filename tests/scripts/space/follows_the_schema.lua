-- box.space, box.sequence and box.func show the schema as it is after every change
-- engines: memtx, vinyl

a, b = box.schema.space.create('a'), box.schema.space.create('b')

_ = a:create_index('pk')

a:rename('c')

box.space.a == nil, box.space.c == a, a.name

-- two change their names

b:rename('x') a:rename('b') b:rename('c')

box.space.b == a, box.space.c == b, box.space.x == nil

a.index.pk.name, box.space[a.id] == a

-- an index comes and goes

_ = a:create_index('second', {parts = {2, 'string'}, unique = false})

a.index.second.type, a.index[1] == a.index.second

a.index.second:rename('other')

a.index.second == nil, a.index.other.name

a.index.other:drop()

a.index.other == nil, a.index[1] == nil

-- what is dropped is gone, and comes again with another number

id = a.id

a:drop()

box.space.b == nil, box.space[id] == nil

a = box.schema.space.create('b')

box.space.b == a, a.id == id

-- many at once

for i = 1, 1500 do box.schema.sequence.create('q' .. i) end

box.sequence.q1.id ~= nil, box.sequence.q1500.name

for i = 1, 1500 do box.sequence['q' .. i]:drop() end

box.sequence.q1 == nil, box.sequence.q1500 == nil

-- sequences and functions

q = box.schema.sequence.create('q', {cache = 5})

q:alter({name = 'r', step = 2})

box.sequence.q == nil, box.sequence.r.step, box.sequence.r.cache

box.schema.func.create('f', {body = 'function() return 1 end'})

box.func.f:call()

box.schema.func.drop('f')

box.func.f == nil

box.schema.func.create('f', {body = 'function() return 2 end'})

box.func.f:call()
