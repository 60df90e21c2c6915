-- Calls every function that Lua code can reach with arguments of every wrong kind. The process has to live: an error is fine,
-- an answer is fine. Called as `SERVER calls.lua SEED ROUNDS` in an empty directory. Each call is written to `calls.log`, or where CALLS_LOG says, before it is
-- made, so that the last line names the one that ended the process.

local ffi = require('ffi')
local fiber = require('fiber')
local SEED, ROUNDS = tonumber(arg[1]), tonumber(arg[2])

box.cfg{ log = 'server.log', log_level = 1, wal_mode = 'none' }
fiber.set_max_slice(0.3)

-- What may end the process, stop it or change the script's own ground, by its purpose; and what hands out the machine as it is.
local EXEMPT = {
    '^ffi%.', '^debug%.', '^jit%.', '^os%.exit$', '^os%.execute$', '^io%.', '^os%.remove$', '^os%.rename$', '^os%.setlocale$', '^fio%.chdir$',
    '^fio%.umask$', '^box%.cfg', '^box%.snapshot$', '^fiber%.set_max_slice$', '^_G%.print$', '^collectgarbage$', '^_G%.collectgarbage$',
    '^_G%.setfenv$', '^_G%.module$', '^box%.ctl%.wait', '^strict%.', '^_G%.debug', '^os%.setenv$', '^log%.', '^box%.internal%.setup$',
    '^box%.internal%.configure$', '^box%.internal%.exit$', '^box%.internal%.apply_cfg$', '^box%.internal%.file_operation$',
    '^box%.internal%.log$', '^box%.internal%.write_out$', '^box%.internal%.set_max_slice$', '^box%.internal%.snapshot$',
    -- The functions that C calls; they take what it gives them.
    '^box%.internal%.values%.', '^package%.loaders', '^package%.loadlib$',
}

local function is_exempt(name)
    for _, pattern in ipairs(EXEMPT) do
        if name:match(pattern) then
            return true
        end
    end
    return false
end

-- Functions by their names, in order.
local function collect()
    local found, seen = {}, {}
    local function walk(value, path, depth)
        if seen[value] or depth > 5 then
            return
        end
        seen[value] = true
        local entries = {}
        local ok = pcall(function()
            for key, inner in pairs(value) do
                entries[#entries + 1] = { tostring(key), inner }
            end
        end)
        if not ok then
            return
        end
        table.sort(entries, function(a, b) return a[1] < b[1] end)
        for _, entry in ipairs(entries) do
            local name = path .. '.' .. entry[1]
            local is_function = type(entry[2]) == 'function'
                or type(entry[2]) == 'table' and type((getmetatable(entry[2]) or {}).__call) == 'function'
            if is_function and not is_exempt(name) then
                found[#found + 1] = { name, entry[2] }
            end
            if type(entry[2]) == 'table' then
                walk(entry[2], name, depth + 1)
                local metatable = getmetatable(entry[2])
                if type(metatable) == 'table' and type(metatable.__index) == 'table' then
                    walk(metatable.__index, name, depth + 1)
                end
            end
        end
    end
    seen[package.loaded], seen[_G] = true, true
    local modules = {}
    for name in pairs(package.loaded) do
        modules[#modules + 1] = name
    end
    table.sort(modules)
    for _, name in ipairs(modules) do
        if type(package.loaded[name]) == 'table' and name ~= '_G' then
            walk(package.loaded[name], name, 0)
        end
    end
    seen[_G] = nil
    walk(_G, '_G', 4)
    return found
end

local state = SEED * 2 + 1
local function random(count)
    state = (state * 16807) % 2147483647
    return math.floor(state / 2147483647 * count) + 1
end

-- What the calls work on. They may spoil it: then it is made anew.
local function make_objects()
    box.schema.space.create('rows', { format = { { 'id', 'unsigned' }, { 'text', 'string', is_nullable = true } } })
    box.space.rows:create_index('primary')
    box.space.rows:create_index('text', { parts = { { 2, 'string', is_nullable = true } }, unique = false })
    if box.sequence.numbers == nil then
        box.schema.sequence.create('numbers')
    end
end
make_objects()

local set_any_metatable, get_any_metatable, refresh, su = debug.setmetatable, debug.getmetatable, box.internal.values.refresh, box.session.su
local drop_space = box.schema.space.drop
local SPACE, INDEX = get_any_metatable(box.space.rows), get_any_metatable(box.space.rows.index.primary)

local function is_whole_space(space, index_name)
    local index = type(space) == 'table' and rawget(space, 'index')
    local one = type(index) == 'table' and rawget(index, index_name)
    return type(one) == 'table' and get_any_metatable(space) == SPACE and get_any_metatable(index) == nil and get_any_metatable(one) == INDEX
        and type(rawget(space, 'id')) == 'number' and rawget(one, 'space_id') == rawget(space, 'id')
end

local function is_whole()
    return is_whole_space(rawget(box.space, '_space'), 'primary') and is_whole_space(rawget(box.space, 'rows'), 'primary')
        and type(box.sequence.numbers) == 'table'
end

local function mend()
    if is_whole() then
        return
    end
    pcall(su, 'admin')
    for _, space in pairs({ rawget(box.space, '_space'), rawget(box.space, 'rows') }) do
        set_any_metatable(space, nil)
        space.index = nil
        set_any_metatable(space, SPACE)
    end
    pcall(refresh)
    if not is_whole() then
        local rows = rawget(box.space, 'rows')
        pcall(drop_space, rows and rawget(rows, 'id'))
        pcall(make_objects)
    end
end

-- What an expression gives; nil if that was spoiled.
local function tried(get)
    return function()
        local ok, value = pcall(get)
        return ok and value or nil
    end
end

-- A fresh one of each kind: a call may have changed the last one.
local kinds = {
    function() return nil end,
    function() return box.NULL end,
    function() return ffi.new('char[64]') end,
    function() return ffi.cast('const char *', 'some text that is long enough') end,
    function() return ffi.cast('void *', 8) end,
    function() return ffi.cast('char **', 0) end,
    function() return ffi.cast('uint8_t *', -1) end,
    function() return ffi.new('struct tt_uuid') end,
    function() return ffi.typeof('int') end,
    function() return ffi.new('float', 1.5) end,
    function() return ffi.new('int8_t', -3) end,
    function() return ffi.new('struct { int a; double b[3]; }') end,
    function() return ffi.new('complex', 1, 2) end,
    function() return 0 end, function() return 1 end, function() return 2 end, function() return 3 end, function() return -1 end,
    function() return 0.5 end, function() return -0.0 end, function() return 1e15 end,
    function() return 2 ^ 31 end, function() return -2 ^ 31 end, function() return 2 ^ 53 end, function() return 2 ^ 63 end,
    function() return -2 ^ 63 end, function() return 2 ^ 64 end, function() return 1e308 end, function() return -1e308 end,
    function() return 1e-310 end, function() return math.huge end, function() return -math.huge end, function() return 0 / 0 end,
    function() return 18446744073709551615ULL end, function() return -9223372036854775807LL end, function() return 5LL end,
    function() return '' end, function() return 'a' end, function() return 'rows' end, function() return '\0' end,
    function() return '\255\254' end, function() return '%s%d%99.99f%' end, function() return '1' end, function() return '1e5' end,
    function() return ('x'):rep(70000) end, function() return '[[[[' end, function() return '\xdd\xff\xff\xff\xff' end,
    function() return '\xc7\xff\x01' end, function() return '\xdf\xff\xff\xff\xff\x01' end, function() return '\xc7\x01\x01\x0c' end,
    function() return '%f[%w]' end, function() return '[%' end, function() return 'seq' end,
    function() return ('['):rep(50000) end, function() return '{"a":' end, function() return '&a [*a, *a]' end,
    function() return ('\x91'):rep(60000) end, function() return ('- '):rep(3000) end,
    function() return 'unicode_ci' end, function() return 'EQ' end, function() return '+' end,
    function() return true end, function() return false end,
    function() return {} end, function() return { 1, 2, 3 } end, function() return { a = 1 } end,
    function() return { 1, 'text' } end, function() return { { '=', 2, 'x' } } end, function() return { { '!', '[2]', 1 } } end,
    function() return { { 'a', 'unsigned' } } end, function() return { [1e15] = 1 } end, function() return { [-1] = 1, [0.5] = 2 } end,
    function() return { [math.huge] = 1 } end, function() return { iterator = 'EQ', limit = -1, offset = 2 ^ 40 } end,
    function() return { limit = 0 / 0 } end,
    function() local t = {} t[1] = t t.a = t return t end,
    function() local t = {} for _ = 1, 300 do t = { t } end return t end,
    function()
        local function fail() error('metamethod') end
        return setmetatable({}, { __index = fail, __newindex = fail, __len = fail, __pairs = fail, __ipairs = fail, __call = fail,
            __tostring = fail, __serialize = fail, __eq = fail, __lt = fail, __le = fail, __concat = fail, __unm = fail, __add = fail })
    end,
    function() return setmetatable({}, { __serialize = function(t) return t end }) end,
    function() return setmetatable({}, { __serialize = 'nonsense' }) end,
    function() return setmetatable({}, { __serialize = function() return { setmetatable({}, { __serialize = 'seq' }) } end }) end,
    function() return setmetatable({ 1, 2 }, { __serialize = 'map' }) end,
    function() return setmetatable({ a = 1, [-5] = 2, [1e9] = 3 }, { __serialize = 'seq' }) end,
    function() return setmetatable({}, { __tostring = function() return nil end, __metatable = 'locked' }) end,
    function() return setmetatable({}, { __index = function(_, key) return key end }) end,
    function() return coroutine.create(function() end) end,
    function() return newproxy(true) end,
    function() return io.stdout end,
    function() return print end,
    function() return function(...) return ... end end,
    function() return function() error('called') end end,
    function() return function() error() end end,
    function() return function() fiber.yield() end end,
    function() return box.tuple.new({ 1, 'text', { 2, { 3 } } }) end,
    function() return box.tuple.new({}) end,
    function() return box.error.new(1, 'x') end,
    function() return require('decimal').new('1.5') end,
    function() return require('decimal').new('-99999999999999999999999999999999999999') end,
    function() return require('uuid').new() end,
    -- Not the fiber of this script: it would be cancelled.
    function() return fiber.create(function() fiber.sleep(0) end) end,
    function() return fiber.new(function() end) end,
    function() return fiber.channel(1) end,
    function() return fiber.cond() end,
    tried(function() return box.space.rows end),
    tried(function() return box.space.rows.index.primary end),
    tried(function() return box.space._space end),
    tried(function() return box.sequence.numbers end),
    function() return box.NULL end,
}

local functions = collect()
local log = assert(io.open(os.getenv('CALLS_LOG') or 'calls.log', 'w'))
log:setvbuf('no')

-- Methods of objects, called on what they belong to and on what they do not.
local function add_methods(title, make)
    local object = make()
    local ok = pcall(function()
        local names = {}
        local metatable = getmetatable(object)
        local index = type(metatable) == 'table' and metatable.__index or object
        for key, method in pairs(type(index) == 'table' and index or object) do
            if type(key) == 'string' and type(method) == 'function' then
                names[#names + 1] = key
            end
        end
        table.sort(names)
        for _, name in ipairs(names) do
            if not is_exempt(title .. '.' .. name) then
                functions[#functions + 1] = { title .. ':' .. name, function(...)
                    local own = make()
                    return own[name](own, ...)
                end }
            end
        end
    end)
    return ok
end
local function methods(title, make, names)
    for name in names:gmatch('%w+') do
        functions[#functions + 1] = { title .. ':' .. name, function(...)
            local own = make()
            return own[name](own, ...)
        end }
    end
end
add_methods('space', function() return box.space.rows end)
add_methods('index', function() return box.space.rows.index.primary end)
add_methods('channel', function() return fiber.channel(1) end)
add_methods('condition', function() return fiber.cond() end)
add_methods('sequence', function() return box.sequence.numbers end)
methods('tuple', function() return box.tuple.new({ 1, 'text', { 2, { 3 } } }) end,
    'find findall unpack totable tomap slice transform update upsert next pairs ipairs bsize format')
methods('error', function() return box.error.new(1, 'x') end, 'unpack match is set_prev')
methods('uuid', function() return require('uuid').new() end, 'bin str isnil')
methods('decimal', function() return require('decimal').new('12.5') end, 'abs precision scale round trim rescale sqrt exp ln log10')
methods('fiber', function() return fiber.new(function() end) end, 'id name status cancel wakeup join set_joinable')
methods('iterator', function() return require('fun').iter({ 1, 2, 3 }) end,
    'take drop_n map filter foldl zip nth head tail chain cycle take_n take_while grep span partition index indexes is_prefix_of any')

local function show(list, count)
    local parts = {}
    for i = 1, count do
        local value = list[i]
        local kind = type(value)
        parts[i] = kind == 'string' and ('%q'):format(value:sub(1, 20)) or kind == 'number' and tostring(value)
            or kind == 'cdata' and tostring(ffi.typeof(value)) or kind
    end
    return table.concat(parts, ', ')
end

local operators = {
    ['+'] = function(a, b) return a + b end, ['^'] = function(a, b) return a ^ b end, ['..'] = function(a, b) return a .. b end,
    ['=='] = function(a, b) return a == b end, ['<'] = function(a, b) return a < b end, ['<='] = function(a, b) return a <= b end,
    ['[]'] = function(a, b) return a[b] end, ['#'] = function(a) return #a end, ['-'] = function(a) return -a end,
    ['*'] = function(a, b) return a * b end, ['/'] = function(a, b) return a / b end, ['%'] = function(a, b) return a % b end,
    ['tostring'] = tostring, ['()'] = function(a, ...) return a(...) end, ['[]='] = function(a, b, c) a[b] = c end,
}
local operator_names = {}
for name in pairs(operators) do
    operator_names[#operator_names + 1] = name
end
table.sort(operator_names)
for _, name in ipairs(operator_names) do
    functions[#functions + 1] = { 'operator ' .. name, operators[name] }
end

local pcall, unpack, getmetatable, setmetatable, rawset, pairs = pcall, unpack, getmetatable, setmetatable, rawset, pairs
local string_copy, table_copy = {}, {}
for key, value in pairs(string) do string_copy[key] = value end
for key, value in pairs(table) do table_copy[key] = value end
local create, status, cancel, sleep = fiber.create, fiber.status, fiber.cancel, fiber.sleep
local open_files = 0

-- One call in a fiber of its own. What still waits after a moment is left alone and cancelled.
local function call(entry, count, list)
    log:write(entry[1], '(', show(list, count), ')\n')
    local runner = create(function()
        pcall(entry[2], unpack(list, 1, count))
        pcall(box.rollback)
    end)
    for _ = 1, 3 do
        local ok, now = pcall(status, runner)
        if not ok or now == 'dead' then
            return
        end
        sleep(0)
    end
    pcall(cancel, runner)
end

-- C's own ways to any memory: nothing stands between a pointer and an index.
local RAW = { ['operator []'] = true, ['operator []='] = true }
local function is_raw(value)
    if type(value) ~= 'cdata' then
        return false
    end
    local name = tostring(ffi.typeof(value))
    return name:find('[*%[]') ~= nil
end

local only = arg[3]
for _ = 1, ROUNDS do
    for _, entry in ipairs(functions) do
        mend()
        local count = random(5) - 1
        local list = {}
        for i = 1, count do
            list[i] = kinds[random(#kinds)]()
        end
        if not (RAW[entry[1]] and is_raw(list[1])) and (only == nil or entry[1]:find(only)) then
            call(entry, count, list)
        end
    end
    collectgarbage()
end
log:write('end\n')
log:close()
io.stdout:write('calls ', #functions, '\n')
os.exit(0)
