-- digest: numbers out of their range

digest = require('digest')

digest.pbkdf2_hex('a', 'b', 2, 0)

digest.pbkdf2_hex('a', 'b', 2, -1)

digest.pbkdf2('a', 'b', 0, 5)

digest.pbkdf2('a', 'b', 2, 129)

digest.pbkdf2('a', 'b', '2', '3')

digest.pbkdf2('a', 5, 2, 1)

digest.crc32_update(2^53, 'a')

digest.crc32_update(-1, 'a')

digest.crc32_update(1e300, 'a')

digest.crc32_update(-5LL, 'a')

digest.crc32_update('1', 'a')

digest.crc32_update(nil, 'a')

digest.crc32_update(1)

digest.guava(1e300, 4)

digest.guava(-1, 4)

digest.guava(2^63, 4)

digest.guava(5, 2^32)

digest.guava('a', 4)

digest.guava({}, 4)

digest.guava(5, 'a')

digest.guava(box.NULL, 4)

require('msgpack').decode('')

require('json').encode({}, '%d')

box.tuple.new{require('uuid').fromstr('00000000-0000-0000-0000-000000000000')}
