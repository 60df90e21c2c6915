-- clock: types and growth of the clocks

clock = require('clock')

type(clock.time())

type(clock.realtime())

type(clock.monotonic())

type(clock.proc())

type(clock.thread())

type(clock.time64())

type(clock.realtime64())

type(clock.monotonic64())

type(clock.proc64())

type(clock.thread64())

clock.time() > 1500000000

clock.time64() > 1500000000000000000ULL

a = clock.monotonic64() for i = 1, 1000 do end return clock.monotonic64() >= a

clock.bench(function(a, b) return a + b, 'x' end, 1, 2)[2]

type(clock.bench(function() end)[1])

clock.bench()

type(os.time())

type(os.clock())

os.date('!%Y-%m-%d %H:%M:%S', 0)
