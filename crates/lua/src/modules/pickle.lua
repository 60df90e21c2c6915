-- pickle: numbers and texts as bytes, by a letter for each.
local internal = ...

local ffi = require('ffi')

ffi.cdef[[
union lycosa_pickled { char bytes[8]; uint8_t b; uint16_t s; uint32_t i; uint64_t l; float f; double d; };
]]

local room = ffi.new('union lycosa_pickled')

-- Bytes of each letter, the member of the union, and whether the first byte is the most significant one.
local numbers = {
    b = { 1, 'b', bits = 8 }, s = { 2, 's', bits = 16 }, n = { 2, 's', true, bits = 16 }, i = { 4, 'i', bits = 32 },
    N = { 4, 'i', true, bits = 32 }, l = { 8, 'l', bits = 64 }, q = { 8, 'l', true, bits = 64 }, f = { 4, 'f' }, d = { 8, 'd' },
}
local packed_letters = setmetatable({ B = numbers.b, S = numbers.s, I = numbers.i, L = numbers.l, Q = numbers.q },
    { __index = numbers })

local function text_argument(number, count, value)
    if count >= number and (type(value) == 'string' or type(value) == 'number') then
        return tostring(value)
    end
    error(("bad argument #%d to '?' (string expected, got %s)"):format(number, count < number and 'no value' or type(value)), 0)
end

-- The 64 bits of a whole number; nil if it is none.
local function bits_of(value)
    if type(value) == 'number' then
        if value % 1 ~= 0 or value < -2 ^ 63 or value >= 2 ^ 64 then
            return nil
        end
        return value < 0 and ffi.cast('uint64_t', ffi.cast('int64_t', value)) or ffi.cast('uint64_t', value)
    end
    if type(value) == 'cdata' then
        local plain = internal.values.to_plain(value)
        if ffi.istype('int64_t', plain) or ffi.istype('uint64_t', plain) then
            return ffi.cast('uint64_t', plain)
        end
    end
    return nil
end

local function pack(...)
    local count = select('#', ...)
    local format = text_argument(1, count, (...))
    local result = {}
    for at = 1, #format do
        local letter = format:sub(at, at)
        if at + 1 > count then
            error('pickle.pack: argument count does not match the format', 0)
        end
        local value = select(at + 1, ...)
        local kind = packed_letters[letter]
        if letter == 'A' or letter == 'a' then
            result[at] = text_argument(at + 1, count, value)
        elseif kind == nil then
            error(("pickle.pack: unsupported pack format specifier '%s'"):format(letter), 0)
        else
            if kind.bits then
                local bits = bits_of(value)
                if bits == nil then
                    error(('pickle.pack: expected %d-bit int'):format(kind.bits), 0)
                end
                room.l = bits
            else
                room[kind[2]] = type(value) ~= 'cdata' and tonumber(value) or 0
            end
            local bytes = ffi.string(room.bytes, kind[1])
            result[at] = kind[3] and bytes:reverse() or bytes
        end
    end
    return table.concat(result)
end

local function unpack_bytes(...)
    local count = select('#', ...)
    local format = text_argument(1, count, (...))
    local text = text_argument(2, count, (select(2, ...)))
    local result, place, number = {}, 1, 0
    for letter in format:gmatch('.') do
        number = number + 1
        local kind = numbers[letter]
        if letter == 'A' or letter == 'a' then
            result[number] = text:sub(place)
            place = #text + 1
        elseif kind == nil then
            error(("pickle.unpack: unsupported format specifier '%s'"):format(letter), 0)
        else
            if place + kind[1] - 1 > #text then
                error(("pickle.unpack('%s'): got %d bytes (expected: %d+)"):format(letter, #text, place + kind[1] - 1), 0)
            end
            local bytes = text:sub(place, place + kind[1] - 1)
            ffi.copy(room.bytes, kind[3] and bytes:reverse() or bytes, kind[1])
            local value = room[kind[2]]
            if kind[1] == 8 and kind.bits and value < 100000000000000ULL then
                value = tonumber(value)
            end
            result[number] = value
            place = place + kind[1]
        end
    end
    if place ~= #text + 1 then
        error(("pickle.unpack('%s'): too many bytes: unpacked %d, total %d"):format(format, place - 1, #text), 0)
    end
    return unpack(result, 1, number)
end

package.loaded.pickle = { pack = pack, unpack = unpack_bytes }
