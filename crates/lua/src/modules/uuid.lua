-- uuid: identifiers of 16 bytes, cdata of their own type.
local internal = ...

local ffi = require('ffi')

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
