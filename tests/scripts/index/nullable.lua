-- a nullable unique index holds many nulls, before all other keys
-- engines: memtx, vinyl

s = box.schema.space.create('t')

_ = s:create_index('primary')

_ = s:create_index('n', {parts = {{2, 'unsigned', is_nullable = true}}})

s.index.n.parts

s:insert{1, 5}

s:insert{2, box.NULL}

s:insert{3}

s:insert{4, nil, 'x'}

s:insert{5, 5}

s:insert{6, 1}

s.index.n:select()

s.index.n:select{box.NULL}

s.index.n:select(nil)

s.index.n:get{box.NULL}

s.index.n:get(5)

s.index.n:select({box.NULL}, {iterator = 'GT'})

s.index.n:select({1}, {iterator = 'LT'})

s.index.n:select({box.NULL}, {iterator = 'LE'})

s.index.n:count{box.NULL}

s.index.n:min()

s.index.n:max()

s.index.n:delete{box.NULL}

s.index.n:update({box.NULL}, {{'=', 3, 1}})

s:update(1, {{'=', 2, box.NULL}})

s.index.n:select{box.NULL}

-- with a second part

s = box.schema.space.create('u')

_ = s:create_index('primary')

_ = s:create_index('pair', {parts = {{2, 'string'}, {3, 'unsigned', is_nullable = true}}})

s:insert{1, 'a', 1}

s:insert{2, 'a', box.NULL}

s:insert{3, 'a', box.NULL}

s:insert{4, 'a', 1}

s:insert{5, 'a'}

s:insert{6, box.NULL, 1}

s.index.pair:select{'a'}

s.index.pair:select{'a', box.NULL}

s.index.pair:get{'a', box.NULL}

s.index.pair:get{'a', 1}
