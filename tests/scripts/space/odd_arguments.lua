-- keys, options and operations of odd kinds

-- engines: memtx, vinyl

s = box.schema.space.create('s')

p = s:create_index('primary')

i = s:create_index('second', {parts = {{2, 'string'}}, unique = false})

s:replace{1, 'a'}

p:select(1, 77)

p:select(1, 2^32)

p:select(1, 5LL)

p:select(1, true)

p:select(1, false)

p:count(1, 3)

p:count(1, 'EQ')

p:select(1, {iterator = -1})

p:select(1, box.tuple.new{1})

s:pairs(1, 0.5)

s:update(nil, {})

i:update(nil, {})

s:upsert({2, 'b'}, {}, false)

s:upsert(5, {})

s:upsert('#', {{'=', 2, 'x'}})

s:upsert({'x', 'b'}, {{'?', 2, 1}})

s:upsert({'x', 'b'}, {{'+', 4, false}})

p:select({[5] = 1})

p:select({a = 1})

p:count({a = 1})

p:get({a = 1})

i:get({a = 1})

p:select(setmetatable({1}, {__serialize = 'map'}))

p:delete({a = 1})

s:select()

box.tuple.new{}:tomap()

box.tuple.new{1}:tomap{names_only = true}

box.tuple.new{1}:next(-1)

box.tuple.new{1}:next(2^32)

box.tuple.new{1}:next('a')

box.schema.user.exists()

box.schema.user.exists(0)

box.schema.role.exists(2)

box.schema.role.exists({1, 2})

box.schema.func.exists(true)

box.session.exists(3, 'a')

s:drop()

s:insert(5)
