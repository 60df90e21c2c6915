-- ranges of fields that unpack, totable, slice and find take

t = box.tuple.new{1, 2, 3}

t:unpack(1, 100)

t:unpack(2)

t:unpack(4)

t:unpack(3, 2)

t:unpack(0)

t:unpack(-1)

t:unpack(1, 0)

t:unpack(2, -1)

t:totable(1, 100)

t:totable(0)

t:totable(1, 0)

t:totable(5, 6)

t:slice(0)

t:slice(0, 1)

t:slice(1, 0)

t:slice(1, 100)

t:slice(-1)

t:slice(-1, -1)

t:slice(-3, -2)

t:slice(4)

t:slice(3)

t:slice(2, -1)

t:slice(-5, -1)

t:find(3)

t:find(1, 2)

t:find(2, 2)

t:find(3, 2)

t:find(0, 1)

t:findall(1, 3)

-- an update makes no tuple that its space would not take

s = box.schema.space.create('t', {format = {{'id', 'unsigned'}, {'s', 'string'}}})

_ = s:create_index('primary')

row = s:insert{1, 'a'}

row:update{{'=', 2, 5}}

row:update{{'#', 2, 1}}

row:upsert{{'=', 2, 5}}

row:update{{'=', 2, 'b'}}

-- collations are for text

box.schema.space.create('c', {format = {{name = 'a', type = 'unsigned', collation = 'unicode'}}})

_ = box.schema.space.create('c1', {format = {{name = 'a', type = 'scalar', collation = 'unicode'}}})

box.schema.space.create('c2'):create_index('primary', {parts = {{1, 'unsigned', collation = 'unicode'}}})

_ = box.schema.space.create('c3'):create_index('primary', {parts = {{1, 'scalar', collation = 'unicode'}}})

-- names of types

box.schema.space.create('f1', {format = {{'a', 'int'}}})

box.schema.space.create('f2', {format = {{'a', 'bool'}}})

_ = box.schema.space.create('f3', {format = {{'a', 'str'}, {'b', 'num'}, {'c', '*'}}})

_ = box.schema.space.create('f4'):create_index('primary', {parts = {{1, 'int'}}})

box.schema.space.create('f5'):create_index('primary', {parts = {{1, 'bool'}}})
