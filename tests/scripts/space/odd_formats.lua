-- Formats whose fields are spelt in odd ways.
s = box.schema.space.create('s')

s:format{{'a', 'num'}} return s:format()

s:format{{'a', 'str'}} return s:format()

s:format{{'a', 'int'}}

s:format{{'a', 'UNSIGNED'}} return s:format()

s:format{{'a', '*'}} return s:format()

s:format{{name = 'a', [1] = 'b', type = 'string'}}

s:format{{name = 'a', [1] = 'string'}} return s:format()

s:format{{'a', 'string', other = 1}} return s:format()

s:format{{'a', 'string', 'x'}}

s:format{{type = 'string', 'a'}} return s:format()

s:format{5}

s:format{{'a', 5}}

s:format{{'a', 'string', collation = 'unicode'}} return s:format()

s:format{{'a', 'string', collation = 1}}

s:format{{'a', 'string', collation = 'none of these'}}

s:format{{'a', 'unsigned', collation = 'unicode'}}

s:format(5)

s:format('a')
