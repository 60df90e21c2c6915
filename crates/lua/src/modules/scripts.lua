-- The world of scripts that work with another protocol's commands (Redis' EVAL and FUNCTION): what they see, and nothing else.
--
-- Tables that all scripts share stand behind proxies, so that one script cannot change what another one finds.
local internal = ...
local debug, setmetatable, rawget, rawset, type = debug, setmetatable, rawget, rawset, type
local base_pcall, base_xpcall, error, tostring, select = pcall, xpcall, error, tostring, select
local base_getmetatable, base_load, base_pairs, base_next, base_ipairs = getmetatable, load, pairs, next, ipairs
local base_tonumber, floor, gc = tonumber, math.floor, collectgarbage

-- What stands behind a proxy.
local contents = setmetatable({}, { __mode = 'k' })

local function readonly()
    error('Attempt to modify a readonly table', 2)
end

local function readonly_here()
    error('Attempt to modify a readonly table', 0)
end

local function protect(content)
    local metatable = { __index = content, __newindex = readonly, __metatable = false }
    local proxy = setmetatable({}, metatable)
    contents[proxy] = content
    return proxy, metatable
end

local function copy(from, names)
    local to = {}
    for name in names:gmatch('%S+') do
        to[name] = from[name]
    end
    return to
end

-- Redis ---------------------------------------------------------------------------------------------------------------
local constants = {
    LOG_DEBUG = 0, LOG_VERBOSE = 1, LOG_NOTICE = 2, LOG_WARNING = 3,
    REPL_NONE = 0, REPL_AOF = 1, REPL_REPLICA = 2, REPL_SLAVE = 2, REPL_ALL = 3,
    REDIS_VERSION = '7.0.15', REDIS_VERSION_NUM = 0x0007000f,
}

local function refuse(text)
    error({ err = text }, 0)
end

local log_levels = { [0] = 'debug', 'verbose', 'info', 'warn' }
-- Longest text that a script writes into the log.
local log_bytes_max = 1024

local function log(...)
    local count = select('#', ...)
    if count < 2 then
        refuse('ERR redis.log() requires two arguments or more.')
    end
    local level = (...)
    if type(level) ~= 'number' then
        refuse('ERR First argument must be a number (log level).')
    end
    if log_levels[level] == nil then
        refuse('ERR Invalid debug level.')
    end
    local parts = {}
    for at = 2, count do
        local part = select(at, ...)
        if type(part) == 'string' or type(part) == 'number' then
            parts[#parts + 1] = tostring(part)
        end
    end
    internal.script_log(log_levels[level], table.concat(parts, ' '):sub(1, log_bytes_max))
end

local function reply_of(field, text, ...)
    if type(text) ~= 'string' or select('#', ...) > 0 then
        return { err = 'ERR wrong number or type of arguments' }
    end
    if field == 'err' then
        if text:sub(1, 1) == '-' then
            text = text:sub(2)
        elseif not text:find(' ', 1, true) then
            text = 'ERR ' .. text
        end
    end
    return { [field] = text }
end

local redis = copy(constants, 'LOG_DEBUG LOG_VERBOSE LOG_NOTICE LOG_WARNING REPL_NONE REPL_AOF REPL_REPLICA REPL_SLAVE REPL_ALL REDIS_VERSION REDIS_VERSION_NUM')
redis.call, redis.pcall, redis.log = internal.script_call, internal.script_pcall, log
redis.acl_check_cmd, redis.setresp = internal.script_may_run, internal.script_set_resp

function redis.error_reply(...)
    return reply_of('err', ...)
end

function redis.status_reply(...)
    return reply_of('ok', ...)
end

function redis.sha1hex(...)
    if select('#', ...) ~= 1 then
        refuse('ERR wrong number of arguments')
    end
    local text = (...)
    if type(text) ~= 'string' and type(text) ~= 'number' then
        text = ''
    end
    return (internal.digest('sha1', tostring(text)):gsub('.', function(byte)
        return ('%02x'):format(byte:byte())
    end))
end

-- There are no replicas: whatever is asked for holds.
function redis.replicate_commands()
    return true
end

function redis.set_repl(...)
    if select('#', ...) ~= 1 then
        refuse('ERR redis.set_repl() requires two arguments.')
    end
    local flags = (...)
    if type(flags) ~= 'number' or flags < 0 or flags > 3 then
        refuse('ERR Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.')
    end
end

function redis.breakpoint()
    return false
end

function redis.debug() end

-- JSON, MessagePack, structures -----------------------------------------------------------------------------------------
local null = internal.script_null()

local function located_result(ok, ...)
    if not ok then
        error((...), 2)
    end
    return ...
end

-- A function of ours whose errors name the line that called it.
local function located(call)
    return function(...)
        return located_result(base_pcall(call, ...))
    end
end

local function check_integer(value, min, max)
    value = base_tonumber(value)
    if value == nil or value < min or value > max then
        error(('bad argument #1 (expected integer between %d and %d)'):format(min, max), 3)
    end
    return floor(value)
end

local function new_cjson()
    local config = {
        precision = 14, depth = 1000, decode_depth = 1000, invalid = false, decode_invalid = true,
        convert = false, ratio = 2, safe = 10, keep = true,
    }
    local cjson = { null = null, _NAME = 'cjson', _VERSION = '2.1.0' }
    cjson.encode = located(function(...)
        if select('#', ...) ~= 1 then
            error("bad argument #1 to 'encode' (expected 1 argument)", 0)
        end
        return internal.cjson_encode((...), config)
    end)
    cjson.decode = located(function(...)
        if select('#', ...) ~= 1 then
            error("bad argument #1 to 'decode' (expected 1 argument)", 0)
        end
        return internal.cjson_decode((...), config.decode_depth, config.decode_invalid)
    end)
    local function option(name, min, max)
        return function(value)
            if value ~= nil then
                config[name] = check_integer(value, min, max)
            end
            return config[name]
        end
    end
    local function switch(name)
        return function(value)
            if value == 'on' or value == 'off' or value == 'null' then
                config[name] = value == 'null' and 'null' or value == 'on'
            elseif value ~= nil then
                config[name] = value and true or false
            end
            return config[name]
        end
    end
    cjson.encode_number_precision = option('precision', 1, 14)
    cjson.encode_max_depth = option('depth', 1, 1000)
    cjson.decode_max_depth = option('decode_depth', 1, 1000)
    cjson.encode_invalid_numbers = switch('invalid')
    cjson.decode_invalid_numbers = switch('decode_invalid')
    cjson.encode_keep_buffer = switch('keep')
    function cjson.encode_sparse_array(convert, ratio, safe)
        if convert ~= nil then
            config.convert = convert and true or false
        end
        if ratio ~= nil then
            config.ratio = check_integer(ratio, 0, 2147483647)
        end
        if safe ~= nil then
            config.safe = check_integer(safe, 0, 2147483647)
        end
        return config.convert, config.ratio, config.safe
    end
    return cjson
end

local cjson = new_cjson()
function cjson.new()
    local other = new_cjson()
    other.new = cjson.new
    return other
end

local cmsgpack = {
    pack = located(internal.cmsgpack_pack), unpack = located(internal.cmsgpack_unpack),
    unpack_one = located(internal.cmsgpack_unpack_one), unpack_limit = located(internal.cmsgpack_unpack_limit), _NAME = 'cmsgpack', _VERSION = 'lua-cmsgpack 0.4.0',
    _COPYRIGHT = '', _DESCRIPTION = 'MessagePack for Lua',
}
local struct = {
    pack = located(internal.struct_pack), unpack = located(internal.struct_unpack), size = located(internal.struct_size),
}

-- The language ----------------------------------------------------------------------------------------------------------
-- Random numbers of their own: a seed that a script sets is not that of others' code.
local random_state = internal.script_random_seed()

local function lrand48()
    -- x = (25214903917 x + 11) mod 2^48 in halves of 24 bits: every product is exact in a double.
    local low, high = random_state % 16777216, floor(random_state / 16777216)
    local product = low * 15525485 + 11
    local carry = floor(product / 16777216)
    high = (high * 15525485 + low * 1502 + carry) % 16777216
    random_state = high * 16777216 + product % 16777216
    return floor(random_state / 131072)
end

local math_copy = copy(math, 'abs acos asin atan2 atan ceil cos cosh deg exp floor fmod frexp huge ldexp log10 log max min mod modf pi pow rad sin sinh sqrt tan tanh')
math_copy.mod = math.fmod

function math_copy.random(from, to)
    local value = lrand48() % 2147483647 / 2147483647
    if from == nil then
        return value
    end
    from = base_tonumber(from) or error("bad argument #1 to 'random' (number expected)", 2)
    if to == nil then
        from, to = 1, from
    else
        to = base_tonumber(to) or error("bad argument #2 to 'random' (number expected)", 2)
    end
    if from > to then
        error("bad argument #1 to 'random' (interval is empty)", 2)
    end
    return floor(value * (to - from + 1)) + from
end

function math_copy.randomseed(seed)
    seed = base_tonumber(seed) or error("bad argument #1 to 'randomseed' (number expected)", 2)
    if seed ~= seed or seed >= 2 ^ 53 or seed <= -2 ^ 53 then
        seed = 0
    end
    random_state = floor(seed) % 4294967296 * 65536 + 0x330e
end

local string_copy = copy(string, 'byte char dump find format gmatch gsub len lower match rep reverse sub upper')
string_copy.gfind = string.gmatch

local function raw_contents(value)
    return contents[value] or value
end

local table_copy = copy(table, 'concat foreach foreachi getn maxn sort remove')
function table_copy.insert(list, ...)
    if contents[list] ~= nil then
        readonly_here()
    end
    return table.insert(list, ...)
end
function table_copy.getn(list)
    return #list
end
function table_copy.setn()
    error("'setn' is obsolete", 2)
end
function table_copy.maxn(list)
    local largest = 0
    for key in base_pairs(raw_contents(list)) do
        if type(key) == 'number' and key > largest then
            largest = key
        end
    end
    return largest
end
function table_copy.foreach(list, call)
    for key, value in base_pairs(raw_contents(list)) do
        local result = call(key, value)
        if result ~= nil then
            return result
        end
    end
end
function table_copy.foreachi(list, call)
    for at = 1, #list do
        local result = call(at, list[at])
        if result ~= nil then
            return result
        end
    end
end

local bit_copy = copy(bit, 'arshift band bnot bor bswap bxor lshift rol ror rshift tobit')
-- A number of 32 bits has eight digits, however many are asked for.
function bit_copy.tohex(number, digits)
    digits = digits == nil and 8 or bit.tobit(digits)
    return bit.tohex(number, math.max(-8, math.min(8, digits)))
end

local language = {
    bit = protect(bit_copy),
    string = protect(string_copy), table = protect(table_copy), math = protect(math_copy),
    coroutine = protect(copy(coroutine, 'create resume running status wrap yield')),
    cjson = protect(cjson), cmsgpack = protect(cmsgpack), struct = protect(struct),
    _VERSION = 'Lua 5.1',
    assert = assert, error = error, ipairs = base_ipairs, rawequal = rawequal, select = select,
    tonumber = tonumber, tostring = tostring, type = type, unpack = unpack, xpcall = base_xpcall,
}

local function ended(ok, ...)
    if not ok then
        local raised = (...)
        if type(raised) == 'table' and rawget(raised, 'err') ~= nil then
            return false, rawget(raised, 'err')
        end
    end
    return ok, ...
end

function language.pcall(...)
    return ended(base_pcall(...))
end

function language.pairs(value)
    return base_pairs(raw_contents(value))
end

function language.next(value, key)
    return base_next(raw_contents(value), key)
end

function language.rawget(value, key)
    return rawget(raw_contents(value), key)
end

function language.rawset(value, key, new)
    if contents[value] ~= nil then
        readonly_here()
    end
    return rawset(value, key, new)
end

function language.setmetatable(value, metatable)
    if contents[value] ~= nil then
        readonly_here()
    end
    return setmetatable(value, metatable)
end

local string_metatable = protect({ __index = language.string })
local global_metatable = protect({})

-- Metatables of texts and the like belong to everybody: they are not handed out.
function language.getmetatable(value)
    local kind = type(value)
    if kind == 'string' then
        return string_metatable
    elseif kind ~= 'table' then
        return nil
    elseif contents[value] ~= nil then
        return rawget(contents[value], '_G') == value and global_metatable or nil
    end
    return base_getmetatable(value)
end

function language.collectgarbage(what)
    if what == nil or what == 'collect' or what == 'step' then
        return 0
    end
    return what == 'count' and gc('count') or 0
end

function language.gcinfo()
    return floor(gc('count'))
end

local function missing(_, name)
    error(("Script attempted to access nonexistent global variable '%s'"):format(tostring(name)), 2)
end

-- Globals: `own` beside the language. Text is compiled into the same world, and bytecode never.
local function new_world(own)
    local world = setmetatable({}, { __index = missing })
    for name, value in base_pairs(language) do
        world[name] = value
    end
    for name, value in base_pairs(own) do
        world[name] = value
    end
    local globals, metatable = protect(world)
    world._G = globals
    local function compiled(chunk, message)
        if chunk == nil then
            return nil, message
        end
        return chunk
    end
    function world.loadstring(text, name)
        if type(text) ~= 'string' then
            error(("bad argument #1 to 'loadstring' (string expected, got %s)"):format(type(text)), 2)
        end
        return compiled(base_load(text, name, 't', globals))
    end
    function world.load(reader, name)
        if type(reader) ~= 'function' then
            error(("bad argument #1 to 'load' (function expected, got %s)"):format(type(reader)), 2)
        end
        return compiled(base_load(reader, name, 't', globals))
    end
    return globals, world, metatable
end

local globals = new_world({ redis = (protect(redis)) })

-- compile(source) -> function or nil, message
local function compile(source)
    return base_load('local KEYS, ARGV = ... ' .. source, '@user_script', 't', globals)
end

-- What a script has raised, as text that begins with a code, and where.
local function raised(value)
    local text
    if type(value) == 'table' then
        text = rawget(value, 'err')
        if type(text) ~= 'string' then
            text = 'ERR the script has raised a table without an error'
        end
    else
        text = 'ERR ' .. tostring(value)
    end
    local place = '.'
    -- Whose line it is: functions of ours may stand between.
    for level = 2, 12 do
        local info = debug.getinfo(level, 'Sl')
        if info == nil then
            break
        elseif info.source:sub(1, 6) == '@user_' and info.currentline > 0 then
            place = (', on %s:%d.'):format(info.source, info.currentline)
            break
        end
    end
    return { text = text, place = place }
end

-- run(function, name, keys, arguments) -> true, result; or false, text of the error
local function run(script, name, keys, arguments)
    local ok, result = base_xpcall(script, raised, keys, arguments)
    if ok then
        return true, result
    end
    if type(result) ~= 'table' then
        -- An error within the handling of an error.
        return false, 'ERR ' .. tostring(result)
    end
    return false, result.text .. ' script: ' .. name .. result.place
end

-- Libraries -------------------------------------------------------------------------------------------------------------
local known_flags = {
    ['no-writes'] = true, ['allow-oom'] = true, ['allow-stale'] = true, ['no-cluster'] = true,
    ['allow-cross-slot-keys'] = true,
}
-- Functions of one library.
local functions_max = 1000

local function check_name(name)
    if not name:find('^[%w_]+$') then
        refuse('ERR Library names can only contain letters, numbers, or underscores(_) and must be at least one character long')
    end
end

local function registration(list, ...)
    local count = select('#', ...)
    local first, callback = ...
    if count < 1 or count > 2 then
        refuse('ERR wrong number of arguments to redis.register_function')
    end
    local one = { flags = {} }
    if count == 1 then
        if type(first) ~= 'table' then
            refuse('ERR calling redis.register_function with a single argument is only applicable to Lua table (representing named arguments).')
        end
        for key, value in base_pairs(first) do
            if type(key) ~= 'string' then
                refuse('ERR named argument key given to redis.register_function is not a string')
            elseif key == 'function_name' then
                if type(value) ~= 'string' then
                    refuse('ERR function_name argument given to redis.register_function must be a string')
                end
                one.name = value
            elseif key == 'description' then
                if type(value) ~= 'string' then
                    refuse('ERR description argument given to redis.register_function must be a string')
                end
                one.description = value
            elseif key == 'callback' then
                if type(value) ~= 'function' then
                    refuse('ERR callback argument given to redis.register_function must be a function')
                end
                one.callback = value
            elseif key == 'flags' then
                if type(value) ~= 'table' then
                    refuse('ERR flags argument to redis.register_function must be a table representing function flags')
                end
                for _, flag in base_ipairs(value) do
                    if type(flag) ~= 'string' or not known_flags[flag] then
                        refuse('ERR unknown flag given')
                    end
                    one.flags[#one.flags + 1] = flag
                end
            else
                refuse('ERR unknown argument given to redis.register_function')
            end
        end
        if one.name == nil then
            refuse('ERR redis.register_function must get a function name argument')
        elseif one.callback == nil then
            refuse('ERR redis.register_function must get a callback argument')
        end
    else
        if type(first) ~= 'string' then
            refuse('ERR first argument to redis.register_function must be a string')
        elseif type(callback) ~= 'function' then
            refuse('ERR second argument to redis.register_function must be a function')
        end
        one.name, one.callback = first, callback
    end
    check_name(one.name)
    for _, other in base_ipairs(list) do
        if other.name == one.name then
            refuse('ERR Function already exists in the library')
        end
    end
    if #list >= functions_max then
        refuse(('ERR a library has at most %d functions'):format(functions_max))
    end
    list[#list + 1] = one
end

-- library(source) -> list of functions; or nil, message
local function library(source)
    local list, is_loading = {}, true
    local early = copy(constants, 'LOG_DEBUG LOG_VERBOSE LOG_NOTICE LOG_WARNING REDIS_VERSION REDIS_VERSION_NUM')
    early.log = log
    function early.register_function(...)
        if not is_loading then
            refuse('ERR redis.register_function can only be called on FUNCTION LOAD command')
        end
        registration(list, ...)
    end
    -- What is not there raises here, where a script finds nil.
    local early_redis = protect(setmetatable(early, { __index = missing }))
    local own_globals, world, metatable = new_world({ redis = globals.redis })
    -- While it is loaded it sees nothing else.
    metatable.__index = setmetatable({ redis = early_redis }, { __index = missing })
    local chunk, message = base_load(source, '@user_function', 't', own_globals)
    if chunk == nil then
        return nil, 'ERR Error compiling function: ' .. tostring(message)
    end
    local ok, value = base_pcall(chunk)
    is_loading = false
    metatable.__index = world
    if not ok then
        local text = type(value) == 'table' and rawget(value, 'err') or 'ERR ' .. tostring(value)
        return nil, 'ERR Error registering functions: ' .. tostring(text)
    end
    if #list == 0 then
        return nil, 'ERR No functions registered'
    end
    return list
end

internal.scripts_setup({ compile = compile, run = run, library = library })
