-- decimal: exact numbers of up to 38 digits.
local internal = ...

local ffi = require('ffi')
local ctype = internal.types.decimal
local combine, text_of, new = internal.decimal_combine, internal.decimal_text, internal.decimal_new

local decimal = {}

local function is_decimal(value)
    return ffi.istype(ctype, value)
end

local function unfit(position)
    error(('expected decimal, number or string as %d argument'):format(position), 4)
end

local function made(value, position)
    if is_decimal(value) then
        return value
    end
    position = position or 1
    local kind = type(value)
    if kind == 'cdata' then
        local is_integer = ffi.istype('int64_t', value) or ffi.istype('uint64_t', value)
        value = is_integer and value or tonumber(value)
        if value == nil then
            unfit(position)
        end
    elseif kind ~= 'number' and kind ~= 'string' then
        unfit(position)
    end
    if kind == 'string' and value:find('%s') then
        error(('incorrect value to convert to decimal as %d argument'):format(position), 3)
    end
    return new(value, position)
end

function decimal.new(...)
    if select('#', ...) == 0 then
        error('usage: decimal.new(value)', 2)
    end
    return made((...))
end

function decimal.is_decimal(...)
    if select('#', ...) == 0 then
        error('usage: decimal.is_decimal(value)', 2)
    end
    return is_decimal((...))
end

local function unary(name, body)
    decimal[name] = function(...)
        if select('#', ...) == 0 then
            error(('usage: decimal.%s(decimal)'):format(name), 2)
        end
        return body(made((...)))
    end
end

unary('abs', function(value)
    if combine('compare', value, new(0)) < 0 then
        return combine('-', new(0), value)
    end
    -- Takes the minus off a zero.
    return combine('+', value, new(0))
end)
for _, name in ipairs({ 'sqrt', 'exp', 'ln', 'log10' }) do
    unary(name, function(value) return combine(name, value, value) end)
end

-- A function of a decimal; what only can become one is refused.
local function strict(name, usage, arguments_min, body)
    decimal[name] = function(...)
        if select('#', ...) < arguments_min then
            error(('usage: decimal.%s(%s)'):format(name, usage), 2)
        end
        local value, scale = ...
        if not is_decimal(value) then
            error(('expected %s as 1 argument'):format(type(value) == 'cdata' and 'decimal' or 'cdata'), 2)
        end
        -- No number is 0, as is a 64-bit one.
        return body(value, type(scale) ~= 'cdata' and tonumber(scale) or 0)
    end
end

strict('precision', 'decimal', 1, function(value) return (internal.decimal_parts(value)) end)
strict('scale', 'decimal', 1, function(value) return (select(2, internal.decimal_parts(value))) end)
strict('trim', 'decimal', 1, function(value) return internal.decimal_round(value, -1, true) end)
strict('round', 'decimal, scale', 2, function(value, scale) return internal.decimal_round(value, scale, false) end)
strict('rescale', 'decimal, scale', 2, function(value, scale)
    return internal.decimal_round(value, scale, 'rescale')
end)

local function binary(operation)
    return function(a, b)
        return combine(operation, made(a), made(b, 2))
    end
end

local function compare(a, b)
    if type(a) == 'nil' or type(b) == 'nil' then
        error('attempt to compare decimal with nil', 3)
    end
    return combine('compare', made(a), made(b, 2))
end

ffi.metatype('struct lycosa_decimal', {
    __index = {
        abs = decimal.abs, precision = decimal.precision, scale = decimal.scale, round = decimal.round,
        trim = decimal.trim, rescale = decimal.rescale, sqrt = decimal.sqrt, exp = decimal.exp, ln = decimal.ln,
        log10 = decimal.log10, is_decimal = is_decimal,
        __serialize = function(value) return text_of(value) end,
    },
    __add = binary('+'), __sub = binary('-'), __mul = binary('*'), __div = binary('/'), __mod = binary('%'),
    __pow = binary('^'),
    __unm = function(value) return combine('-', new(0), value) end,
    __eq = function(a, b)
        local function is_null(value)
            return not is_decimal(value) and value == nil
        end
        if is_null(a) or is_null(b) then
            return false
        end
        return compare(a, b) == 0
    end,
    __lt = function(a, b) return compare(a, b) < 0 end,
    __le = function(a, b) return compare(a, b) <= 0 end,
    __tostring = function(value) return text_of(value) end,
    __concat = function(a, b) return tostring(a) .. tostring(b) end,
})

package.loaded.decimal = decimal
