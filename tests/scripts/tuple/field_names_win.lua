-- a field of a tuple hides the method of the same name; the method is still reached through box.tuple
-- engines: memtx, vinyl

s = box.schema.space.create('t', {format = {
    {'id', 'unsigned'}, {'count', 'unsigned'}, {'update', 'string'}, {'find', 'string'},
    {'bsize', 'integer'}, {'format', 'any'}, {'totable', 'any', is_nullable = true},
}})

_ = s:create_index('primary')

t = s:insert{1, 7, 'u', 'f', -3, {a = 1}}

t.id

t.count

t.update

t.find

t.bsize

t.format

t.totable

t:totable()

box.tuple.totable(t)

box.tuple.bsize(t)

box.tuple.update(t, {{'+', 'count', 1}})

box.tuple.find(t, 'f')

t:tomap{names_only = true}

t.nothing

t.next

t[2]

t[99]

t['count']

t[-1]
