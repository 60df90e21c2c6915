-- msgpack: bytes of each kind of value, and back

msgpack = require('msgpack')

function hex(...) return msgpack.encode(...):hex() end

hex(nil)

hex(box.NULL)

hex(true)

hex(false)

hex(0)

hex(127)

hex(128)

hex(255)

hex(256)

hex(65536)

hex(4294967296)

hex(-1)

hex(-32)

hex(-33)

hex(-128)

hex(-129)

hex(-32769)

hex(-2147483649)

hex(18446744073709551615ULL)

hex(-9223372036854775808LL)

hex(1.5)

hex(1e100)

hex(2^53)

hex(2^63)

hex(2^64)

hex(-2^63)

hex(0/0) == hex(0/0)

hex(require('ffi').cast('float', 1.5))

hex(require('ffi').cast('double', 1))

hex('')

hex('abc')

hex(('x'):rep(32)):sub(1, 8)

hex(('x'):rep(256)):sub(1, 8)

hex{}

hex{1, 2}

hex{a = 1}

hex{1, nil, 3}

hex(setmetatable({}, msgpack.map_mt))

hex(setmetatable({}, msgpack.array_mt))

hex(box.tuple.new{1, 2})

hex(require('uuid').fromstr('11111111-2222-3333-4444-555555555555'))

hex(require('decimal').new('-12.345'))

hex(require('decimal').new('0'))

hex(function() end)

hex()

many = {} for i = 1, 16 do many[i] = i end

hex(many):sub(1, 8)

-- decode

msgpack.decode('\1')

msgpack.decode('\147\1\2\3')

msgpack.decode('\129\161a\1')

msgpack.decode('\1\2\3')

msgpack.decode('\1\2\3', 2)

msgpack.decode('\1\2\3', 4)

msgpack.decode('\207\255\255\255\255\255\255\255\255')

msgpack.decode('\211\128\0\0\0\0\0\0\0')

msgpack.decode('\202\63\192\0\0')

msgpack.decode('\196\3abc')

msgpack.decode('\192')

msgpack.decode('')

msgpack.decode('\147\1')

msgpack.decode('\217\5ab')

msgpack.decode()

msgpack.decode(5)

msgpack.decode_unchecked('\147\1\2\3')

msgpack.decode(msgpack.encode(require('uuid').fromstr('11111111-2222-3333-4444-555555555555')))

msgpack.decode(msgpack.encode(require('decimal').new('-12.345')))

msgpack.decode('\199\1\99\0')

msgpack.decode_array_header('\147\1\2\3', 4) == nil

msgpack.decode(msgpack.encode{[1] = 'a', [2] = 'b', x = 'c'})

msgpack.NULL == nil
