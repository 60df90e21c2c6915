-- module net.box: requests to a server, here the same process

net, fiber, msgpack = require('net.box'), require('fiber'), require('msgpack')

box.cfg{listen = 'unix/:./n.sock'}

box.schema.user.create('u', {password = 'secret'})

box.schema.user.grant('u', 'super')

s = box.schema.space.create('t', {format = {{'a', 'unsigned'}, {'b', 'string'}, {'c', 'any', is_nullable = true}}})

s:create_index('pk') s:create_index('sk', {parts = {2}, unique = false})

c = net.connect('u:secret@unix/:./n.sock')

c.state, c.error, c.host, c.port, c.protocol, c:is_connected(), c:wait_connected(), c:wait_connected(1)

c:ping(), c:ping({timeout = 10}), c.peer_uuid == box.info.uuid

-- calls

c:eval('return 1, {2, 3}, nil, 4')

c:eval('return')

c:eval('return ...', {1, 'x', {y = 2}})

c:eval('return ...', 1)

c:eval('error("x")')

c:eval('box.error(1, "x")')

c:eval('nosuch(')

function f(...) return ... end

function g() return box.tuple.new{1, 2}, {box.tuple.new{3}} end

c:call('f'), c:call('f', {1, 2}), c:call('f', {{1, 2}})

c:call('f', 1)

c:call('nosuch')

type((c:call('g')))

c:eval('return box.session.user(), box.session.type()')

c:eval('fiber = require("fiber") fiber.sleep(1)', {}, {timeout = 0.01})

c:call('f', {print})

c.call('f')

-- spaces

t = c.space.t

t.name, t.id == s.id, t.engine, t.temporary, c.space[s.id] == t, c.space.nosuch, t.index.pk.name, t.index[1].name, t.index.sk.unique

t.index.pk.parts[1].fieldno, t.index.pk.parts[1].type, t.index.sk.type

t:insert({1, 'a'}), t:replace({2, 'b', {5}}), t:replace({3, 'c'}), t:insert(box.tuple.new{4, 'c'})

t:insert({1, 'a'})

t:insert({'x'})

t:insert(5)

t:insert()

t:select(), t:select(2), t:select({2}), t:select({}), t:select(9)

t:select(2, {iterator = 'GE'}), t:select(2, {iterator = 'LT'}), t:select({}, {limit = 2, offset = 1}), t:select(2, {iterator = box.index.GT, limit = 1})

t:select('x')

t:select(1, {iterator = 'NOSUCH'})

t:get(1), t:get({2}), t:get(9), t.index.pk:get(1), t.index.sk:select('c'), t.index.sk:get('a')

t.index.sk:get('c')

t.index.pk:min(), t.index.pk:max(), t.index.sk:min('c'), t.index.pk:count(), t.index.sk:count('c')

t:update(1, {{'=', 3, 'z'}}), t:update({9}, {{'=', 3, 'z'}}), t.index.pk:update(2, {{'#', 3, 1}})

t:update(1, {{'=', 1, 9}})

t:upsert({1, 'a'}, {{'=', 3, 'up'}}), t:upsert({5, 'e'}, {{'=', 3, 'up'}}), t:get(1), t:get(5)

t:delete(5), t:delete(5), t.index.pk:delete(4)

box.tuple.is(t:get(1)), t:get(1)[2], t:get(1):totable()

t.insert({1})

t.index.pk.select()

c.space.t:insert({1, 'a'}, {timeout = 1})

-- the schema follows

on_reload = 0

c:on_schema_reload(function() on_reload = on_reload + 1 end) ~= nil

box.schema.space.create('later'):create_index('pk').name

c:ping(), c:reload_schema(), c.space.later.name, c.space.later.index[0].name

c.space.later:insert({1}), box.space.later:drop()

c:ping(), c:reload_schema(), c.space.later, c.space.t == t

-- futures

future = c:call('f', {1, 2}, {is_async = true})

future:is_ready(), future:wait_result(1), future:is_ready(), future:result()

future = c:eval('require("fiber").sleep(0.05) return 7', {}, {is_async = true})

future:is_ready(), future:result()

future:wait_result(0.001)

future:wait_result(1)

future = c:eval('error("x")', {}, {is_async = true})

future:wait_result(1)

future:result()

future = t:select({}, {is_async = true, limit = 1})

future:wait_result(1)

future = t:get(1, {is_async = true})

future:wait_result(1)

future = c:call('f', {1}, {is_async = true})

future:discard(), future:is_ready()

future:result()

future:wait_result(1)

future:wait_result('x')

futures = {} for i = 1, 100 do futures[i] = c:call('f', {i}, {is_async = true}) end

sum = 0 for i = 1, 100 do sum = sum + futures[i]:wait_result(1)[1] end

sum

-- one request at a time is bounded

c:timeout(1):ping(), c:timeout(0.01):eval('require("fiber").sleep(1)')

-- connections that fail

d = net.connect('unix/:./nosuch.sock')

d.state, d.error, d:is_connected(), d:wait_connected(0.01), d:ping()

d:eval('return 1')

d:close(), d.state

d = net.connect('u:wrong@unix/:./n.sock')

d.state, d.error

d:call('f')

d = net.connect('nosuch@unix/:./n.sock')

d.state, d.error

d = net.connect('unix/:./n.sock', {user = 'u', password = 'secret', wait_connected = false})

d.state, d:wait_connected(1), d.state, d:eval('return box.session.user()')

d:close(), d.state, d.error, d:ping()

d:eval('return 1')

d:close()

d = net.connect('unix/:./n.sock')

d.state, d:eval('return 1')

d:close()

net.connect()

net.connect({})

net.connect('unix/:./n.sock', {password = 'x'}).state

-- triggers

log = {}

d = net.connect('u:secret@unix/:./n.sock', {wait_connected = false})

d:on_connect(function(conn) table.insert(log, 'connect') end) ~= nil, d:on_disconnect(function(conn) table.insert(log, 'disconnect') end) ~= nil

d:wait_connected(1), fiber.sleep(0.01), log

d:close(), fiber.sleep(0.01), log

-- a server that goes away and comes back

d = net.connect('u:secret@unix/:./n.sock', {reconnect_after = 0.01})

d:eval('return 1')

box.cfg{listen = box.NULL}

box.cfg{listen = 'unix/:./n.sock'}

d:wait_connected(5), d:eval('return 2')

d:close()

-- a server that is none

socket = require('socket')

bad = socket.tcp_server('unix/', './b.sock', function(client) client:write(('x'):rep(128)) client:read(1) end)

d = net.connect('unix/:./b.sock')

d.state ~= 'active', d.error ~= nil, d:close(), bad:close()

bad = socket.tcp_server('unix/', './b.sock', function(client) client:write('Tarantool') end)

d = net.connect('unix/:./b.sock')

d.state, d:close(), bad:close()

bad = socket.tcp_server('unix/', './b.sock', function(client) client:read(1) end)

d = net.connect('unix/:./b.sock', {connect_timeout = 0.05})

d.state ~= 'active', d:close(), bad:close()

-- this process

net.self:ping(), net.self:is_connected(), net.self:wait_connected(), net.self:call('f', {1, 2}), net.self:eval('return ...', {5})

net.self:call('nosuch')

net.self:eval('error("x")')

net.self.space.t:get(1)

c:close()
