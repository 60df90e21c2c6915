-- string: the methods beyond those of Lua

('a,b,,c'):split(',')

('a b  c'):split()

('  a b  '):split()

('a,b,c'):split(',', 1)

('abc'):split(',')

(''):split(',')

('a--b--c'):split('--')

('a.b'):split('.')

('abc'):split('')

('abc'):split(5)

('  x y \t\n'):strip()

('  x '):lstrip()

(' x  '):rstrip()

('xxaxx'):strip('x')

('abcxcba'):strip('abc')

('xxa'):lstrip('x')

('axx'):rstrip('x')

(''):strip()

('abc'):startswith('ab')

('abc'):startswith('b')

('abc'):startswith('bc', 2)

('abc'):startswith('b', 2, 2)

('abc'):startswith('')

('abc'):startswith('c', -1)

('abc'):endswith('bc')

('abc'):endswith('ab')

('abc'):endswith('ab', 1, 2)

('abc'):endswith('')

('abc'):startswith(5)

('abc'):endswith()

('abc'):hex()

(''):hex()

('\0\255'):hex()

('abc'):ljust(6)

('abc'):ljust(6, '.')

('abc'):rjust(6)

('abc'):rjust(6, '.')

('abc'):center(7)

('abc'):center(8, '.')

('abc'):ljust(2)

('abc'):ljust(6, '..')

('abc'):ljust()

string.hex('A')

string.split('a:b', ':')

string.fromhex and string.fromhex('616263') or 'absent'

('%d items %s %5.2f %x'):format(3, 'x', 1.5, 255)

('%s'):format(nil)

('%d'):format('x')

('abc'):upper()

('абв'):upper()

#'абв'

('x'):rep(3)

('hello'):find('l')

('hello'):gsub('l', 'L')

('hello'):sub(2, -2)

('abc'):reverse()

('abc'):byte(1, -1)

-- utf8

utf8 = require('utf8')

utf8.len('абв')

utf8.upper('абв')

utf8.lower('АБВ')

utf8.sub('абвг', 2, 3)

utf8.char(1078, 97)

utf8.cmp('a', 'B')

utf8.casecmp('a', 'A')

utf8.len('\255')

utf8.isalpha('ж')

utf8.isdigit('5')

utf8.isupper('Ж')

utf8.next('жа')
