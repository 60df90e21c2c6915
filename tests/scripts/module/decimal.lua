-- decimal: exact arithmetic of up to 38 digits

decimal = require('decimal')

d = decimal.new('123.456')

d

type(d)

tostring(d)

decimal.new(5)

decimal.new(1.5)

decimal.new(0.1)

decimal.new(-7LL)

decimal.new(18446744073709551615ULL)

decimal.new('1e5')

decimal.new('-1e-5')

decimal.new('  1')

decimal.new('1x')

decimal.new('')

decimal.new()

decimal.new(nil)

decimal.new({})

decimal.new('NaN')

decimal.new('inf')

decimal.new(0/0)

decimal.new('1' .. ('0'):rep(37))

decimal.new('1' .. ('0'):rep(38))

decimal.new('0.' .. ('1'):rep(50))

d + 1

d - '0.456'

d * 2

d / 3

d % 2

d ^ 2

-d

1 + d

'1' + d

d + 0.1

d + 1.5

d + {}

d / 0

d == 123.456

d == decimal.new('123.456')

d == decimal.new('123.4560')

d == '123.456'

d < 124

d <= 123

d > 'x'

decimal.new('1.10') == decimal.new('1.1')

decimal.new('1.10')

decimal.abs(-5)

decimal.abs(decimal.new('-5.5'))

decimal.sqrt(2)

decimal.sqrt(16)

decimal.sqrt(-1)

decimal.exp(1)

decimal.ln(10)

decimal.ln(0)

decimal.log10(1000)

decimal.round(d, 1)

decimal.round('1.25', 1)

decimal.round('1.35', 1)

decimal.round(d, 0)

decimal.round(d, 10)

decimal.round(d, -1)

decimal.round(decimal.new('1.25'), 1)

decimal.round(decimal.new('1.35'), 1)

decimal.round(decimal.new('-1.25'), 1)

decimal.trim(decimal.new('1.500'))

decimal.trim(decimal.new('100'))

decimal.rescale(decimal.new('1.5'), 3)

decimal.rescale(decimal.new('1.55'), 1)

decimal.scale(decimal.new('1.500'))

decimal.precision(decimal.new('1.500'))

decimal.precision(decimal.new('0.001'))

decimal.scale(decimal.new('100'))

decimal.trim('1.500')

decimal.trim('100')

decimal.rescale('1.5', 3)

decimal.rescale('1.55', 1)

decimal.scale('1.500')

decimal.precision('1.500')

decimal.precision('0.001')

decimal.scale('100')

decimal.is_decimal(d)

decimal.is_decimal(1)

decimal.is_decimal(nil)

decimal.new('99999999999999999999999999999999999999') + 1

decimal.new('0.1') + decimal.new('0.2')

decimal.new('1e37') * decimal.new('10')

decimal.new(2) ^ 100

decimal.new(2) ^ 200

decimal.new(2) ^ -1

decimal.new(2) ^ 0.5

tonumber(tostring(decimal.new('1.5')))

box.tuple.new{decimal.new('1.50')}[1] == decimal.new('1.5')

require('json').encode{decimal.new('1.50')}
