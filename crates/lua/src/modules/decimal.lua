-- decimal: exact numbers of up to 38 digits.
local internal = ...

local ffi = require('ffi')
local ctype = internal.types.decimal
local combine, text_of, new = internal.decimal_combine, internal.decimal_text, internal.decimal_new

local decimal = {}

local function is_decimal(value)
    return ffi.istype(ctype, value)
end

local function made(value, position)
    if is_decimal(value) then
        return value
    end
    local kind = type(value)
    if kind ~= 'number' and kind ~= 'string' and kind ~= 'cdata' then
        error(('expected decimal, number or string as %d argument'):format(position or 1), 3)
    end
    if kind == 'string' and value:find('%s') then
        error(('incorrect value to convert to decimal as %d argument'):format(position or 1), 3)
    end
    return new(value)
end

function decimal.new(...)
    if select('#', ...) == 0 then
        error('usage: decimal.new(value)', 2)
    end
    return made((...))
end

decimal.is_decimal = is_decimal

local function unary(name, body)
    decimal[name] = function(value)
        return body(made(value))
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

local function checked(value)
    if not is_decimal(value) then
        error('expected cdata as 1 argument', 3)
    end
    return value
end

function decimal.precision(value) return (internal.decimal_parts(checked(value))) end
function decimal.scale(value) return (select(2, internal.decimal_parts(checked(value)))) end

function decimal.round(value, scale) return internal.decimal_round(checked(value), scale or 0, false) end
function decimal.trim(value) return internal.decimal_round(checked(value), -1, true) end
function decimal.rescale(value, scale) return internal.decimal_round(checked(value), scale, 'rescale') end

local function binary(operation)
    return function(a, b)
        return combine(operation, made(a), made(b, 2))
    end
end

local function compare(a, b)
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
        for _, other in ipairs({ a, b }) do
            if not is_decimal(other) and type(other) ~= 'number' and type(other) ~= 'string' and not tonumber(other) then
                return false
            end
        end
        if rawequal(a, nil) or rawequal(b, nil) then
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
