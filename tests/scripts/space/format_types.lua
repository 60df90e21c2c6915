-- each type of field takes its values and names itself when it refuses one
-- engines: memtx, vinyl

uuid = require('uuid')

decimal = require('decimal')

id = uuid.fromstr('11111111-2222-3333-4444-555555555555')

s = box.schema.space.create('t', {format = {{'id', 'unsigned'}, {'v', 'any'}}})

_ = s:create_index('primary')

function try(kind, value)
    s:truncate()
    s:format{{'id', 'unsigned'}, {'v', kind}}
    return s:insert{1, value}
end

try('unsigned', 0)

try('unsigned', 18446744073709551615ULL)

try('unsigned', -1)

try('unsigned', 1.5)

try('unsigned', '1')

try('unsigned', 1e10)

try('unsigned', true)

try('integer', -1)

try('integer', -9223372036854775808LL)

try('integer', 18446744073709551615ULL)

try('integer', 1.5)

try('integer', 'one')

try('number', -1.5)

try('number', 7)

try('number', decimal.new('1.25'))

try('number', '7')

try('number', 1/0)

try('double', 1.5)

try('double', 1)

try('double', require('ffi').cast('double', 1))

try('double', 'one')

try('string', '')

try('string', 'text')

try('string', 5)

try('string', {})

try('boolean', true)

try('boolean', false)

try('boolean', 0)

try('boolean', 'true')

try('varbinary', 'bytes')

try('varbinary', 5)

try('decimal', decimal.new('3.14'))

try('decimal', 3)

try('decimal', '3.14')

try('uuid', id)

try('uuid', id:str())

try('uuid', 1)

try('scalar', 1)

try('scalar', 'text')

try('scalar', true)

try('scalar', 1.5)

try('scalar', decimal.new(1))

try('scalar', {})

try('scalar', {a = 1})

try('array', {})

try('array', {1, {2}})

try('array', {a = 1})

try('array', 1)

try('map', {a = 1})

try('map', setmetatable({}, {__serialize = 'map'}))

try('map', {})

try('map', 'text')

try('any', {1, {a = 2}})

try('any', box.NULL)

try('any', 'text')

try('unsigned', box.NULL)

try('any')

try('str', 'short name')

try('num', 5)

try('int', -5)

try('uint', 5)

try('STRING', 'upper case')

try('*', 5)

try('nonsense', 5)

try(5, 5)
