-- module buffer: memory that grows at its end and is read from its front

buffer = require('buffer')

ffi = require('ffi')

msgpack = require('msgpack')

buffer.READAHEAD

b = buffer.ibuf()

tostring(b), b:size(), b:capacity(), b:pos(), b:unused(), b.buf == nil, b.rpos == nil, b.wpos == nil, b.epos == nil

-- alloc, reserve and what is left

p = b:alloc(10)

ffi.fill(p, 10, 65)

b:size(), b:pos(), b.wpos - b.rpos, p == b.buf, p == b.rpos

ffi.string(b.rpos, 10)

b:reserve(100) == b.wpos, b:size(), b:unused() >= 100

b:reserve(0) == b.wpos

b:checksize(4) == b.rpos, b:size()

b:read(4) == b.buf, b:size(), b:pos()

b:read(100)

b:checksize(100)

b:size(), ffi.string(b.rpos, b:size())

-- what moves

b:alloc(20000) ~= nil, b:size() == 20006, b:pos(), b:capacity() >= 20006

ffi.string(b.rpos, 6)

b:reset()

b:size(), b:pos(), b:capacity() >= 20006

b:recycle()

b:size(), b:pos()

b:alloc(1) ~= nil, b:size()

-- used wrongly

b.alloc()

b.alloc(1, 2)

b.reserve()

b.size()

b.capacity(3)

b.pos({})

b.unused()

b.read()

b.checksize('a')

b.reset()

b.recycle()

b:alloc()

b:nothing()

b.nothing

buffer.ibuf(10):capacity() >= 10

buffer.ibuf(100):size()

buffer.ibuf("x")

-- msgpack to and from it

b = buffer.ibuf()

msgpack.encode({1, 2, 'abc'}, b)

msgpack.encode('x', b), b:size()

msgpack.decode(b.rpos, b:size())

v, b.rpos = msgpack.decode(b.rpos, b:size())

v, b:size()

v, b.rpos = msgpack.decode_unchecked(b.rpos)

v, b:size()

msgpack.encode(1, 5)

msgpack.encode(1, {})

msgpack.encode(1, 'x')

msgpack.encode(1, nil)

msgpack.encode(1, b, 3)

msgpack.encode(print, b)

b:size()

msgpack.encode(1, b.buf)

ffi.typeof('struct ibuf') == ffi.typeof(b), ffi.istype('struct ibuf', b)

many = {} for i = 1, 10000 do many[i] = i end

msgpack.encode(many, b), b:size()


-- a pointer to one is as good

q = ffi.cast('struct ibuf *', b)

q:size(), q:capacity() == b:capacity()

b:recycle()

msgpack.encode(7, q), b:size()

-- bytes for a short while

p = buffer.static_alloc('char', 16)

ffi.fill(p, 16, 66)

ffi.string(p, 16)
