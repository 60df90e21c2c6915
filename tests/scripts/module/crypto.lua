-- ciphers, digests and keyed digests

crypto = require('crypto')

function hex(text) return (text:gsub('.', function(letter) return ('%02x'):format(letter:byte()) end)) end

function names(t) local out = {} for name in pairs(t) do table.insert(out, tostring(name)) end table.sort(out) return table.concat(out, ' ') end

names(crypto), names(crypto.cipher), names(crypto.cipher.aes128), names(crypto.cipher.aes128.cbc)

names(crypto.cipher_algo), crypto.cipher_algo.des, names(crypto.cipher_mode), crypto.cipher_mode.ofb

text, key, iv = 'hello world, this is long text', ('k'):rep(32), ('i'):rep(16)

function both(name, mode, size) local cipher = crypto.cipher[name][mode] local iv = mode == 'ecb' and '' or iv local made = cipher.encrypt(text, key:sub(1, size), iv) return hex(made), cipher.decrypt(made, key:sub(1, size), iv) end

both('aes128', 'cbc', 16)

both('aes128', 'cfb', 16)

both('aes128', 'ecb', 16)

both('aes128', 'ofb', 16)

both('aes192', 'cbc', 24)

both('aes192', 'cfb', 24)

both('aes192', 'ecb', 24)

both('aes192', 'ofb', 24)

both('aes256', 'cbc', 32)

both('aes256', 'cfb', 32)

both('aes256', 'ecb', 32)

both('aes256', 'ofb', 32)

crypto.cipher.none.cbc.encrypt('abc', '', ''), crypto.cipher.none.cfb.decrypt('abc', '', '')

crypto.cipher.none.cbc.encrypt('abc', 'k', '')

cbc = crypto.cipher.aes128.cbc

hex(cbc.encrypt('', key:sub(1, 16), iv)), crypto.cipher.aes128.cfb.encrypt('', key:sub(1, 16), iv)

-- what is wrong

cbc.encrypt('x', 'short', iv)

cbc.encrypt('x', key:sub(1, 16), 'i')

crypto.cipher.des.ecb.encrypt('x', 'short', '')

crypto.cipher.aes128.ecb.encrypt('x', key:sub(1, 16), 'i')

crypto.cipher.aes128.ecb.encrypt('x', key:sub(1, 16))

cbc.encrypt(5, key:sub(1, 16), iv)

cbc.encrypt()

cbc.encrypt('x', 5, 6)

cbc.encrypt('x', key:sub(1, 16), 6)

cbc.decrypt('garbage', key:sub(1, 16), iv)

cbc.decrypt('', key:sub(1, 16), iv)

cbc.decrypt(('g'):rep(16), key:sub(1, 16), iv)

_, e = pcall(cbc.encrypt, 'x', 'short', iv)

e.type, e.code, e.message

crypto.cipher.nosuch

crypto.cipher[5]

crypto.cipher.aes128.nosuch

crypto.cipher.aes128[{}]

crypto.digest.nosuch

crypto.digest.md2

crypto.hmac.nosuch

crypto.nosuch

-- piece by piece

c = cbc.encrypt.new(key:sub(1, 16), iv)

names(getmetatable(c).__index)

hex(c:update('hello')), hex(c:update(('x'):rep(20))), hex(c:update('')), hex(c:result())

c:update('x')

c:result()

c:init()

hex(c:update('hello')), hex(c:result())

c:init(nil, ('j'):rep(16))

hex(c:update('hello')), hex(c:result())

c:init('short')

c:init()

c:init(key:sub(1, 16))

c:free()

c:init()

c:update('x')

c:result()

c = cbc.encrypt.new()

c:update('x')

c:init(key:sub(1, 16))

c:update('x')

c:init(nil, iv)

c:update(5)

hex(c:result())

cbc.encrypt.new(5, 6)

d = cbc.decrypt.new(key:sub(1, 16), iv)

d:result()

d:result()

d:update('x')

d:result()

c = cbc.encrypt.new(key:sub(1, 16), iv)

c:init('short')

hex(c:update('x')), hex(c:result())

made = cbc.encrypt(text, key:sub(1, 16), iv)

d = cbc.decrypt.new(key:sub(1, 16), iv)

d:update(made:sub(1, 16)), d:update(made:sub(17, 17)), d:update(made:sub(18)), d:result()

-- digests

for _, name in ipairs({'md5', 'ripemd160', 'sha1', 'sha224', 'sha256', 'sha384', 'sha512'}) do print(name, hex(crypto.digest[name]('abc')), hex(crypto.digest[name]('')), hex(crypto.hmac[name]('key', 'abc')), crypto.hmac[name .. '_hex']('', ''), crypto.hmac[name .. '_hex'](key:rep(10), 'x')) end

hex(crypto.digest.md5('abc')), hex(crypto.digest.ripemd160('abc')), hex(crypto.digest.sha1('abc'))

hex(crypto.digest.sha224('abc')), hex(crypto.digest.sha256('abc')), hex(crypto.digest.sha384('abc')), hex(crypto.digest.sha512('abc'))

crypto.hmac.md5_hex('key', 'abc'), crypto.hmac.ripemd160_hex('key', 'abc'), crypto.hmac.sha1_hex('', ''), crypto.hmac.sha224_hex(key:rep(10), 'x')

crypto.hmac.sha256_hex('key', 'abc'), crypto.hmac.sha384_hex('key', ''), crypto.hmac.sha512_hex(key:rep(10), 'abc')

hex(crypto.hmac.sha256('key', 'abc')) == crypto.hmac.sha256_hex('key', 'abc')

crypto.digest.md5(5)

crypto.digest.md5()

crypto.hmac.sha256('key')

crypto.hmac.sha256(nil, 'abc')

crypto.hmac.sha256(5, 'abc')

crypto.hmac.sha256_hex('key')

crypto.hmac.sha256_hex(nil, 'abc')

crypto.hmac.sha256.new()

crypto.hmac.sha256.new(5)

d = crypto.digest.sha256.new()

names(getmetatable(d).__index)

d:update('a')

d:update('bc')

hex(d:result())

d:update('x')

d:result()

d:init()

hex(d:result())

d:init()

d:update(5)

d:update()

d:free()

d:update('x')

d:init()

h = crypto.hmac.sha256.new('key')

h:update('abc')

hex(h:result())

h:result()

h:update('x')

h:init()

h:init(5)

h:init('other')

hex(h:result())

h:free()

h:init('key')

h:update('x')

-- as digest has them

digest = require('digest')

hex(digest.aes256cbc.encrypt('text', key, iv)), digest.aes256cbc.decrypt(digest.aes256cbc.encrypt('text', key, iv), key, iv)

digest.aes256cbc.encrypt('text')

digest.aes256cbc.encrypt('text', 'k', 'i')

digest.md4(5)

digest.md4_hex(5)
