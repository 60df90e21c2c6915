-- json, yaml and msgpack: one set of rules, three notations.
local internal = ...

local ffi = require('ffi')

local array_metatable = internal.values.array_metatable
local map_metatable = internal.values.map_metatable

-- The options of a notation. Names that are none of these are passed over, as Tarantool does.
local defaults = {
    encode_sparse_convert = true, encode_sparse_ratio = 2, encode_sparse_safe = 10,
    encode_max_depth = 128, encode_deep_as_nil = false, encode_invalid_numbers = true, encode_load_metatables = true,
    encode_use_tostring = false, encode_invalid_as_nil = false, encode_number_precision = 14,
    decode_invalid_numbers = true, decode_save_metatables = true, decode_max_depth = 128,
}

local function whole(value)
    value = tonumber(value) or 0
    if value ~= value or math.abs(value) > 2147483647 then
        return 0
    end
    return value < 0 and math.ceil(value) or math.floor(value)
end

-- Takes over what `changes` says into `options`. A flag is anything, a number what becomes one.
local function change(options, changes)
    for name, default in pairs(defaults) do
        local value = changes[name]
        if value ~= nil then
            if type(default) == 'boolean' then
                options[name] = value and true or false
            else
                options[name] = whole(value)
            end
        end
    end
    -- Only msgpack has a form for error objects.
    if changes.encode_error_as_ext ~= nil then
        options.encode_error_as_ext = changes.encode_error_as_ext and true or false
    end
end

local function copy(options)
    local result = { encode_error_as_ext = options.encode_error_as_ext }
    for name in pairs(defaults) do
        result[name] = options[name]
    end
    return result
end

local function is_default(options)
    if options.encode_error_as_ext == false then
        return false
    end
    for name, default in pairs(defaults) do
        if options[name] ~= default then
            return false
        end
    end
    return true
end

local function kind_of(count, value)
    return count == 0 and 'no value' or type(value)
end

-- A notation: `encode(options, count, ...)` and `decode(options, count, ...)` get nil for default options.
local function new_notation(encode, decode, extra)
    local notation = {
        NULL = box.NULL, array_mt = array_metatable, map_mt = map_metatable,
    }
    local options = copy(defaults)
    local in_force
    notation.cfg = setmetatable(options, {
        __call = function(_, ...)
            local changes = ...
            if type(changes) ~= 'table' then
                error(("bad argument #2 to '?' (table expected, got %s)"):format(kind_of(select('#', ...), changes)), 0)
            end
            change(options, changes)
            in_force = not is_default(options) and copy(options) or nil
            if notation == package.loaded.msgpack then
                internal.set_errors_as_text(options.encode_error_as_ext == false)
            end
        end,
        __serialize = 'map',
    })
    -- The options of one call: those of the notation with what the call's own table says.
    local function own(changes)
        if type(changes) ~= 'table' then
            return in_force
        end
        local result = copy(in_force or defaults)
        change(result, changes)
        return result
    end
    function notation.encode(...)
        return encode(own, select('#', ...), ...)
    end
    function notation.decode(...)
        return decode(own, select('#', ...), ...)
    end
    function notation.new()
        return new_notation(encode, decode, extra)
    end
    if extra then
        extra(notation)
    end
    return notation
end

-- Takes the metatables from decoded values, if they are not wanted.
local function plain(value, options)
    if options == nil or options.decode_save_metatables then
        return value
    end
    local function strip(inner)
        if type(inner) == 'table' then
            setmetatable(inner, nil)
            for _, child in next, inner do
                strip(child)
            end
        end
        return inner
    end
    return strip(value)
end

-- The options of one call: anything but a table is none.
local function check_options(count, changes)
    if count ~= 1 and count ~= 2 then
        error("bad argument #1 to '?' (expected 1 or 2 arguments)", 0)
    end
    if count == 2 and type(changes) ~= 'table' and type(changes) ~= 'string' then
        error(('attempt to index a %s value'):format(type(changes)), 0)
    end
end

package.loaded.json = new_notation(function(own, count, value, changes)
    check_options(count, changes)
    local text = internal.json_encode(value, own(changes))
    return internal.tweaks.json_plain_slash and text:gsub('\\(.)', { ['/'] = '/' }) or text
end, function(own, count, text, changes)
    check_options(count, changes)
    if type(text) ~= 'string' and type(text) ~= 'number' then
        error(("bad argument #1 to '?' (string expected, got %s)"):format(type(text)), 0)
    end
    local options = own(changes)
    return plain(internal.json_decode(tostring(text), options), options)
end, function(notation)
    notation.null = box.NULL
end)

local function plain_all(options, ...)
    if options == nil or options.decode_save_metatables then
        return ...
    end
    for i = 1, select('#', ...) do
        plain((select(i, ...)), options)
    end
    return ...
end

package.loaded.yaml = new_notation(function(own, count, value, tag)
    local handle, prefix
    if count == 2 and type(tag) == 'table' then
        handle, prefix = tag.tag_handle, tag.tag_prefix
    elseif count ~= 1 then
        error('Usage: encode(object, {tag_prefix = <string>, tag_handle = <string>})', 3)
    end
    if (handle == nil) ~= (prefix == nil) or handle ~= nil and (type(handle) ~= 'string' or type(prefix) ~= 'string') then
        error('Usage: encode(object, {tag_prefix = <string>, tag_handle = <string>})', 3)
    end
    if handle ~= nil and handle:sub(1, 1) ~= '!' then
        return nil, "tag handle must start with '!'"
    end
    return internal.yaml_encode(value, own(), handle, prefix)
end, function(own, count, text, changes)
    if type(text) ~= 'string' and type(text) ~= 'number' or changes ~= nil and type(changes) ~= 'table' then
        error('Usage: yaml.decode(document, [{tag_only = boolean}])', 3)
    end
    return plain_all(own(), internal.yaml_decode(tostring(text), changes and changes.tag_only))
end)

local integer = internal.check_integer

local function is_pointer(value)
    return ffi.istype('char *', value)
end

package.loaded.msgpack = new_notation(function(own, count, value, buffer)
    if count == 0 then
        error('msgpack.encode: a Lua object expected', 3)
    end
    if count == 1 then
        return internal.msgpack_encode(value, own())
    end
    if not internal.is_buffer(buffer) then
        error("msgpack.encode: argument 2 must be of type 'struct ibuf'", 3)
    end
    -- What cannot be encoded leaves the buffer as it is.
    local text = internal.msgpack_encode(value, own())
    ffi.copy(buffer:alloc(#text), text, #text)
    return #text
end, function(own, count, text, place)
    local options = own()
    if is_pointer(text) then
        local size = integer(count, 2, place)
        if size < 0 then
            error("msgpack.decode: size can't be negative", 3)
        end
        local value, behind = internal.msgpack_decode_pointer(text, size)
        return plain(value, options), behind
    end
    if type(text) ~= 'string' then
        error("msgpack.decode: a Lua string or 'char *' expected", 3)
    end
    local value, behind = internal.msgpack_decode(text, count > 1 and integer(count, 2, place) or nil)
    return plain(value, options), behind
end, function(notation)
    -- Unchecked in name: what is malformed is refused all the same.
    function notation.decode_unchecked(...)
        if is_pointer((...)) then
            return notation.decode((...), 2 ^ 47)
        end
        return notation.decode(...)
    end
    -- The number in the header of an array or map, and where its content begins.
    local function header_decoder(name, is_map)
        name = ('msgpack.decode_%s_header'):format(name)
        return function(...)
            local start, size = ...
            if select('#', ...) ~= 2 then
                error(('Usage: %s(ptr, size)'):format(name), 2)
            end
            if not is_pointer(start) then
                error(("%s: 'char *' expected"):format(name), 2)
            end
            size = integer(2, 2, size)
            if size <= 0 then
                error(('%s: non-positive size'):format(name), 2)
            end
            local ok, number, behind = pcall(internal.msgpack_header, start, size, is_map)
            if not ok then
                error(('%s: %s'):format(name, number), 2)
            end
            return number, behind
        end
    end
    notation.decode_array_header = header_decoder('array', false)
    notation.decode_map_header = header_decoder('map', true)
end)

-- Objects: values that stay encoded until somebody wants them.
local object_methods = {}
local object_metatable = {
    __index = object_methods, __name = 'msgpack.object',
    __tostring = function() return 'msgpack.object' end,
    __serialize = function(self) return self:decode() end,
}

function object_methods.decode(self)
    return (package.loaded.msgpack.decode(self.raw__))
end

local function new_object(raw)
    return setmetatable({ raw__ = raw }, object_metatable)
end

function package.loaded.msgpack.object(value)
    return new_object(package.loaded.msgpack.encode(value))
end

function package.loaded.msgpack.object_from_raw(raw, size)
    if is_pointer(raw) and type(size) == 'number' and size >= 0 then
        raw = ffi.string(raw, size)
    elseif type(raw) ~= 'string' then
        error('msgpack.object_from_raw: a Lua string or char * and a size expected', 2)
    end
    local _, behind = package.loaded.msgpack.decode(raw)
    if behind ~= #raw + 1 then
        error('msgpack.object_from_raw: invalid MsgPack', 2)
    end
    return new_object(raw)
end

function package.loaded.msgpack.is_object(value)
    return type(value) == 'table' and getmetatable(value) == object_metatable
end

package.loaded.msgpackffi = package.loaded.msgpack
