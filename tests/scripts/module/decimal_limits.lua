-- decimals at the ends of their range: rounding, scale, zeros, powers

decimal = require('decimal')

msgpack = require('msgpack')

d = decimal.new

stored = function(value) return (msgpack.encode(value):gsub('.', function(c) return ('%02x'):format(c:byte()) end)) end

nines = d(('9'):rep(38))

d('1.5') ^ d('1e21')

d('-0') ^ -2

d('0.5') ^ d('-1e37')

d('0.5') ^ d('1e37')

d('2') ^ 10

d('1.5') ^ 2

d('-2') ^ 3

nines - d('0.5')

nines + d('0.5')

nines * 10

d('1e-38') / 10

d('1.50') * d('1.50')

d('6.00') / 2

d(1) / 3

d(10) / 5

d('1.00') - 1

d(7) % 3

d('-7.5') % 2

stored(d('-1e-300'))

stored(d('-0'))

stored(d('-0.00'))

stored(d('1e37'))

stored(d('1E2'))

stored(d(1e22))

stored(d(0.1))

stored(d(1 / 3))

stored(d(123456789.123456789))

stored(d(9007199254740993))

stored(msgpack.decode(msgpack.encode(d('-0.0'))))

decimal.new(1e38)

decimal.new('1e38')

decimal.new(' 1')

decimal.sqrt(d('4.00'))

decimal.sqrt(2)

decimal.exp(d('-1e37')) == 0

decimal.ln(d(1))

decimal.abs(d('-0.0'))

-d('1.0')

d('0.1') == 0.1

d('1.0') == 1
