-- space:format shows and changes the format; rows that would not fit keep the old one
-- engines: memtx, vinyl

s = box.schema.space.create('t')

s:format()

_ = s:create_index('primary')

_ = s:insert{1, 'one', 10}

s:format{{'id', 'unsigned'}, {'name', 'string'}, {'n', 'unsigned'}}

s:format()

s:get(1).name

s:format{{'id', 'unsigned'}, {'name', 'unsigned'}}

s:format()

s:format{{name = 'id', type = 'unsigned'}, {name = 'title', type = 'string', is_nullable = true}}

s:format()

s:get(1).title

s:get(1).name

s:format{'id', 'only_name'}

s:format()

s:format{{'id'}, {'bare'}}

s:format()

s:format{{'id', 'string'}}

s:format{{'id', 'unsigned', is_nullable = true}}

s:format{{'id', 'unsigned'}, {'id', 'string'}}

s:format{{'id', 'unsigned'}, {'', 'string'}}

s:format{{'id', 'unsigned'}, {'x', 'string', collation = 'none'}}

s:format{{'id', 'unsigned'}, {'x', 'string', colour = 'red'}}

s:format{{'id', 'unsigned'}, {'x', 'string'}, {'n', 'unsigned'}, {'more', 'string'}}

s:format{{'id', 'unsigned'}, {'x', 'string'}, {'n', 'unsigned'}, {'more', 'string', is_nullable = true}}

s:format{}

s:format()

s:format(5)

s:format{5}

s:format{{5}}

s:format{{type = 'string'}}

s:format{{'id', 'unsigned', 'x', 'y'}}

s:format{{'id', is_nullable = 'yes'}}

-- a nullable field of an index needs the index to say so too

s = box.schema.space.create('u')

_ = s:create_index('primary')

_ = s:create_index('second', {parts = {{2, 'string', is_nullable = true}}})

s:format{{'id', 'unsigned'}, {'x', 'string', is_nullable = true}}

s:format{{'id', 'unsigned'}, {'x', 'string'}}

s:insert{1, box.NULL}
