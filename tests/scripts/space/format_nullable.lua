-- a nullable field may be null or missing at the end; another may not
-- engines: memtx, vinyl

s = box.schema.space.create('t', {format = {
    {name = 'id', type = 'unsigned'},
    {name = 'a', type = 'string', is_nullable = true},
    {name = 'b', type = 'string'},
    {name = 'c', type = 'string', is_nullable = true},
}})

_ = s:create_index('primary')

s:insert{1, 'a', 'b', 'c'}

s:insert{2, box.NULL, 'b', box.NULL}

s:insert{3, nil, 'b'}

s:insert{4, 'a', 'b'}

s:insert{5, 'a'}

s:insert{6, 'a', box.NULL}

s:insert{7}

s:insert{}

s:insert{8, 'a', 'b', 'c', 'more', 9}

s:get(3).a

s:get(3).a == nil

type(s:get(3).a)

s:get(4).c

type(s:get(4).c)

s:update(1, {{'=', 'a', box.NULL}})

s:update(1, {{'=', 'b', box.NULL}})

s:update(1, {{'#', 'c', 1}})

s:update(1, {{'#', 'b', 1}})

-- the number of fields may be fixed

s = box.schema.space.create('fixed', {field_count = 2})

_ = s:create_index('primary')

s:insert{1}

s:insert{1, 2}

s:insert{1, 2, 3}

s:update(1, {{'!', 3, 'x'}})

s:update(1, {{'#', 2, 1}})
