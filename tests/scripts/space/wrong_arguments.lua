-- methods of a space say how they are to be called
-- engines: memtx, vinyl

s = box.schema.space.create('t')

_ = s:create_index('primary')

_ = s:insert{1, 'one'}

s.insert{1}

s.select()

s.get(1)

s:insert(5)

s:insert()

s:insert('text')

s:insert{'text'}

s:insert{{1}}

s:insert{-1}

s:insert{1.5}

s:insert{a = 1}

s:insert(box.NULL)

s:replace()

s:replace{}

s:get()

s:get{}

s:get('1')

s:get{1, 2}

s:get(nil)

s:get(box.NULL)

s:get{box.NULL}

s:delete()

s:delete{}

s:delete('x')

s:delete{1, 2}

s:update(1)

s:update()

s:update(1, {})

s:update(1, 5)

s:update(1, {5})

s:update(1, {{}})

s:update(1, {{'='}})

s:update(1, {{'=', 2}})

s:update(1, {{'=', 2, 3, 4}})

s:update(1, {{'%', 2, 3}})

s:update(1, {{'==', 2, 3}})

s:update(1, {{2, '=', 3}})

s:update(1, {'=', 2, 'x'})

s:update({}, {{'=', 2, 'x'}})

s:upsert()

s:upsert{1}

s:upsert({1}, {{'=', 2}})

s:upsert({'text'}, {})

s:upsert({1}, 5)

s:select({}, {limit = -1})

s:select({}, {limit = 'one'})

s:select({}, {offset = -1})

s:select(1, 2, 3)

s:count{1, 2}

s.nothing

s:nothing()

box.space.missing:insert{1}
