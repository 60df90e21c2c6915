-- module net.box: answers into a buffer, undecoded

net, msgpack, buffer = require('net.box'), require('msgpack'), require('buffer')

box.cfg{listen = 'unix/:./n.sock'}

box.schema.user.grant('guest', 'super')

s = box.schema.space.create('t')

_ = s:create_index('pk')

for i = 1, 3 do s:insert({i, 'x'}) end

c = net.connect('unix/:./n.sock')

b = buffer.ibuf()

function shown(size) local value = msgpack.decode(b.rpos, b:size()) local same = size == b:size() b:reset() return same, type(value[48]) == 'table' and {data = value[48]} or value end

shown(c.space.t:select({}, {buffer = b}))

shown(c.space.t:select({}, {buffer = b, skip_header = true}))

shown(c.space.t:select({2}, {buffer = b, skip_header = false}))

shown(c.space.t.index.pk:select({2}, {buffer = b, skip_header = true}))

shown(c.space.t:get({2}, {buffer = b}))

shown(c.space.t:insert({4}, {buffer = b, skip_header = true}))

shown(c.space.t:replace({4, 5}, {buffer = b, skip_header = true}))

shown(c.space.t:update({4}, {{'=', 2, 6}}, {buffer = b}))

shown(c.space.t:upsert({4}, {{'=', 2, 6}}, {buffer = b, skip_header = true}))

shown(c.space.t:delete({4}, {buffer = b, skip_header = true}))

shown(c.space.t.index.pk:min({}, {buffer = b, skip_header = true}))

shown(c.space.t.index.pk:max({}, {buffer = b}))

shown(c.space.t.index.pk:count({}, {buffer = b}))

function f(...) return ... end

shown(c:call('f', {1, {2}}, {buffer = b}))

shown(c:call('f', {1, {2}}, {buffer = b, skip_header = true}))

shown(c:eval('return 1, 2', {}, {buffer = b, skip_header = true}))

shown(c:eval('return', {}, {buffer = b, skip_header = true}))

shown(c:eval('return', {}, {buffer = b}))

c:ping({buffer = b}), b:size()

b:reset()

-- one behind the other

c.space.t:select({1}, {buffer = b, skip_header = true}), c.space.t:select({2}, {buffer = b, skip_header = true}), b:size()

v, b.rpos = msgpack.decode(b.rpos, b:size())

v, (msgpack.decode(b.rpos, b:size()))

b:reset()

-- futures

w = c.space.t:select({}, {is_async = true, buffer = b, skip_header = true})

shown(w:wait_result(10))

w = c:call('f', {1}, {is_async = true, buffer = b})

shown(w:wait_result(10))

w:result()

-- what fails is as without

c:call('nosuch', {}, {buffer = b})

c.space.t:insert({1}, {buffer = b}), b:size()

c.space.t:select({}, {buffer = b, timeout = 10}), b:size() > 0

b:reset()

-- a merger reads them

merger, key_def = require('merger'), require('key_def')

b1, b2 = buffer.ibuf(), buffer.ibuf()

_ = c.space.t:select({1}, {buffer = b1, skip_header = true}), c.space.t:select({1}, {iterator = 'GT', buffer = b2, skip_header = true})

m = merger.new(key_def.new(s.index.pk.parts), {merger.new_source_frombuffer(b2), merger.new_source_frombuffer(b1)})

list = {} for _, row in m:pairs() do list[#list + 1] = row:totable() end

list

c:close()

s:drop()
