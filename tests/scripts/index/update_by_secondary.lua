-- get, update and delete by a unique secondary index; what a unique index refuses
-- engines: memtx, vinyl

s = box.schema.space.create('t')

_ = s:create_index('primary')

_ = s:create_index('name', {parts = {2, 'string'}})

_ = s:create_index('place', {parts = {{3, 'unsigned', is_nullable = true}, {4, 'unsigned', is_nullable = true}}})

_ = s:create_index('group', {unique = false, parts = {{3, 'unsigned', is_nullable = true}}})

s:insert{1, 'one', 1, 1}

s:insert{2, 'two', 1, 2}

s:insert{3, 'three', box.NULL, box.NULL}

s:insert{4, 'four', box.NULL, box.NULL}

s:insert{5, 'five', box.NULL, 1}

s:insert{6, 'six', box.NULL, 1}

s.index.name:get('two')

s.index.name:update('two', {{'=', 4, 20}})

s.index.place:get{1, 20}

s.index.place:get{1, 2}

s.index.place:update({1, 20}, {{'=', 2, 'zwei'}, {'+', 4, 1}})

s.index.name:get('two')

s.index.name:get('zwei')

s.index.place:update({1, 2}, {{'=', 2, 'nobody'}})

s.index.name:update('nobody', {{'=', 2, 'somebody'}})

-- a key with a null in it finds no row for a change

s.index.place:get{box.NULL, 1}

s.index.place:select{box.NULL, 1}

s.index.place:update({box.NULL, 1}, {{'=', 2, 'x'}})

s.index.place:delete{box.NULL, 1}

-- an index that is not unique changes nothing

s.index.group:update(1, {{'=', 2, 'x'}})

s.index.group:delete(1)

-- neither does a part of a key

s.index.place:delete{1}

-- what is taken cannot be taken again, by any statement

s:insert{7, 'one'}

s:replace{2, 'one', 5, 5}

s:update(2, {{'=', 2, 'one'}})

s.index.name:update('zwei', {{'=', 3, 1}, {'=', 4, 1}})

s:upsert({8, 'one'}, {{'=', 3, 9}})

s:upsert({2, 'x'}, {{'=', 2, 'one'}})

s:select()

-- nor does the primary key change

s:update(2, {{'=', 1, 9}})

s.index.name:update('zwei', {{'=', 1, 9}})

-- a value is free once its row has left it

s.index.name:update('one', {{'=', 2, 'uno'}})

s:insert{7, 'one'}

s.index.name:delete('uno')

s:get(1)

s:insert{1, 'uno', 1, 1}

s.index.place:delete{1, 1}

s.index.name:count()

s.index.group:select(1)

s:select()
