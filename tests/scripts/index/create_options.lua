-- options of create_index, the order of indexes, and what is refused
-- engines: memtx, vinyl

s = box.schema.space.create('t')

s:create_index('second', {id = 1})

i = s:create_index('primary', {type = 'TREE'})

i.id

i.name

i.type

i.unique

i.space_id == s.id

s.enabled

s:create_index('three', {type = 'tree', id = 3, parts = {2, 'string'}, unique = false}).id

s:create_index('next', {type = 'HASH', parts = {3, 'string'}}).id

s.index.three.unique

s.index.next.type

s.index[3].name

s.index[0] == s.index.primary

s.index[1].name

s:create_index('primary')

s:create_index('primary', {if_not_exists = true}) == i

s:create_index('three', {id = 9})

s:create_index('new', {id = 3})

s:create_index()

s:create_index(5)

s:create_index('')

s:create_index('x', 5)

s:create_index('x', {type = 'list'})

s:create_index('x', {type = 5})

s:create_index('x', {unique = 'yes'})

s:create_index('x', {colour = 'red'})

s:create_index('x', {id = 500})

s:create_index('x', {id = 'one'})

s:create_index('x', {type = 'HASH', unique = false})

s:create_index('x', {type = 'HASH', parts = {{2, 'string', is_nullable = true}}})

s.create_index('x')

-- the primary index is unique, not null, and made first

u = box.schema.space.create('u')

u:create_index('primary', {unique = false})

u:create_index('primary', {parts = {{1, 'unsigned', is_nullable = true}}})

u:create_index('primary', {parts = {{1, 'unsigned'}}}).id

-- an index over rows that do not fit is refused and leaves nothing

_ = u:insert{1, 'same', 1}

_ = u:insert{2, 'same', 'x'}

u:create_index('name', {parts = {2, 'string'}})

u:create_index('n', {parts = {3, 'unsigned'}})

u:create_index('far', {parts = {4, 'unsigned'}})

u.index.name

u:create_index('name', {parts = {2, 'string'}, unique = false}):count('same')

u:insert{3, 5}

u:insert{3}

-- dropping

u.index.name:drop()

u.index.name

u:insert{3, 5}

u.index.primary:drop()

u:select()

_ = box.space.t.index.three

box.space.t.index.primary:drop()

box.space.t.index.three:drop()

box.schema.index.drop(s.id, 99)

box.schema.index.drop(9999, 0)
