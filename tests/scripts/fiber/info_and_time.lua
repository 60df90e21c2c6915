-- clocks, info and top of the fiber module exist

fiber = require('fiber')

type(fiber.time())

type(fiber.time64())

type(fiber.clock())

type(fiber.clock64())

fiber.time() > 1500000000

fiber.time64() > 1500000000000000ULL

t = fiber.clock() fiber.sleep(0.01) return fiber.clock() - t >= 0.009

t = fiber.time() for i = 1, 100 do end return fiber.time() == t

info = fiber.info()[fiber.id()]

info.name

info.fid == fiber.id()

type(info.csw)

type(info.memory)

type(info.memory.used)

type(info.memory.total)

type(info.backtrace)

fiber.time() >= 0
