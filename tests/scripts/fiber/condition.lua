-- conditions wake one or all waiting fibers

fiber = require('fiber')

c = fiber.cond()

c:signal()

c:broadcast()

c:wait(0)

c:wait(0.001)

log = {}

for i = 1, 3 do fiber.create(function() c:wait() table.insert(log, i) end) end

c:signal()

fiber.yield()

log

c:broadcast()

fiber.yield()

log

f = fiber.new(function() return c:wait(1000) end)

f:set_joinable(true)

fiber.yield()

c:signal()

f:join()

f = fiber.new(function() return c:wait() end)

f:set_joinable(true)

fiber.yield()

f:cancel()

f:join()

c:wait('x')

c:wait(-1)

c.wait()

type(c)
