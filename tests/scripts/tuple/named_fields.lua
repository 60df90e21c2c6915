-- rows of a space with a format give their fields by name
-- engines: memtx, vinyl

s = box.schema.space.create('t', {format = {{'id', 'unsigned'}, {'name', 'string'}, {'tags', 'array', is_nullable = true}, {'extra', 'map', is_nullable = true}}})

_ = s:create_index('primary')

t = s:insert{1, 'one', {'x', 'y'}, {deep = {1, 2}}, 'unnamed'}

t.id

t.name

t.tags

t.extra.deep[2]

t.tags[1]

t['tags[1]']

t['extra.deep[1]']

t.unknown

t[5]

t:tomap()

t:tomap{names_only = true}

t:tomap{names_only = false}

t:tomap(5)

t:update{{'=', 'name', 'uno'}}.name

t:update{{'=', 'extra.deep[1]', 'new'}}.extra

t:update{{'=', 'unknown', 1}}

t:transform(1, 1).name

box.tuple.new{1, 'one'}.name

t:totable()

select('#', t:unpack())

-- the format of a space belongs to rows made before it changed, too

s:format{{'id', 'unsigned'}, {'title', 'string'}}

t.name

t.title

s:get(1).title

s:get(1).name

-- names that need quotes, and odd names

s:format{{'id', 'unsigned'}, {'two words', 'string'}}

s:get(1)['two words']

s:format{{'id', 'unsigned'}, {'имя', 'string'}}

s:get(1)['имя']

s:format{{'id', 'unsigned'}, {'a.b', 'string'}}

s:get(1)['a.b']
