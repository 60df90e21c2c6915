-- cancel wakes a fiber with an error at its next yield; testcancel looks without yielding

fiber = require('fiber')

log = {}

f = fiber.create(function() local ok, e = pcall(fiber.sleep, 1000) table.insert(log, {ok, tostring(e)}) fiber.testcancel() table.insert(log, 'not reached') end)

f:status()

f:cancel()

f:status()

fiber.yield()

f:status()

log

f:cancel()

fiber.testcancel()

f = fiber.new(function() fiber.sleep(1000) end)

f:set_joinable(true)

fiber.yield()

f:cancel()

f:join()

f = fiber.create(function() while true do if not pcall(fiber.testcancel) then break end fiber.yield() end log = 'ended' end)

fiber.yield()

f:cancel()

fiber.yield()

fiber.yield()

log

f = fiber.new(function() fiber.sleep(1000) return 'woken' end)

f:set_joinable(true)

fiber.yield()

f:wakeup()

f:join()

fiber.wakeup(fiber.id())

pcall(fiber.cancel, 'x')
