-- fiber, box.session: which arguments are taken

fiber = require('fiber')

dead = fiber.create(function() end)

fiber.status(9999)

fiber.status(true)

fiber.status()

fiber.status('x')

fiber.status(nil)

fiber.status(5LL)

fiber.id(9999)

fiber.id(nil)

fiber.id({})

fiber.name(true)

fiber.name({})

fiber.name(nil)

fiber.find()

fiber.find('x')

fiber.find(true)

fiber.cancel(9999)

fiber.cancel('9999')

fiber.cancel({})

fiber.cancel()

fiber.cancel(nil)

fiber.cancel(box.NULL)

fiber.kill(true)

fiber.kill()

fiber.wakeup(9999)

fiber.wakeup('9999')

fiber.wakeup({})

fiber.wakeup()

fiber.wakeup(nil)

fiber.join(9999)

fiber.join(true)

fiber.join()

fiber.set_joinable()

fiber.set_joinable(true, true)

fiber.set_joinable(9999, true)

fiber.testcancel(1)

fiber.name(5)

fiber.name()

fiber.name('x', 1)

fiber.name()

fiber.status(dead)

fiber.wakeup(dead)

fiber.cancel(dead)

dead:status()

dead:wakeup()

dead:cancel()

dead:name()

box.session.peer(5LL)

box.session.peer('x')

box.session.peer('999')

box.session.peer({})

box.session.peer(999.5)

box.session.peer(nil)

box.session.peer(999)

box.session.peer()

box.session.peer(1, 2)

box.session.exists(999LL)

box.session.exists('x')

box.session.exists()

box.session.exists(nil)

box.session.exists({})

box.session.exists('999')

box.session.exists(1, 2)

box.session.fd(999LL)

box.session.fd('x')

box.session.fd(999)

box.session.fd(nil)
