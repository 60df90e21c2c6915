-- buffer: memory that grows at its end and is read from its front.
--
--     buf        rpos            wpos            epos
--      | was read | to be read    | free          |
--
-- The bytes are Lua's own, so that Lua's limit of memory bounds them; each buffer keeps its own alive by their address.
local internal = ...

local ffi = require('ffi')

ffi.cdef[[
struct slab_cache;
struct ibuf {
    struct slab_cache *slabc;
    char *buf;
    char *rpos;
    char *wpos;
    char *epos;
    size_t start_capacity;
};
typedef struct ibuf ibuf_t;
]]

local READAHEAD = 16320
-- More than any address has.
local SIZE_MAX = 2 ^ 47
-- What `static_alloc` gives holds until so many others were given.
local STATIC_BLOCKS = 16

local bytes_type = ffi.typeof('char[?]')
local pointer_type = ffi.typeof('char *')
local buffer_type = ffi.typeof('struct ibuf')
local NOWHERE = ffi.cast(pointer_type, 0)

-- The bytes of each buffer by their address.
local kept = {}

local function address(pointer)
    return tonumber(ffi.cast('uintptr_t', pointer))
end

function internal.is_buffer(value)
    return ffi.istype('struct ibuf', value) or ffi.istype('struct ibuf *', value)
end

local function check(buffer, method)
    if not internal.is_buffer(buffer) then
        error(('Attempt to call method without object, use ibuf:%s()'):format(method), 4)
    end
end

local function recycle(buffer)
    if buffer.buf ~= NOWHERE then
        kept[address(buffer.buf)] = nil
    end
    buffer.buf, buffer.rpos, buffer.wpos, buffer.epos = NOWHERE, NOWHERE, NOWHERE, NOWHERE
end

-- Room for `size` more bytes at `wpos`: what was read makes way, or other memory is taken.
local function reserve(buffer, size)
    -- What is no number raises here, as Tarantool's does.
    local behind = buffer.wpos + size
    if not (size >= 0 and size < SIZE_MAX) then
        error(size < 0 and 'size must not be negative' or 'not enough memory', 3)
    elseif behind <= buffer.epos then
        return buffer.wpos
    end
    local used = tonumber(buffer.wpos - buffer.rpos)
    local capacity = tonumber(buffer.epos - buffer.buf)
    if used + size <= capacity then
        -- The two places may lie over each other; the copy of the bytes goes by a third one.
        ffi.copy(buffer.buf, ffi.string(buffer.rpos, used), used)
    else
        local wanted = capacity == 0 and math.max(tonumber(buffer.start_capacity), 16) or capacity * 2
        while wanted < used + size do
            wanted = wanted * 2
        end
        local bytes = ffi.new(bytes_type, wanted)
        local start = ffi.cast(pointer_type, bytes)
        if used > 0 then
            ffi.copy(start, buffer.rpos, used)
        end
        recycle(buffer)
        kept[address(start)] = bytes
        buffer.buf, buffer.epos = start, start + wanted
    end
    buffer.rpos = buffer.buf
    buffer.wpos = buffer.buf + used
    return buffer.wpos
end

local methods = {}

function methods.alloc(buffer, size)
    local place = reserve(buffer, size)
    buffer.wpos = buffer.wpos + size
    return place
end

methods.reserve = reserve

function methods.size(buffer)
    return tonumber(buffer.wpos - buffer.rpos)
end

function methods.capacity(buffer)
    return tonumber(buffer.epos - buffer.buf)
end

function methods.pos(buffer)
    return tonumber(buffer.rpos - buffer.buf)
end

function methods.unused(buffer)
    return tonumber(buffer.epos - buffer.wpos)
end

function methods.checksize(buffer, size)
    if not (size >= 0 and size <= tonumber(buffer.wpos - buffer.rpos)) then
        error(('Attempt to read out of range bytes: needed=%d size=%d'):format(tonumber(size),
            tonumber(buffer.wpos - buffer.rpos)), 3)
    end
    return buffer.rpos
end

function methods.read(buffer, size)
    local place = methods.checksize(buffer, size)
    buffer.rpos = buffer.rpos + size
    return place
end

function methods.reset(buffer)
    buffer.rpos, buffer.wpos = buffer.buf, buffer.buf
end

methods.recycle = recycle

local checked = {}
for name, method in pairs(methods) do
    checked[name] = function(buffer, ...)
        check(buffer, name)
        return method(buffer, ...)
    end
end

local function describe(buffer)
    return buffer.buf ~= NOWHERE and { size = methods.size(buffer), capacity = methods.capacity(buffer) } or {}
end
checked.__serialize = describe

ffi.metatype(buffer_type, {
    __index = function(_, name)
        local method = checked[name]
        if method == nil then
            error(("'struct ibuf' has no member named '%s'"):format(tostring(name)), 2)
        end
        return method
    end,
    __tostring = function() return '<ibuf>' end,
    __gc = recycle,
})

local function new(size)
    if size ~= nil and (type(size) ~= 'number' or not (size >= 0 and size < SIZE_MAX)) then
        error('Usage: ibuf([size])', 2)
    end
    local buffer = ffi.new(buffer_type, nil, nil, nil, nil, nil, READAHEAD)
    if size ~= nil and size > 0 then
        reserve(buffer, size)
    end
    return buffer
end

-- A buffer for a moment, shared by all: who yields with it in hand finds what others have put into it.
local shared = new()
local spare = {}

local blocks, next_block = {}, 0

package.loaded.buffer = {
    READAHEAD = READAHEAD, IBUF_SHARED = shared, ibuf = new,
    static_alloc = function(kind, count)
        next_block = next_block % STATIC_BLOCKS + 1
        blocks[next_block] = ffi.new(ffi.typeof('$[?]', ffi.typeof(kind)), count or 1)
        return blocks[next_block]
    end,
    internal = {
        cord_ibuf_take = function() return table.remove(spare) or new() end,
        cord_ibuf_put = function(buffer)
            buffer:recycle()
            if #spare < STATIC_BLOCKS then
                spare[#spare + 1] = buffer
            end
        end,
        cord_ibuf_drop = recycle,
    },
    ffi_stash_new = function(kind)
        local known
        return { take = function()
            local value = known or ffi.new(kind)
            known = nil
            return value
        end, put = function(value) known = value end }
    end,
}
