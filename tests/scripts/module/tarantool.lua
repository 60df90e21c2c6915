-- the tarantool module and the modules that can be required

t = require('tarantool')

type(t.version)

t.version:match('^%d+%.%d+%.%d+') ~= nil

type(t.pid())

type(t.uptime())

type(t.build)

_TARANTOOL == t.version

out = {}

for _, name in ipairs{'box', 'buffer', 'clock', 'console', 'crypto', 'csv', 'decimal', 'digest', 'errno', 'fiber', 'fio', 'fun', 'help', 'http.client', 'iconv', 'json', 'log', 'msgpack', 'net.box', 'pickle', 'popen', 'socket', 'strict', 'swim', 'tap', 'tarantool', 'title', 'uri', 'utf8', 'uuid', 'xlog', 'yaml', 'key_def', 'merger', 'table.new', 'table.clear', 'ffi', 'bit', 'jit'} do if not pcall(require, name) then table.insert(out, name) end end

out

select(2, pcall(require, 'no.such.module')):match('^[^\n]*')

require('strict').off()

undefined_variable

require('strict').on()

undefined_variable

defined_variable = 1

defined_variable

require('strict').off()

type(package.path)

type(package.cpath)

type(package.loaded.box)

type(arg)

type(os.getenv('PATH'))

os.getenv('NO_SUCH_VARIABLE')

os.setenv('GOLDEN', 'x')

os.getenv('GOLDEN')

os.setenv('GOLDEN')

os.getenv('GOLDEN')

type(os.environ())

type(dofile)

type(loadstring)

type(bit.band)

bit.band(12, 10)

bit.bor(12, 10)

bit.bxor(12, 10)

bit.lshift(1, 4)

bit.tohex(255)

jit.version:match('^LuaJIT 2') ~= nil
