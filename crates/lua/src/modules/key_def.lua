-- key_def: the fields of a key outside of any index.
local internal = ...

local ffi = require('ffi')

ffi.cdef[[
struct key_def { uint64_t slot__; };
]]

-- Field numbers from 1.
local FIELD_NUMBER_MAX = 2147483647
local USAGE = 'Bad params, use: key_def.new({{fieldno = fieldno, type = type[, is_nullable = <boolean>][, path = <string>]'
    .. '[, collation_id = <number>][, collation = <string>]}, ...}'

local function illegal(text)
    error(internal.values.make_error(0, 'IllegalParams', text))
end

local function number_of(object)
    return tonumber(object.slot__)
end

local function is_key_def(value)
    return ffi.istype('struct key_def', value)
end

local function free(object)
    internal.key_def_free(number_of(object))
end

local function take(number)
    return ffi.gc(ffi.new('struct key_def', number), free)
end

local types = {
    any = 'any', unsigned = 'unsigned', string = 'string', number = 'number', double = 'double', integer = 'integer',
    boolean = 'boolean', varbinary = 'varbinary', scalar = 'scalar', decimal = 'decimal', uuid = 'uuid', array = 'array',
    map = 'map', num = 'unsigned', str = 'string', ['*'] = 'any',
}
local unsupported = { any = true, array = true, map = true }

-- A part as `key_def.new` gets it, as the function below takes it.
local function read_part(part)
    local field, other = part.fieldno, part.field
    if field ~= nil and other ~= nil then
        illegal('Conflicting options: fieldno and field')
    elseif field == nil and other == nil then
        illegal('fieldno or field must not be nil')
    end
    field = tonumber(field == nil and other or field)
    if field == nil or field % 1 ~= 0 or field < 1 or field > FIELD_NUMBER_MAX then
        illegal('fieldno must be a whole number from 1')
    end
    if part.type == nil then
        illegal('type must not be nil')
    end
    local kind = types[tostring(part.type):lower()]
    if kind == nil then
        illegal('Unknown field type: ' .. tostring(part.type))
    elseif unsupported[kind] then
        illegal('Unsupported field type: ' .. kind)
    end
    local result = { fieldno = field, type = kind, is_nullable = part.is_nullable ~= nil and part.is_nullable ~= false }
    local id, name = part.collation_id, part.collation
    if id ~= nil and name ~= nil then
        illegal('Conflicting options: collation_id and collation')
    elseif id ~= nil then
        result.collation = internal.key_def_collation(tonumber(id) or -1)
        if result.collation == nil then
            internal.fail('WRONG_INDEX_OPTIONS', 1, 'collation was not found by ID')
        end
    elseif name ~= nil then
        result.collation = internal.key_def_collation(tostring(name))
        if result.collation == nil then
            illegal(('Unknown collation: "%s"'):format(tostring(name)))
        end
    end
    if result.collation ~= nil and kind ~= 'string' and kind ~= 'scalar' then
        -- It is about texts, and there are none.
        result.collation = nil
    end
    if part.path ~= nil then
        local state = type(part.path) == 'string' and internal.key_def_check_path(part.path) or 'invalid'
        if state == 'multikey' then
            illegal('multikey path is unsupported')
        elseif state == 'invalid' then
            illegal('invalid path')
        end
        result.path = part.path
    end
    return result
end

local function new(parts)
    if type(parts) ~= 'table' then
        error(USAGE, 2)
    end
    if #parts == 0 then
        illegal('Key definition can only be constructed by using at least 1 key_part')
    end
    local list = {}
    for at, part in ipairs(parts) do
        if type(part) ~= 'table' then
            error(('attempt to index a %s value'):format(type(part)), 2)
        end
        list[at] = read_part(part)
    end
    return take(internal.key_def_new(list))
end

local function check_row(row)
    if type(row) ~= 'table' and not box.tuple.is(row) then
        illegal(('A tuple or a table expected, got %s'):format(type(row)))
    end
    return row
end

local methods = {}

function methods.extract_key(object, row)
    if not is_key_def(object) or row == nil then
        error('Usage: key_def:extract_key(tuple)', 2)
    end
    return internal.key_def_extract(number_of(object), check_row(row))
end

-- The number of arguments counts: nil is a row that is none.
function methods.compare(...)
    local object, a, b = ...
    if select('#', ...) ~= 3 or not is_key_def(object) then
        error('Usage: key_def:compare(tuple_a, tuple_b)', 2)
    end
    return internal.key_def_compare(number_of(object), check_row(a), check_row(b))
end

function methods.compare_with_key(...)
    local object, row, key = ...
    if select('#', ...) ~= 3 or not is_key_def(object) then
        error('Usage: key_def:compare_with_key(tuple, key)', 2)
    end
    return internal.key_def_compare_with_key(number_of(object), check_row(row), key)
end

-- Two keys, as later versions have it.
function methods.compare_keys(...)
    local object, a, b = ...
    if select('#', ...) ~= 3 or not is_key_def(object) then
        error('Usage: key_def:compare_keys(key_a, key_b)', 2)
    end
    local parts = methods.totable(object)
    for at, part in ipairs(parts) do
        part.fieldno, part.path = at, nil
    end
    local keys = new(parts)
    return internal.key_def_compare_with_key(number_of(keys), check_row(a), b)
end

function methods.validate_tuple(...)
    local object, row = ...
    if select('#', ...) ~= 2 or not is_key_def(object) then
        error('Usage: key_def:validate_tuple(tuple)', 2)
    end
    internal.key_def_extract(number_of(object), check_row(row))
end

function methods.validate_key(...)
    local object, key = ...
    if select('#', ...) ~= 2 or not is_key_def(object) then
        error('Usage: key_def:validate_key(key)', 2)
    end
    local parts, count = methods.totable(object), type(key) == 'table' and #key or box.tuple.is(key) and #key or 1
    if count > #parts then
        internal.fail('KEY_PART_COUNT', #parts, count)
    end
    for at, part in ipairs(parts) do
        part.fieldno, part.path, part.is_nullable = at, nil, part.is_nullable or at > count
    end
    internal.key_def_extract(number_of(new(parts)), check_row(key))
end

function methods.validate_full_key(...)
    local object, key = ...
    if select('#', ...) ~= 2 or not is_key_def(object) then
        error('Usage: key_def:validate_full_key(key)', 2)
    end
    local count, got = #methods.totable(object), type(key) == 'table' and #key or box.tuple.is(key) and #key or 1
    if count ~= got then
        internal.fail('EXACT_MATCH', count, got)
    end
    methods.validate_key(object, key)
end

function methods.merge(object, other)
    if not is_key_def(object) or not is_key_def(other) then
        error('Usage: key_def:merge(second_key_def)', 2)
    end
    return take(internal.key_def_merge(number_of(object), number_of(other)))
end

function methods.totable(object)
    if not is_key_def(object) then
        error('Usage: key_def:totable()', 2)
    end
    return internal.key_def_parts(number_of(object))
end

methods.__serialize = methods.totable

ffi.metatype('struct key_def', {
    __index = methods,
    __len = function(object) return #methods.totable(object) end,
    __tostring = function() return '<struct key_def &>' end,
})

internal.key_def = { is = is_key_def, number_of = number_of }

package.loaded.key_def = {
    new = new, is = is_key_def, extract_key = methods.extract_key, compare = methods.compare,
    compare_with_key = methods.compare_with_key, compare_keys = methods.compare_keys, merge = methods.merge,
    totable = methods.totable, validate_key = methods.validate_key, validate_full_key = methods.validate_full_key,
    validate_tuple = methods.validate_tuple,
}
