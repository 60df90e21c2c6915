-- module pickle: numbers and texts as bytes

pickle = require('pickle')

pickle.pack('A', 'abc'), pickle.pack('a', 'abc')

pickle.pack('b', 1), pickle.pack('b', 255), pickle.pack('b', 256), pickle.pack('b', -1)

string.hex(pickle.pack('s', 258)), string.hex(pickle.pack('i', 16909060)), string.hex(pickle.pack('l', 72623859790382856ULL)), string.hex(pickle.pack('q', 1LL))

string.hex(pickle.pack('n', 258)), string.hex(pickle.pack('N', 16909060)), string.hex(pickle.pack('Q', 1))

string.hex(pickle.pack('f', 1.5)), string.hex(pickle.pack('d', 1.5))

string.hex(pickle.pack('bsilNnQA', 1, 2, 3, 4, 5, 6, 7, 'x'))

pickle.pack('bA ', 65, 'b')

pickle.pack('')

pickle.pack()

pickle.pack(5)

pickle.pack('x', 1)

pickle.pack('b')

pickle.pack('b', 'x')

pickle.pack('b', {})

pickle.pack('b', 1, 2)

pickle.pack('A', 5)

pickle.pack('A', {})

pickle.pack('f', 'x')

pickle.pack('i', '17')

pickle.pack('i', 1.7)

pickle.pack('i', box.NULL)

pickle.pack('l', 1e300)

pickle.pack('q', -1)

pickle.unpack('b', 'A'), pickle.unpack('s', 'AB'), pickle.unpack('i', 'ABCD'), pickle.unpack('l', 'ABCDEFGH')

pickle.unpack('n', 'AB'), pickle.unpack('N', 'ABCD'), pickle.unpack('q', 'ABCDEFGH')

pickle.unpack('Q', 'ABCDEFGH')

pickle.unpack('f', pickle.pack('f', 1.5)), pickle.unpack('d', pickle.pack('d', 1.5))

pickle.pack('F', 1.5)

pickle.unpack('A', 'abc'), pickle.unpack('a', 'abc')

pickle.unpack('bA', 'abc')

pickle.unpack('b', 'ABC')

pickle.unpack('bb', 'AB')

pickle.unpack('bbb', 'AB')

pickle.unpack('i', 'ABC')

pickle.unpack('', '')

pickle.unpack('', 'x')

pickle.unpack('A', '')

pickle.unpack('b', '')

pickle.unpack('x', 'a')

pickle.unpack('b')

pickle.unpack()

pickle.unpack('b', 5)

pickle.unpack(5, 'a')

pickle.unpack('b', {})

pickle.unpack('bAb', 'abc')

pickle.unpack('l', '\255\255\255\255\255\255\255\255'), pickle.unpack('i', '\255\255\255\255'), pickle.unpack('b', '\255')

pickle.unpack('l', '\001\000\000\000\000\000\000\000')
