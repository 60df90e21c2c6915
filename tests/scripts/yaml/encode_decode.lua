-- yaml: documents as the console prints them, and back

yaml = require('yaml')

yaml.encode(1)

yaml.encode('text')

yaml.encode('')

yaml.encode('true')

yaml.encode('123')

yaml.encode('null')

yaml.encode('two\nlines')

yaml.encode('a: b')

yaml.encode(' space')

yaml.encode('-')

yaml.encode('имя')

yaml.encode(true)

yaml.encode(nil)

yaml.encode(1.5)

yaml.encode(18446744073709551615ULL)

yaml.encode{}

yaml.encode{1, 2}

yaml.encode{a = 1}

yaml.encode{{1, 2}, {3}}

yaml.encode{a = {b = {1, 2}}}

yaml.encode{1, nil, 3}

yaml.encode{a = {}}

yaml.encode(setmetatable({}, yaml.map_mt))

yaml.encode(setmetatable({1, {2}}, {__serialize = 'seq'}))

yaml.encode(setmetatable({a = {1}}, {__serialize = 'map'}))

yaml.encode(box.tuple.new{1, 'a', {b = {2}}})

yaml.encode(require('uuid').fromstr('11111111-2222-3333-4444-555555555555'))

yaml.encode(require('decimal').new('1.50'))

yaml.encode(1/0)

shared = {1}

yaml.encode{shared, shared}

yaml.encode()

yaml.encode(function() end):match('^%-%-%- [\'"]?function')

yaml.decode('--- 1\n...\n')

yaml.decode('a: 1\nb: [1, 2, {c: x}]\n')

yaml.decode('- 1\n- two\n- 3.5\n- true\n- null\n- ~\n- yes\n- "quoted"\n- \'single\'\n')

yaml.decode('|\n  two\n  lines\n')

yaml.decode('0x10')

yaml.decode('1e3')

yaml.decode('18446744073709551615')

yaml.decode('- &x 1\n- *x\n')

yaml.decode('')

yaml.decode('--- 1\n--- 2\n')

yaml.decode('[1, 2')

yaml.decode('a: b: c')

yaml.decode('*none')

yaml.decode(5)

yaml.decode('!!binary dGV4dA==')

yaml.decode('!!str 5')
