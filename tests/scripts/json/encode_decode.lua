-- json: what tables become, and back

json = require('json')

json.encode(1)

json.encode(1.5)

json.encode(-7)

json.encode(1e100)

json.encode(0.1)

json.encode(1/3)

json.encode(2^53)

json.encode(18446744073709551615ULL)

json.encode(-9223372036854775808LL)

json.encode('text')

json.encode('quote " slash / back \\ tab \t new \n zero \0 bell \7 del \127')

json.encode('имя')

json.encode('\255')

json.encode(true)

json.encode(nil)

json.encode(box.NULL)

json.encode{}

json.encode{1, 2, 3}

json.encode{1, nil, 3}

json.encode{[1] = 1, [3] = 3}

json.encode{a = 1}

json.encode{[5] = 'x'}

json.encode{{}, {{}}}

json.encode(setmetatable({}, json.map_mt))

json.encode(setmetatable({}, json.array_mt))

json.encode(setmetatable({}, {__serialize = 'map'}))

json.encode(setmetatable({1, 2}, {__serialize = 'map'}))

json.encode(setmetatable({a = 1}, {__serialize = 'seq'}))

json.encode(setmetatable({}, {__serialize = function() return {'made'} end}))

json.encode(box.tuple.new{1, {a = 2}})

json.encode(require('uuid').fromstr('11111111-2222-3333-4444-555555555555'))

json.encode(require('decimal').new('1.50'))

json.encode(1/0)

json.encode(function() end)

json.encode({[true] = 1})

json.encode({[1.5] = 1})

json.encode()

recursive = {} recursive[1] = recursive

json.encode(recursive)

json.encode({a = {b = {c = {d = 1}}}}, {encode_max_depth = 2})

json.encode({0.1234567890123456789}, {encode_number_precision = 4})

json.encode({function() end}, {encode_use_tostring = true}):match('^%["function')

json.encode({function() end}, {encode_invalid_as_nil = true})

json.encode({0/0}, {encode_invalid_numbers = false})

json.encode(require('ffi').new('int[2]'))

-- decode

json.decode('1')

json.decode(' [1, 2.5, -3, 1e3, "x", true, false, null, {}, []] ')

json.decode('{"a": {"b": [1, {"c": 2}]}}')

json.decode('18446744073709551615')

json.decode('-9223372036854775808')

json.decode('18446744073709551616')

json.decode('9007199254740993')

json.decode('"\\u0416\\n\\t\\"\\\\\\/"')

json.decode('"\\ud83d\\ude00"')

json.decode('{"1": "x"}')

json.decode('{"a": 1, "a": 2}').a

json.decode('')

json.decode('[1, 2')

json.decode('[1 2]')

json.decode('{"a" 1}')

json.decode('{a: 1}')

json.decode("'x'")

json.decode('nul')

json.decode('[1,]')

json.decode('"\\x"')

json.decode('01')

json.decode('[1] x')

json.decode('NaN')

json.decode('[Infinity, -Infinity]')

json.decode('NaN', {decode_invalid_numbers = false})

json.decode('[[[1]]]', {decode_max_depth = 2})

json.decode()

json.decode(5)

json.decode{}

json.decode('[0x10]')

getmetatable(json.decode('[]')).__serialize

getmetatable(json.decode('{}')).__serialize

json.encode(json.decode('{"a": [], "b": {}}').a)

json.encode(json.decode('{"b": {}}'))

json.new().encode{1}

json.cfg.encode_max_depth

json.cfg.decode_max_depth

json.cfg.encode_number_precision

json.cfg.encode_sparse_ratio

json.cfg{encode_number_precision = 3}

json.encode(1/3)
