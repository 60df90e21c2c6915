-- varbinary: bytes that are no text, as the type of fields of that name has them.
local internal = ...

local ffi = require('ffi')

ffi.cdef[[
struct varbinary { char data[?]; };
]]

local varbinary = ffi.typeof('struct varbinary')
local pointer = ffi.typeof('const char *')

local function is(value)
    return ffi.istype(varbinary, value)
end

local function new(...)
    local data, size = ...
    if data == nil then
        size = 0
    elseif type(data) == 'string' then
        size = #data
    elseif is(data) then
        size = ffi.sizeof(data)
    elseif not (ffi.istype('char *', data) or ffi.istype(pointer, data)) or type(size) ~= 'number' or not (size >= 0) then
        error('Usage: varbinary.new(str) or varbinary.new(ptr, size)', 2)
    end
    local result = ffi.new(varbinary, size)
    if size > 0 then
        ffi.copy(result, data, size)
    end
    return result
end

local function bytes(value)
    if type(value) == 'string' then
        return value
    end
    return is(value) and ffi.string(value, ffi.sizeof(value)) or nil
end

ffi.metatype(varbinary, {
    __len = function(value) return ffi.sizeof(value) end,
    __tostring = bytes,
    __eq = function(a, b)
        local left = bytes(a)
        return left ~= nil and left == bytes(b)
    end,
})

internal.types.varbinary = varbinary
internal.values.make_varbinary = new

package.loaded.varbinary = { new = new, is = is }
