-- sums of floats and doubles are stored in four bytes if they are the same number

ffi = require('ffi')

msgpack = require('msgpack')

single = function(value) return ffi.cast('float', value) end

stored = function(tuple) return (msgpack.encode(tuple):gsub('.', function(c) return ('%02x'):format(c:byte()) end)) end

try = function(a, op, b) return stored(box.tuple.new{1, a}:update{{op, 2, b}}) end

try(-2147483649, '-', single(0.5))

try(1, '+', single(0.5))

try(single(0.5), '+', single(0.1))

try(single(3e38), '+', single(3e38))

try(single(0.5), '+', 0.25)

try(1.5, '+', 0.25)

try(0.1, '+', 0.2)

try(2, '+', 1.5)

try(16777217, '+', single(0))

try(16777216, '+', single(0.5))

try(1/0, '+', 1)

try(-0.0, '+', single(0))

try(single(3.4e38), '+', 1)

-- a field of doubles takes eight bytes

s = box.schema.space.create('t', {format = {{'id', 'unsigned'}, {'d', 'double'}, {'any', 'any', is_nullable = true}}})

_ = s:create_index('primary')

s:replace{1, 0.5, 0.5}

stored(s:update(1, {{'+', 2, 1.25}}))

stored(s:update(1, {{'!', 2, 2.5}, {'+', 2, 0.25}}))
