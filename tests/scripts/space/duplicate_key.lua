-- insert refuses an occupied key, replace takes it over, get and delete tell what was there
-- engines: memtx, vinyl

s = box.schema.space.create('stock')

s:create_index('primary', {type = 'TREE'}).parts

s:insert{1, 'bolt'}

s:insert{1, 'nut'}

s:replace{1, 'nut'}

s:replace{2, 'washer'}

s:put{3, 'spring'}

s:get(1)

s:get{1}

s:get(99)

s:delete(1)

s:delete(1)

s:get(1)

s:select()

-- a second unique index names itself in the error

_ = s:create_index('name', {parts = {2, 'string'}})

s:insert{4, 'nut'}

s:insert{5, 'washer'}

s:replace{6, 'washer'}

s:replace{2, 'washer', 'steel'}

s:insert{2, 'gear'}

s.index.name:get('washer')

s.index.name:get{'gear'}

s:len()
