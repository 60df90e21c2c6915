-- a dropped space is gone with its indexes and grants; a renamed one keeps its rows
-- engines: memtx, vinyl

s = box.schema.space.create('old')

_ = s:create_index('primary')

_ = s:insert{1}

s:rename('new')

s.name

box.space.old

box.space.new:select()

box.space.new == s

box.space.new.index.primary:get(1)

_ = box.schema.space.create('taken')

s:rename('taken')

s:rename('new')

s:rename()

s:rename('')

s:drop()

box.space.new

box.space._space:get(s.id)

box.space._index:select{s.id}

s:drop()

s:insert{1}

s:get(1)

s:select()

s:len()

s:rename('x')

s.index.primary

box.schema.space.drop(9999)

box.schema.space.drop(9999, 'name')

box.schema.space.drop(9999, 'name', {if_exists = true})

box.schema.space.drop(box.space.taken.id)

box.schema.space.drop()

box.schema.space.rename(9999, 'x')

-- a space whose number is reused starts empty

s = box.schema.space.create('again', {id = 600})

_ = s:create_index('primary')

_ = s:insert{1}

s:drop()

s = box.schema.space.create('again', {id = 600})

_ = s:create_index('primary')

s:select()

-- system spaces are not for dropping

box.space._space:drop()
