-- digest: hashes and base64 of known texts

digest = require('digest')

digest.md5_hex('')

digest.md5_hex('The quick brown fox')

digest.md5('x'):hex()

digest.sha1_hex('The quick brown fox')

digest.sha1('x'):hex()

digest.sha224_hex('x')

digest.sha256_hex('x')

digest.sha384_hex('x')

digest.sha512_hex('x')

digest.crc32('The quick brown fox')

digest.crc32('')

c = digest.crc32.new()

c:update('The quick ')

c:update('brown fox')

c:result()

c:clear()

c:result()

digest.base64_encode('')

digest.base64_encode('a')

digest.base64_encode('\255\254\253')

digest.base64_encode('\255\254\253', {urlsafe = true})

digest.base64_encode('a', {nopad = true})

digest.base64_encode(('x'):rep(60))

digest.base64_encode(('x'):rep(60), {nowrap = true})

digest.base64_decode('YQ==')

digest.base64_decode('YWJj')

digest.base64_decode('YW Jj\n')

digest.base64_decode(digest.base64_encode('\0\1\2')):hex()

digest.base64_decode('__79', {urlsafe = true}):hex()

digest.guava(10863919174838991, 11)

digest.guava(2016238256797177309ULL, 7)

digest.murmur('The quick brown fox')

m = digest.murmur.new{seed = 13} m:update('x') return m:result()

digest.pbkdf2('password', 'salt', 1, 20):hex()

digest.pbkdf2_hex('password', 'salt', 2, 20)

digest.aes256cbc.encrypt('text', ('k'):rep(32), ('i'):rep(16)):hex()

digest.aes256cbc.decrypt(digest.aes256cbc.encrypt('text', ('k'):rep(32), ('i'):rep(16)), ('k'):rep(32), ('i'):rep(16))

#digest.urandom(16)

digest.urandom()

digest.md5_hex()

digest.md5_hex(5)

digest.sha1(nil)

digest.base64_encode()

digest.crc32(5)
