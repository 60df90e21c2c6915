-- fibers: create runs at once, new runs later, join brings results or the error

fiber = require('fiber')

log = {}

f = fiber.create(function(a) table.insert(log, a) end, 'ran at once')

log

f:status()

f = fiber.new(function(a) table.insert(log, a) return 'x', 2 end, 'ran later')

log

f:status()

f:set_joinable(true)

f:join()

log

f:status()

f:join()

f = fiber.new(function() error('failed') end)

f:set_joinable(true)

f:join()

f = fiber.new(function() box.error(box.error.PROC_LUA, 'reason') end)

f:set_joinable(true)

f:join()

f = fiber.new(function() error({code = 5}) end)

f:set_joinable(true)

f:join()

f = fiber.new(function() return nil, 1 end)

f:set_joinable(true)

f:join()

fiber.join(f)

f = fiber.create(function() fiber.sleep(0) end)

f:join()

f:status()

fiber.yield()

f:status()

type(f)

type(f:id())

fiber.self():status()

fiber.status()

fiber.id() == fiber.self():id()

fiber.find(fiber.id()) == fiber.self()

fiber.find(123456789)

fiber.create()

fiber.create(5)

fiber.new()

fiber.create(function() error('inside, only logged') end):status()

f = fiber.create(function() fiber.sleep(1000) end)

f:status()

f:cancel()

fiber.yield()

f:status()

f:name()

fiber.self():name()

f = fiber.new(function() end)

f:name()

f:name('worker')

f:name()

f:name(('n'):rep(300))

f:name(('n'):rep(300), {truncate = true})

#f:name()

f:name(5)

fiber.name()

fiber.kill(f:id())

fiber.cancel(123456789)

fiber.sleep(-1)

fiber.sleep('x')

fiber.sleep()

fiber.yield(1)

-- fibers take turns

log = {}

for i = 1, 3 do fiber.create(function() for k = 1, 3 do table.insert(log, i .. k) fiber.yield() end end) end

table.concat(log, ' ')

fiber.yield()

#log

fiber.yield()

#log

fiber.self().storage.key = 'value'

fiber.self().storage.key

f = fiber.new(function() return fiber.self().storage.key end)

f:set_joinable(true)

f:join()
