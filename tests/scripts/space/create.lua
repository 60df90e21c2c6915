-- creating a space: its options, its id, and what is refused
-- engines: memtx, vinyl

s = box.schema.space.create('first')

s.id

s.name

s.engine

s.field_count

s.temporary

s.is_local

s.enabled

s.index

box.space.first == s

box.space[512] == s

box.schema.create_space('second').id

box.schema.space.create('first')

box.schema.space.create('first', {if_not_exists = true}) ~= nil

select('#', box.schema.space.create('first', {if_not_exists = true}))

select(2, box.schema.space.create('first', {if_not_exists = true}))

select(2, box.schema.space.create('third', {if_not_exists = true}))

box.schema.space.create('given id', {id = 700}).id

box.schema.space.create('next').id

box.schema.space.create('same id', {id = 700})

box.schema.space.create('wide', {field_count = 3}).field_count

box.schema.space.create('temporary', {temporary = true}).temporary

box.schema.space.create('local', {is_local = true}).is_local

-- what is refused

box.schema.space.create()

box.schema.space.create('')

box.schema.space.create(7)

box.schema.space.create('x', 7)

box.schema.space.create('x', {engine = 'stone'})

box.schema.space.create('x', {colour = 'red'})

box.schema.space.create('x', {field_count = 'many'})

box.schema.space.create('x', {temporary = 1})

box.schema.space.create('x', {user = 'nobody'})

box.schema.space.create('x', {format = 5})

box.schema.space.create('x', {id = 'seven'})

box.schema.space.create(('n'):rep(65001))

box.schema.space.create(('n'):rep(100)) ~= nil

box.schema.space.create('имя').name

box.schema.space.create('a\nb')

box.space.x

box.space['']

-- a space without an index takes no rows

s:insert{1}

s:select()

s:get(1)

s:len()

s:count()

s:truncate()
