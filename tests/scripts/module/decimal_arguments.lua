-- decimal: what is no decimal, signs of zeros, and all digits of what is rounded

decimal, ffi = require('decimal'), require('ffi')

function try(f, ...) local ok, v = pcall(f, ...) return tostring(v) end

a = {decimal.new('1.5'), decimal.new('-0.001'), decimal.new('99999999999999999999999999999999999999'), decimal.new(0), decimal.new('-2.5'), decimal.new('123.456')}

try(decimal.round, a[1], -1)

try(decimal.round, a[2], -1)

try(decimal.round, a[3], -1)

try(decimal.round, a[4], -1)

try(decimal.round, a[6], -1)

try(decimal.round, a[1], 0)

try(decimal.round, a[2], 0)

try(decimal.round, a[3], 0)

try(decimal.round, a[4], 0)

try(decimal.round, a[6], 0)

try(decimal.round, a[1], 2)

try(decimal.round, a[2], 2)

try(decimal.round, a[3], 2)

try(decimal.round, a[4], 2)

try(decimal.round, a[6], 2)

try(decimal.round, a[1], 37)

try(decimal.round, a[2], 37)

try(decimal.round, a[3], 37)

try(decimal.round, a[4], 37)

try(decimal.round, a[6], 37)

try(decimal.round, a[1], 38)

try(decimal.round, a[2], 38)

try(decimal.round, a[3], 38)

try(decimal.round, a[4], 38)

try(decimal.round, a[6], 38)

try(decimal.round, a[1], 39)

try(decimal.round, a[2], 39)

try(decimal.round, a[3], 39)

try(decimal.round, a[4], 39)

try(decimal.round, a[6], 39)

try(decimal.round, a[1], '2')

try(decimal.round, a[2], '2')

try(decimal.round, a[3], '2')

try(decimal.round, a[4], '2')

try(decimal.round, a[6], '2')

try(decimal.round, a[1], {})

try(decimal.round, a[2], {})

try(decimal.round, a[3], {})

try(decimal.round, a[4], {})

try(decimal.round, a[6], {})

try(decimal.round, a[1], 5ULL)

try(decimal.round, a[2], 5ULL)

try(decimal.round, a[3], 5ULL)

try(decimal.round, a[4], 5ULL)

try(decimal.round, a[6], 5ULL)

try(decimal.round, a[1])

try(decimal.round, 5ULL)

try(decimal.round, 5ULL, 1)

try(decimal.round, 2, 1)

try(decimal.rescale, a[1], -1)

try(decimal.rescale, a[2], -1)

try(decimal.rescale, a[3], -1)

try(decimal.rescale, a[4], -1)

try(decimal.rescale, a[6], -1)

try(decimal.rescale, a[1], 0)

try(decimal.rescale, a[2], 0)

try(decimal.rescale, a[3], 0)

try(decimal.rescale, a[4], 0)

try(decimal.rescale, a[6], 0)

try(decimal.rescale, a[1], 2)

try(decimal.rescale, a[2], 2)

try(decimal.rescale, a[3], 2)

try(decimal.rescale, a[4], 2)

try(decimal.rescale, a[6], 2)

try(decimal.rescale, a[1], 37)

try(decimal.rescale, a[2], 37)

try(decimal.rescale, a[3], 37)

try(decimal.rescale, a[4], 37)

try(decimal.rescale, a[6], 37)

try(decimal.rescale, a[1], 38)

try(decimal.rescale, a[2], 38)

try(decimal.rescale, a[3], 38)

try(decimal.rescale, a[4], 38)

try(decimal.rescale, a[6], 38)

try(decimal.rescale, a[1], 39)

try(decimal.rescale, a[2], 39)

try(decimal.rescale, a[3], 39)

try(decimal.rescale, a[4], 39)

try(decimal.rescale, a[6], 39)

try(decimal.rescale, a[1], '2')

try(decimal.rescale, a[2], '2')

try(decimal.rescale, a[3], '2')

try(decimal.rescale, a[4], '2')

try(decimal.rescale, a[6], '2')

try(decimal.rescale, a[1], {})

try(decimal.rescale, a[2], {})

try(decimal.rescale, a[3], {})

try(decimal.rescale, a[4], {})

try(decimal.rescale, a[6], {})

try(decimal.rescale, a[1], 5ULL)

try(decimal.rescale, a[2], 5ULL)

try(decimal.rescale, a[3], 5ULL)

try(decimal.rescale, a[4], 5ULL)

try(decimal.rescale, a[6], 5ULL)

try(decimal.rescale, a[1])

try(decimal.rescale, 5ULL)

try(decimal.rescale, 5ULL, 1)

try(decimal.rescale, 2, 1)

try(decimal.abs, )

try(decimal.abs, 5ULL)

try(decimal.abs, '1.5')

try(decimal.abs, box.NULL)

try(decimal.abs, {})

try(decimal.abs, a[4])

try(decimal.abs, ffi.cast('float', 0.5))

try(decimal.trim, )

try(decimal.trim, 5ULL)

try(decimal.trim, '1.5')

try(decimal.trim, box.NULL)

try(decimal.trim, {})

try(decimal.trim, a[4])

try(decimal.trim, ffi.cast('float', 0.5))

try(decimal.precision, )

try(decimal.precision, 5ULL)

try(decimal.precision, '1.5')

try(decimal.precision, box.NULL)

try(decimal.precision, {})

try(decimal.precision, a[4])

try(decimal.precision, ffi.cast('float', 0.5))

try(decimal.is_decimal, )

try(decimal.is_decimal, 5ULL)

try(decimal.is_decimal, '1.5')

try(decimal.is_decimal, box.NULL)

try(decimal.is_decimal, {})

try(decimal.is_decimal, a[4])

try(decimal.is_decimal, ffi.cast('float', 0.5))

try(decimal.ln, decimal.new(2))

try(decimal.log10, decimal.new(2))

try(decimal.sqrt, decimal.new(2))

try(decimal.exp, decimal.new(2))

try(decimal.ln, decimal.new(10))

try(decimal.log10, decimal.new(10))

try(decimal.sqrt, decimal.new(10))

try(decimal.exp, decimal.new(10))

try(decimal.ln, decimal.new('1.5'))

try(decimal.log10, decimal.new('1.5'))

try(decimal.sqrt, decimal.new('1.5'))

try(decimal.exp, decimal.new('1.5'))

try(decimal.ln, decimal.new('1e-20'))

try(decimal.log10, decimal.new('1e-20'))

try(decimal.sqrt, decimal.new('1e-20'))

try(decimal.exp, decimal.new('1e-20'))

try(decimal.ln, decimal.new('100.00'))

try(decimal.log10, decimal.new('100.00'))

try(decimal.sqrt, decimal.new('100.00'))

try(decimal.exp, decimal.new('100.00'))

try(decimal.ln, decimal.new('0.001'))

try(decimal.log10, decimal.new('0.001'))

try(decimal.sqrt, decimal.new('0.001'))

try(decimal.exp, decimal.new('0.001'))

try(decimal.ln, decimal.new('2.25'))

try(decimal.log10, decimal.new('2.25'))

try(decimal.sqrt, decimal.new('2.25'))

try(decimal.exp, decimal.new('2.25'))

try(decimal.ln, decimal.new('1.000'))

try(decimal.log10, decimal.new('1.000'))

try(decimal.sqrt, decimal.new('1.000'))

try(decimal.exp, decimal.new('1.000'))

try(decimal.ln, decimal.new('99999999999999999999999999999999999999'))

try(decimal.log10, decimal.new('99999999999999999999999999999999999999'))

try(decimal.sqrt, decimal.new('99999999999999999999999999999999999999'))

try(decimal.exp, decimal.new('99999999999999999999999999999999999999'))

try(decimal.ln, decimal.new('-0'))

try(decimal.log10, decimal.new('-0'))

try(decimal.exp, decimal.new('-0'))

try(decimal.ln, decimal.new(88))

try(decimal.log10, decimal.new(88))

try(decimal.sqrt, decimal.new(88))

try(decimal.exp, decimal.new(88))

a[1] % a[2]

a[2] % a[1]

a[1] % a[5]

a[5] % a[1]

true % a[2]

a[2] % true

true % a[5]

a[5] % true

nil % a[2]

a[2] % nil

nil % a[5]

a[5] % nil

'x' % a[2]

a[2] % 'x'

'x' % a[5]

a[5] % 'x'

'-' % a[2]

a[2] % '-'

'-' % a[5]

a[5] % '-'

{} % a[2]

a[2] % {}

{} % a[5]

a[5] % {}

box.NULL % a[2]

a[2] % box.NULL

box.NULL % a[5]

a[5] % box.NULL

5ULL % a[2]

a[2] % 5ULL

5ULL % a[5]

a[5] % 5ULL

print % a[2]

a[2] % print

print % a[5]

a[5] % print

-7 % a[2]

a[2] % -7

-7 % a[5]

a[5] % -7

a[1] ^ a[2]

a[2] ^ a[1]

a[1] ^ a[5]

a[5] ^ a[1]

true ^ a[2]

a[2] ^ true

true ^ a[5]

a[5] ^ true

'x' ^ a[2]

a[2] ^ 'x'

'x' ^ a[5]

a[5] ^ 'x'

'-' ^ a[2]

a[2] ^ '-'

'-' ^ a[5]

a[5] ^ '-'

{} ^ a[2]

a[2] ^ {}

{} ^ a[5]

a[5] ^ {}

box.NULL ^ a[2]

a[2] ^ box.NULL

box.NULL ^ a[5]

a[5] ^ box.NULL

5ULL ^ a[2]

a[2] ^ 5ULL

5ULL ^ a[5]

a[5] ^ 5ULL

print ^ a[2]

a[2] ^ print

print ^ a[5]

a[5] ^ print

-7 ^ a[2]

a[2] ^ -7

-7 ^ a[5]

a[5] ^ -7

a[1] == a[2]

a[2] == a[1]

a[1] == a[5]

a[5] == a[1]

true == a[2]

a[2] == true

true == a[5]

a[5] == true

nil == a[2]

a[2] == nil

nil == a[5]

a[5] == nil

'x' == a[2]

a[2] == 'x'

'x' == a[5]

a[5] == 'x'

'-' == a[2]

a[2] == '-'

'-' == a[5]

a[5] == '-'

{} == a[2]

a[2] == {}

{} == a[5]

a[5] == {}

box.NULL == a[2]

a[2] == box.NULL

box.NULL == a[5]

a[5] == box.NULL

5ULL == a[2]

a[2] == 5ULL

5ULL == a[5]

a[5] == 5ULL

print == a[2]

a[2] == print

print == a[5]

a[5] == print

-7 == a[2]

a[2] == -7

-7 == a[5]

a[5] == -7

a[2] < a[1]

a[2] < true

a[2] < nil

a[2] < 'x'

a[2] < '-'

a[2] < {}

a[2] < box.NULL

a[2] < 5ULL

a[2] < print

a[2] < -7

a[2] <= a[1]

a[2] <= true

a[2] <= nil

a[2] <= 'x'

a[2] <= '-'

a[2] <= {}

a[2] <= box.NULL

a[2] <= 5ULL

a[2] <= print

a[2] <= -7

decimal.new('1.5') % decimal.new('-0.001')

decimal.new('-7.25') % decimal.new('-0.001')

decimal.new('-7') % decimal.new('2')

decimal.new('-6') % decimal.new('2')

decimal.new('0') % decimal.new('-3')

decimal.new('0') / decimal.new('-3')

decimal.new('-0.00') / decimal.new('7')

decimal.new('-0') ^ decimal.new('3')

decimal.new('6') / decimal.new('3')

decimal.new('1') / decimal.new('3')

decimal.new('1.00') / decimal.new('4.0')

decimal.new('1e20') / decimal.new('1e-10')

decimal.new('10') / decimal.new('4')

decimal.new('1e-30') / decimal.new('3')

decimal.new('100') / decimal.new('10')

decimal.new('100') / decimal.new('1e5')

decimal.new('2') ^ decimal.new('-1')

decimal.new('2') ^ decimal.new('0.5')

decimal.new('4') ^ decimal.new('0.5')

decimal.new('1.1') ^ decimal.new('2')

decimal.new('1.10') ^ decimal.new('3')

decimal.new('10') ^ decimal.new('37')

decimal.new('10') ^ decimal.new('38')

decimal.new('3') ^ decimal.new('100')

decimal.new('0.1') ^ decimal.new('38')

decimal.new('0.1') ^ decimal.new('39')

decimal.new('0.1') ^ decimal.new('50')

decimal.new('2') ^ decimal.new('3.0')

decimal.new('-2') ^ decimal.new('3')

decimal.new('-2') ^ decimal.new('0.5')

decimal.new('0') ^ decimal.new('0')

decimal.new('1') ^ decimal.new('1e30')

decimal.new('2') ^ decimal.new('1.5')

decimal.new('1.5') ^ decimal.new('1.5')
