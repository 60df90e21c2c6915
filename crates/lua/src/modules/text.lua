-- json, yaml and msgpack: one set of rules, three notations.
local internal = ...

local ffi = require('ffi')

local array_metatable = internal.values.array_metatable
local map_metatable = internal.values.map_metatable

-- The options of a notation and how they are checked. What is not an option of Tarantool's is refused.
local defaults = {
    encode_sparse_convert = true, encode_sparse_ratio = 2, encode_sparse_safe = 10,
    encode_max_depth = 128, encode_deep_as_nil = false, encode_invalid_numbers = true, encode_load_metatables = true,
    encode_use_tostring = false, encode_invalid_as_nil = false, encode_number_precision = 14,
    decode_invalid_numbers = true, decode_save_metatables = true, decode_max_depth = 128,
}

local function options_of(changes, base)
    local options = {}
    for name, value in pairs(base or defaults) do
        options[name] = value
    end
    for name, value in pairs(changes or {}) do
        if defaults[name] == nil then
            error(("unknown option '%s'"):format(tostring(name)), 3)
        end
        options[name] = value
    end
    return options
end

local function new_notation(name, encode, decode, extra)
    local notation = {
        NULL = box.NULL, null = box.NULL, array_mt = array_metatable, map_mt = map_metatable,
    }
    local options = options_of()
    notation.cfg = setmetatable({}, {
        __index = function(_, key) return options[key] end,
        __call = function(_, changes)
            if type(changes) ~= 'table' then
                error(name .. '.cfg: table expected', 2)
            end
            options = options_of(changes, options)
        end,
        __serialize = function() return options end,
    })
    local function plain(value)
        -- Tables that remember what they were are marked by metatables.
        if options.decode_save_metatables == false then
            local function strip(inner)
                if type(inner) == 'table' then
                    setmetatable(inner, nil)
                    for _, child in pairs(inner) do
                        strip(child)
                    end
                end
                return inner
            end
            return strip(value)
        end
        return value
    end
    function notation.encode(value, changes)
        local own = changes and options_of(changes, options) or options
        return encode(value, own)
    end
    function notation.decode(text, ...)
        if type((...)) == 'table' then
            options_of((...), options)
        end
        return decode(text, plain, ...)
    end
    function notation.new()
        return new_notation(name, encode, decode, extra)
    end
    if extra then
        extra(notation)
    end
    return notation
end

package.loaded.json = new_notation('json', internal.json_encode, function(text, plain)
    if type(text) ~= 'string' then
        error(("bad argument #1 to 'decode' (string expected, got %s)"):format(text == nil and 'no value' or type(text)), 3)
    end
    return plain(internal.json_decode(text))
end)

package.loaded.yaml = new_notation('yaml', function(...)
    return internal.yaml_encode(...)
end, function(text, plain)
    if type(text) ~= 'string' then
        error("Usage: yaml.decode(document, [{tag_only = boolean}])", 3)
    end
    return plain(internal.yaml_decode(text))
end)

package.loaded.msgpack = new_notation('msgpack', internal.msgpack_encode, function(text, plain, from)
    if type(text) == 'cdata' then
        -- A pointer and a size: the rest is given as a pointer again.
        local start = ffi.cast('const char *', text)
        local value, position = internal.msgpack_decode(ffi.string(start, from), 1)
        return plain(value), start + position - 1
    end
    local value, position = internal.msgpack_decode(text, type(from) == 'number' and from or 1)
    return plain(value), position
end, function(notation)
    notation.decode_unchecked = notation.decode
    -- The number in the header of an array or map, and where its content begins.
    local function header_decoder(what, short, long)
        return function(text)
            local first, a, b, c, d = text:byte(1, 5)
            if first and first >= short and first <= short + 15 then
                return first - short, 2
            elseif first == long and b then
                return a * 256 + b, 4
            elseif first == long + 1 and d then
                return ((a * 256 + b) * 256 + c) * 256 + d, 6
            end
            error(('msgpack.decode_%s_header: unexpected msgpack type'):format(what), 2)
        end
    end
    notation.decode_array_header = header_decoder('array', 0x90, 0xdc)
    notation.decode_map_header = header_decoder('map', 0x80, 0xde)
end)
package.loaded.msgpackffi = package.loaded.msgpack
