-- Whole numbers of texts beyond what a double holds are signed 64-bit integers as long as they fit.
json, yaml, msgpack = require('json'), require('yaml'), require('msgpack')

json.decode('100000000000000'), yaml.decode('100000000000000')

json.decode('99999999999999'), yaml.decode('99999999999999')

json.decode('9223372036854775807'), yaml.decode('9223372036854775807')

json.decode('9223372036854775808'), yaml.decode('9223372036854775808')

json.decode('-9223372036854775808'), yaml.decode('-9223372036854775808')

msgpack.decode('\211\000\032\000\000\000\000\000\001')

msgpack.decode('\207\000\032\000\000\000\000\000\001')

-- The number of an unknown extension is shown without a sign.
msgpack.decode('\212\212\005')

msgpack.decode('\212\005\005')

-- YAML has no depth.
n = yaml.new() n.cfg{encode_max_depth = 1, decode_max_depth = 1}

n.encode({{{1}}})

n.decode('[[[1]]]')

-- A uuid that is constant is there to be compared with.
uuid = require('uuid')

uuid.NULL == uuid.fromstr('00000000-0000-0000-0000-000000000000'), uuid.NULL:isnil(), tostring(uuid.NULL), #uuid.NULL:bin()

uuid.NULL.time_low = 5

json.encode(uuid.NULL)

yaml.encode({uuid.NULL})

msgpack.encode(uuid.NULL)

box.tuple.new{uuid.NULL}

-- All digits of a logarithm.
decimal = require('decimal')

decimal.log10('1.25'), decimal.log10('1.00000000000000000001'), decimal.log10(10), decimal.log10('1e-10'), decimal.log10(2)
