-- frommap makes a row out of names and values
-- engines: memtx, vinyl

s = box.schema.space.create('t', {format = {
    {'id', 'unsigned'}, {'name', 'string'}, {'n', 'unsigned', is_nullable = true}, {'last', 'string', is_nullable = true},
}})

_ = s:create_index('primary')

s:frommap{id = 1, name = 'one', n = 5, last = 'x'}

s:frommap{id = 1, name = 'one'}

s:frommap{id = 1, last = 'x', name = 'one'}

s:frommap({id = 1, name = 'one'}, {table = true})

s:frommap({id = 1, name = 'one', last = 'x'}, {table = true})

s:frommap{}

s:frommap{id = 1, other = 2}

s:frommap{id = 'text', name = 'one'}

s:frommap{name = 'one'}

s:frommap({id = 1, name = 'one'}, {table = false})

s:frommap(5)

s:frommap()

s:insert(s:frommap{id = 7, name = 'seven'})

s:insert(s:frommap({id = 8, name = 'eight'}, {table = true}))

s:get(7):tomap{names_only = true}

s:get(7):tomap()
