-- What everything else stands on: C types, the values that conversions use, guards of the C stack.
local internal = ...

local ffi = require('ffi')
-- LuaJIT's loader would make the library, and all C types, anew.
package.preload.ffi = function() return ffi end

ffi.cdef[[
struct tuple { uint8_t opaque__; };
typedef struct tuple box_tuple_t;
struct tt_uuid {
    uint32_t time_low;
    uint16_t time_mid;
    uint16_t time_hi_and_version;
    uint8_t clock_seq_hi_and_reserved;
    uint8_t clock_seq_low;
    uint8_t node[6];
};
struct lycosa_decimal {
    uint64_t low;
    int64_t high;
    int32_t scale;
    int32_t is_minus_zero;
};
struct datetime { double epoch; int32_t nsec; int16_t tzoffset; int16_t tzindex; };
struct interval { double sec; double min; double hour; double day; int32_t week; int32_t month; int32_t year; int32_t nsec; int32_t adjust; };
struct error { uint64_t slot__; };
]]

box = { internal = internal, NULL = ffi.cast('void *', 0) }

internal.types = {
    int64 = ffi.typeof('int64_t'),
    uint64 = ffi.typeof('uint64_t'),
    null = ffi.typeof('void *'),
    float = ffi.typeof('float'),
    double = ffi.typeof('double'),
    tuple = ffi.typeof('const struct tuple &'),
    uuid = ffi.typeof('struct tt_uuid'),
    decimal = ffi.typeof('struct lycosa_decimal'),
    datetime = ffi.typeof('struct datetime'),
    interval = ffi.typeof('struct interval'),
    error = ffi.typeof('struct error'),
    bytes = ffi.typeof('char *'),
    const_bytes = ffi.typeof('const char *'),
}

-- Later modules replace what is nil here and call `internal.setup` last.
internal.values = {
    null = box.NULL,
    array_metatable = { __serialize = 'seq' },
    map_metatable = { __serialize = 'map' },
    to_text = tostring,
}

-- cdata of kinds that conversions do not know: integers become 64-bit ones, pointers NULL.
local int64, uint64 = internal.types.int64, internal.types.uint64
local small_signed = { ffi.typeof('int8_t'), ffi.typeof('int16_t'), ffi.typeof('int32_t') }
local small_unsigned = { ffi.typeof('uint8_t'), ffi.typeof('uint16_t'), ffi.typeof('uint32_t') }
function internal.values.to_plain(value)
    for _, ctype in ipairs(small_signed) do
        if ffi.istype(ctype, value) then
            return int64(value)
        end
    end
    for _, ctype in ipairs(small_unsigned) do
        if ffi.istype(ctype, value) then
            return uint64(value)
        end
    end
    if ffi.istype('bool', value) then
        return value == ffi.new('bool', true)
    end
    if ffi.istype('struct error', value) then
        return tostring(value)
    end
    local ok, is_null = pcall(function() return value == nil end)
    if ok and is_null then
        return box.NULL
    end
    return value
end

-- C functions that call Lua again use the C stack. Each looks at what is left of it first.
local check = internal.check_stack
local gsub, sort, loader, resume, wrap = string.gsub, table.sort, load, coroutine.resume, coroutine.wrap
local format, loadstring_c, dofile_c, foreach = string.format, loadstring, dofile, table.foreach
local require_c, gmatch = require, string.gmatch

function string.gsub(...)
    check()
    return gsub(...)
end

function table.sort(...)
    check()
    return sort(...)
end

function string.format(...)
    check()
    return format(...)
end

function load(...)
    check()
    return loader(...)
end

function loadstring(...)
    check()
    return loadstring_c(...)
end

function dofile(...)
    check()
    return dofile_c(...)
end

function require(...)
    check()
    return require_c(...)
end

function coroutine.resume(...)
    check()
    return resume(...)
end

function coroutine.wrap(f)
    local resumed = wrap(f)
    return function(...)
        check()
        return resumed(...)
    end
end

-- pairs and ipairs obey __pairs and __ipairs, for cdata too.
local pairs_plain, ipairs_plain, getmetatable = pairs, ipairs, getmetatable
local function iterate(value, name, plain)
    local kind = type(value)
    if kind == 'table' then
        local metatable = getmetatable(value)
        if type(metatable) == 'table' then
            local custom = rawget(metatable, name)
            if custom then
                return custom(value)
            end
        end
    elseif kind == 'cdata' and internal.is_tuple(value) then
        return internal.tuple_pairs(value)
    end
    return plain(value)
end

function pairs(value)
    return iterate(value, '__pairs', pairs_plain)
end

function ipairs(value)
    return iterate(value, '__ipairs', ipairs_plain)
end

function internal.is_tuple(value)
    return ffi.istype('struct tuple', value)
end

function print(...)
    local texts = {}
    for i = 1, select('#', ...) do
        texts[i] = tostring((select(i, ...)))
    end
    internal.write_out(table.concat(texts, '\t') .. '\n')
end

-- io.write keeps its order with print.
local io_write = io.write
function io.write(...)
    for i = 1, select('#', ...) do
        local value = select(i, ...)
        if type(value) ~= 'string' and type(value) ~= 'number' then
            return io_write(...)
        end
        internal.write_out(tostring(value))
    end
    return io.stdout
end

function os.exit(code)
    internal.exit(code)
end
