-- Small modules: clock, errno, uuid, digest, log, uri, tarantool, pickle-free.
local internal = ...

local ffi = require('ffi')

-- clock -------------------------------------------------------------------------------------------------------------
local clock = {
    time = internal.clock_wall, realtime = internal.clock_wall, monotonic = internal.clock_monotonic,
    time64 = function() return internal.clock_ns(true) end,
    realtime64 = function() return internal.clock_ns(true) end,
    monotonic64 = function() return internal.clock_ns(false) end,
    proc = os.clock, thread = os.clock,
    proc64 = function() return ffi.cast('uint64_t', os.clock() * 1e9) end,
    thread64 = function() return ffi.cast('uint64_t', os.clock() * 1e9) end,
}

function clock.bench(f, ...)
    local start = clock.proc()
    local results = { f(...) }
    table.insert(results, 1, clock.proc() - start)
    return results
end

package.loaded.clock = clock

-- errno -------------------------------------------------------------------------------------------------------------
ffi.cdef[[
char *strerror(int errnum);
int getpid(void);
char *getcwd(char *buf, size_t size);
int chdir(const char *path);
]]

local errno_codes = {
    EPERM = 1, ENOENT = 2, ESRCH = 3, EINTR = 4, EIO = 5, ENXIO = 6, E2BIG = 7, ENOEXEC = 8, EBADF = 9, ECHILD = 10,
    EAGAIN = 11, EWOULDBLOCK = 11, ENOMEM = 12, EACCES = 13, EFAULT = 14, EBUSY = 16, EEXIST = 17, EXDEV = 18,
    ENODEV = 19, ENOTDIR = 20, EISDIR = 21, EINVAL = 22, ENFILE = 23, EMFILE = 24, ENOTTY = 25, EFBIG = 27, ENOSPC = 28,
    ESPIPE = 29, EROFS = 30, EMLINK = 31, EPIPE = 32, EDOM = 33, ERANGE = 34, EDEADLK = 35, ENAMETOOLONG = 36,
    ENOSYS = 38, ENOTEMPTY = 39, ELOOP = 40, EPROTO = 71, EOVERFLOW = 75, EILSEQ = 84, ENOTSOCK = 88, EMSGSIZE = 90,
    EPROTOTYPE = 91, ENOPROTOOPT = 92, EPROTONOSUPPORT = 93, ENOTSUP = 95, EOPNOTSUPP = 95, EAFNOSUPPORT = 97,
    EADDRINUSE = 98, EADDRNOTAVAIL = 99, ENETDOWN = 100, ENETUNREACH = 101, ENETRESET = 102, ECONNABORTED = 103,
    ECONNRESET = 104, ENOBUFS = 105, EISCONN = 106, ENOTCONN = 107, ETIMEDOUT = 110, ECONNREFUSED = 111,
    EHOSTUNREACH = 113, EALREADY = 114, EINPROGRESS = 115, ESTALE = 116, EDQUOT = 122, ECANCELED = 125,
}
package.loaded.errno = setmetatable({
    strerror = function(code)
        -- What is no number fails as nil does, in the call of C.
        if code == nil then
            code = ffi.errno()
        else
            code = tonumber(code)
        end
        return ffi.string(ffi.C.strerror(code))
    end,
}, {
    __index = errno_codes,
    __call = function(_, code)
        if code == nil then
            return ffi.errno()
        end
        return ffi.errno(code)
    end,
})

-- uuid --------------------------------------------------------------------------------------------------------------
local uuid = {}
local uuid_type = internal.types.uuid

local function is_uuid(value)
    return ffi.istype(uuid_type, value)
end

local function uuid_text(value)
    if not is_uuid(value) then
        error('Usage: uuid:str()', 2)
    end
    local n = value.node
    return ('%08x-%04x-%04x-%02x%02x-%02x%02x%02x%02x%02x%02x'):format(value.time_low, value.time_mid,
        value.time_hi_and_version, value.clock_seq_hi_and_reserved, value.clock_seq_low, n[0], n[1], n[2], n[3], n[4], n[5])
end

local function from_bytes(bytes, order)
    local value = uuid_type()
    ffi.copy(value, bytes, 16)
    if order ~= 'l' and order ~= 'host' and order ~= 'h' then
        value.time_low = bit.bswap(value.time_low)
        value.time_mid = bit.rshift(bit.bswap(value.time_mid), 16)
        value.time_hi_and_version = bit.rshift(bit.bswap(value.time_hi_and_version), 16)
    end
    return value
end

local function uuid_bin(value, order)
    local copy = uuid_type(value)
    if order == 'n' or order == 'network' or order == 'b' or order == 'big' then
        copy.time_low = bit.bswap(copy.time_low)
        copy.time_mid = bit.rshift(bit.bswap(copy.time_mid), 16)
        copy.time_hi_and_version = bit.rshift(bit.bswap(copy.time_hi_and_version), 16)
    end
    return ffi.string(copy, 16)
end

local function fromstr(text)
    if type(text) ~= 'string' then
        error('fromstr(str)', 2)
    end
    if not text:match('^%x%x%x%x%x%x%x%x%-%x%x%x%x%-%x%x%x%x%-%x%x%x%x%-%x%x%x%x%x%x%x%x%x%x%x%x$') then
        return nil
    end
    return from_bytes(string.fromhex((text:gsub('-', ''))))
end

local function is_nil(value)
    if not is_uuid(value) then
        error('Usage: uuid:isnil()', 2)
    end
    return uuid_bin(value) == ('\0'):rep(16)
end

ffi.metatype('struct tt_uuid', {
    __tostring = uuid_text,
    __eq = function(a, b)
        return is_uuid(a) and is_uuid(b) and uuid_bin(a) == uuid_bin(b)
    end,
    __lt = function(a, b) return uuid_bin(a, 'n') < uuid_bin(b, 'n') end,
    __le = function(a, b) return uuid_bin(a, 'n') <= uuid_bin(b, 'n') end,
    __index = {
        isnil = is_nil, bin = uuid_bin, str = uuid_text, __serialize = uuid_text,
    },
})

local function new_uuid()
    local bytes = { internal.random_bytes(16):byte(1, 16) }
    bytes[7] = bit.bor(bit.band(bytes[7], 0x0f), 0x40)
    bytes[9] = bit.bor(bit.band(bytes[9], 0x3f), 0x80)
    return from_bytes(string.char(unpack(bytes)))
end

-- Constant, and so of a type of its own: as in Tarantool 2.6 it is there to be compared with, not to be stored.
internal.null_uuids = ffi.new('const struct tt_uuid[1]')
uuid.NULL = internal.null_uuids[0]
uuid.new = new_uuid
uuid.fromstr = fromstr
uuid.frombin = function(bytes, order)
    if type(bytes) ~= 'string' or #bytes ~= 16 then
        error('frombin(bin, [byteorder])', 2)
    end
    return from_bytes(bytes, order or 'l')
end
uuid.is_uuid = is_uuid
uuid.bin = function(order) return uuid_bin(new_uuid(), order) end
uuid.str = function() return uuid_text(new_uuid()) end
package.loaded.uuid = setmetatable(uuid, { __call = new_uuid })

-- digest ------------------------------------------------------------------------------------------------------------
local digest = {}
for _, name in ipairs({ 'sha1', 'sha224', 'sha256', 'sha384', 'sha512', 'md5', 'md4' }) do
    local function hash(text)
        if type(text) ~= 'string' then
            error(("Usage: digest.%s(string)"):format(name), 2)
        end
        return internal.digest(name, text)
    end
    if name ~= 'md4' then
        digest[name] = hash
        digest[name .. '_hex'] = function(text)
            if type(text) ~= 'string' then
                error(("Usage: digest.%s_hex(string)"):format(name), 2)
            end
            return internal.digest(name, text):hex()
        end
    end
end

function digest.base64_encode(text, options)
    if type(text) ~= 'string' then
        error('Usage: digest.base64_encode(string[, table])', 2)
    end
    options = options == nil and {} or options
    if type(options) ~= 'table' then
        error('Usage: digest.base64_encode(string[, table])', 2)
    end
    local encoded = internal.base64_encode(text, options.urlsafe or false)
    if options.urlsafe or options.nowrap then
        return options.nopad and encoded:gsub('=+$', '') or encoded
    end
    -- Lines of 72 characters, as the format's oldest readers want.
    local lines = {}
    for at = 1, #encoded, 72 do
        lines[#lines + 1] = encoded:sub(at, at + 71)
    end
    local wrapped = table.concat(lines, '\n')
    if options.nopad then
        wrapped = wrapped:gsub('=+$', '')
    end
    return wrapped
end

function digest.base64_decode(text)
    if type(text) ~= 'string' then
        error('Usage: digest.base64_decode(string)', 2)
    end
    return internal.base64_decode(text)
end

function digest.urandom(count)
    if count == nil then
        error('Usage: digest.urandom(len)', 2)
    end
    return internal.random_bytes(count)
end

-- CRC-32C without the usual inversions, as Tarantool has it.
local function crc32_update(crc, text)
    if type(text) ~= 'string' then
        error('Usage: digest.crc32_update(string)', 2)
    end
    local start = tonumber(crc)
    if start == nil then
        error("bad argument #1 to '?' (cannot convert 'nil' to 'unsigned int')", 2)
    end
    -- Only the lowest 32 bits count.
    return internal.crc32(tonumber(ffi.cast('uint32_t', start)), text)
end
digest.crc32_update = crc32_update
digest.crc32 = setmetatable({
    crc_begin = 4294967295,
    new = function()
        local state = { value = 4294967295 }
        return {
            update = function(_, text) state.value = crc32_update(state.value, text) end,
            result = function() return state.value end,
            clear = function() state.value = 4294967295 end,
        }
    end,
}, {
    __call = function(_, text)
        if type(text) ~= 'string' then
            error('Usage digest.crc32(string)', 2)
        end
        return crc32_update(4294967295, text)
    end,
})

-- guava's consistent hash of a 64-bit number over buckets.
function digest.guava(state, buckets)
    -- Numbers alone: a cast takes pointers and texts, too.
    local function check(value, position, type_name)
        local kind = type(value)
        if kind == 'cdata' then
            kind = ffi.istype('void *', value) and 'void *' or tonumber(value) == nil and 'struct' or 'number'
            kind = ffi.istype('struct tuple', value) and 'struct tuple' or kind
        end
        if kind ~= 'number' and kind ~= 'boolean' then
            local text = "bad argument #%d to '?' (cannot convert '%s' to '%s')"
            error(text:format(position, kind, type_name), 3)
        end
    end
    check(state, 1, 'uint64_t')
    check(buckets, 2, 'int')
    buckets = tonumber(ffi.cast('int32_t', buckets))
    -- A number too large for 64 bits counts as none.
    local is_too_large = type(state) == 'number' and state >= 2^64
    local seed = is_too_large and 0ULL or ffi.cast('uint64_t', state)
    local candidate, next_bucket = 0, 0
    while true do
        seed = seed * 2862933555777941757ULL + 1
        local shifted = tonumber(bit.rshift(seed, 33)) + 1
        next_bucket = math.floor((candidate + 1) * (2147483648 / shifted))
        if next_bucket < 0 or next_bucket >= buckets then
            return candidate
        end
        candidate = next_bucket
    end
end

function digest.pbkdf2(password, salt, iterations, length)
    if type(password) ~= 'string' or type(salt) ~= 'string' then
        error('Usage: digest.pbkdf2(pass, salt[,iters][,digest_len])', 2)
    end
    if iterations ~= nil and type(iterations) ~= 'number' then
        error('iters must be a number', 2)
    end
    if length ~= nil and type(length) ~= 'number' then
        error('digest_len must be a number', 2)
    end
    if length ~= nil and length > 128 then
        error('too big digest size', 2)
    end
    if iterations ~= nil and iterations < 1 or length ~= nil and length < 0 then
        return nil
    end
    -- Texts for C end at their first zero.
    password, salt = password:match('^[^%z]*'), salt:match('^[^%z]*')
    return internal.pbkdf2(password, salt, iterations or 100000, length or 128)
end

function digest.pbkdf2_hex(...)
    return string.hex(digest.pbkdf2(...))
end

package.loaded.digest = digest

-- log ---------------------------------------------------------------------------------------------------------------
local levels = { fatal = 0, syserror = 1, error = 2, crit = 3, warn = 4, info = 5, verbose = 6, debug = 7 }
local log_level = 5
local log = { cfg = nil }

local function logger(level, name)
    return function(text, ...)
        if levels[level] > log_level then
            return
        end
        if select('#', ...) > 0 and type(text) == 'string' then
            text = text:format(...)
        elseif type(text) == 'table' then
            text = package.loaded.json.encode(text)
        end
        text = tostring(text)
        local caller = debug.getinfo(2, 'Sl')
        local place = caller and ('%s:%d'):format(caller.short_src:match('[^/]*$'), math.max(caller.currentline, 0))
        internal.log(level, name and name .. ': ' .. text or text, place)
    end
end

local function fill_log(target, name)
    for _, level in ipairs({ 'error', 'crit', 'warn', 'info', 'verbose', 'debug' }) do
        target[level] = logger(level, name)
    end
    return target
end

fill_log(log)
function log.level(level)
    if level == nil then
        return log_level
    end
    level = levels[level] or tonumber(level)
    if type(level) ~= 'number' or level < 0 or level > 7 then
        error('log.level: expected a number from 0 to 7 or the name of a level', 2)
    end
    log_level = level
    internal.set_log(tostring(level), nil)
    return log_level
end
function log.new(name)
    return fill_log({}, name)
end
function log.rotate() internal.rotate_log() end
function log.pid() return ffi.C.getpid() end
function log.log_format(format)
    if format ~= 'plain' and format ~= 'json' then
        error("log_format: expected 'json' or 'plain'", 2)
    end
    internal.set_log(nil, format)
end
log.cfg = setmetatable({ level = 5, format = 'plain' }, {
    __call = function(self, options)
        for key, value in pairs(options or {}) do
            if key == 'level' then
                log.level(value)
            elseif key == 'format' then
                log.log_format(value)
            end
            rawset(self, key, value)
        end
    end,
})
package.loaded.log = log

-- tarantool ---------------------------------------------------------------------------------------------------------
-- The version that programs decide their behaviour by.
local version = '2.11.0-0-glycosa'
package.loaded.tarantool = {
    version = version, package = 'Tarantool', _TARANTOOL = version,
    build = {
        target = jit.os .. '-' .. (jit.arch == 'x64' and 'x86_64' or jit.arch) .. '-Release', options = 'lycosa',
        compiler = 'rustc', flags = '', mod_format = 'so',
    },
    pid = function() return ffi.C.getpid() end,
    uptime = function() return internal.info().uptime end,
    lycosa = internal.version(),
}
_G._TARANTOOL = version
local number_types = {}
for _, name in ipairs({ 'int8_t', 'uint8_t', 'int16_t', 'uint16_t', 'int32_t', 'uint32_t', 'int64_t', 'uint64_t', 'float', 'double' }) do
    number_types[#number_types + 1] = ffi.typeof(name)
end

function _G.tonumber64(...)
    local value, base = ...
    local count = select('#', ...)
    if count == 0 then
        error("bad argument #1 to '?' (value expected)", 0)
    end
    base = rawequal(base, nil) and -1 or internal.check_integer(count, 2, base)
    if base ~= -1 and (base < 2 or base > 36) then
        error("bad argument #2 to '?' (base out of range)", 0)
    end
    if type(value) == 'string' then
        return internal.tonumber64(value, base == -1 and 0 or base)
    end
    local is_number = type(value) == 'number'
    if type(value) == 'cdata' then
        for _, ctype in ipairs(number_types) do
            is_number = is_number or ffi.istype(ctype, value)
        end
    end
    if not is_number then
        return nil
    end
    if base ~= -1 and base ~= 10 then
        error("bad argument #1 to '?' (string expected)", 0)
    end
    return value
end

-- uri ---------------------------------------------------------------------------------------------------------------
local uri = {}
-- Characters of names and passwords.
local NAME = "[%w%-%._~!$&'()*+,;=%%]"

local function not_empty(text)
    return text ~= '' and text or nil
end

-- Login, password and what follows them.
local function parse_login(rest, result)
    local login, behind = rest:match('^(' .. NAME .. '+)@(.*)$')
    if login then
        result.login = login
        return behind
    end
    local password
    login, password, behind = rest:match('^(' .. NAME .. '+):(' .. NAME .. '*)@(.*)$')
    if login then
        result.login, result.password = login, password
        return behind
    end
    return rest
end

-- A unix socket and a path behind it; nil if it is none.
local function parse_unix(rest, result)
    local socket, path = rest:match('^unix/:(/[^:]+)(.*)$')
    if socket == nil then
        socket, path = rest:match('^(/[^/:][^:]*)(.*)$')
        if rest == '/' then
            socket, path = '/', ''
        end
    end
    if socket == nil or socket:find('[%s]') then
        return nil
    end
    if path ~= '' then
        path = path:match('^:(/.*)$')
        if path == nil then
            return nil
        end
    end
    result.host, result.service, result.unix, result.path = 'unix/', socket, socket, not_empty(path)
    return true
end

-- Host and service; nil if they are none.
local function parse_host(rest, result)
    local host, behind = rest:match('^%[([%x:%.]+)%](.*)$')
    if host then
        result.ipv6 = host
    else
        host, behind = rest:match('^(' .. NAME .. '+)(.*)$')
        if host == nil then
            return nil
        end
        if host:match('^%d+%.%d+%.%d+%.%d+$') then
            result.ipv4 = host
        end
    end
    result.host = host
    if behind ~= '' then
        local service = behind:match('^:(%d+)$') or behind:match('^:(%a%w*)$')
        if service == nil and behind ~= ':' then
            return nil
        end
        result.service = service
    end
    return true
end

function uri.parse(text)
    if text == nil then
        error('Usage: uri.parse(string)', 2)
    end
    if type(text) ~= 'string' then
        local kind = type(text) == 'boolean' and 'bool' or type(text)
        error(("bad argument #2 to 'uri_parse' (cannot convert '%s' to 'const char *')"):format(kind), 2)
    end
    -- A text for C ends at its first zero.
    text = text:match('^[^%z]*')
    if text:match('^%d+$') then
        return { service = text }
    end
    local result = {}
    local rest, fragment = text:match('^([^#]*)#(.*)$')
    rest, result.fragment = rest or text, fragment
    local before, query = rest:match('^([^?]*)%?(.*)$')
    rest, result.query = before or rest, query
    local scheme, behind = rest:match('^(%a[%w+.-]*)://([^/].*)$')
    if scheme then
        result.scheme, rest = scheme, behind
    else
        -- What is no scheme for lack of a host is both.
        result.scheme = rest:match('^(%a[%w+.-]*):/')
    end
    rest = parse_login(rest, result)
    if parse_unix(rest, result) then
        return result
    end
    local authority, path = rest:match('^([^/]*)(/.*)$')
    rest, result.path = authority or rest, path
    if rest == '' and path == nil and result.login == nil and (query or fragment) then
        return result
    end
    return parse_host(rest, result) and result or nil
end

local function uri_part(value)
    if value ~= nil and type(value) ~= 'string' then
        error(("cannot convert '%s' to 'const char *'"):format(type(value)), 3)
    end
    return value
end

function uri.format(parts, with_password)
    local login, password = uri_part(parts.login), uri_part(parts.password)
    local host, service = uri_part(parts.host), uri_part(parts.service)
    local text = uri_part(parts.scheme) and parts.scheme .. '://' or ''
    if host ~= nil then
        if login ~= nil then
            text = text .. login
            if password ~= nil and with_password then
                text = text .. ':' .. password
            end
            text = text .. '@'
        end
        text = text .. host
        if service ~= nil then
            text = text .. ':' .. service
        end
    end
    return text .. (uri_part(parts.path) or '') .. (uri_part(parts.query) and '?' .. parts.query or '')
        .. (uri_part(parts.fragment) and '#' .. parts.fragment or '')
end
package.loaded.uri = uri

ffi.cdef[[
int setenv(const char *name, const char *value, int overwrite);
int unsetenv(const char *name);
extern char **environ;
]]

function os.setenv(name, value)
    if type(name) ~= 'string' then
        error('os.setenv(name, [value]): bad arguments', 2)
    end
    if value == nil then
        ffi.C.unsetenv(name)
    else
        ffi.C.setenv(name, value, 1)
    end
end

function os.environ()
    local result, at = {}, 0
    while ffi.C.environ[at] ~= nil do
        local name, value = ffi.string(ffi.C.environ[at]):match('^([^=]*)=(.*)$')
        if name then
            result[name] = value
        end
        at = at + 1
    end
    return result
end

package.loaded.title = {
    update = function() end, get = function() return 'lycosa' end, get_custom = function() return '' end,
    set_custom = function() end,
}
