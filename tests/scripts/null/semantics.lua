-- box.NULL equals nil but is not false and keeps its place in tables and rows
-- engines: memtx, vinyl

box.NULL

type(box.NULL)

box.NULL == nil

nil == box.NULL

box.NULL == box.NULL

box.NULL ~= nil

box.NULL == false

box.NULL == 0

not box.NULL

box.NULL and 'true' or 'false'

box.NULL or 'default'

tostring(box.NULL)

require('json').NULL == box.NULL

require('msgpack').NULL == box.NULL

require('yaml').NULL == box.NULL

rawequal(box.NULL, require('json').NULL)

rawequal(box.NULL, nil)

#{1, box.NULL, 3}

#{1, box.NULL}

#{box.NULL, box.NULL}

{1, box.NULL}

{a = box.NULL}

next({a = box.NULL}) ~= nil

select('#', box.NULL, nil)

box.NULL.x

box.NULL + 1

box.NULL .. ''

box.NULL < 1

t = box.tuple.new{1, box.NULL, 3}

t[2]

type(t[2])

t[2] == nil

t[4] == nil

type(t[4])

#t

t:totable()

t:unpack()

#t:totable()

{t:unpack()}

require('json').encode{1, box.NULL, nil}

require('json').encode{a = box.NULL}

require('json').decode('[1, null]')

require('json').decode('null')

require('json').decode('{"a": null}').a == nil

require('msgpack').decode(require('msgpack').encode(nil))

require('msgpack').decode(require('msgpack').encode{box.NULL})

s = box.schema.space.create('t', {format = {{'id', 'unsigned'}, {'a', 'string', is_nullable = true}}})

_ = s:create_index('primary')

r = s:insert{1, box.NULL}

r.a == nil

type(r.a)

type(r[2])

if r.a then return 'true' else return 'false' end

if r[2] then return 'true' else return 'false' end

r:tomap{names_only = true}
