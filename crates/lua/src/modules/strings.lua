-- string.* and table.* beyond Lua's own.
local internal = ...

local ffi = require('ffi')

local function check_string(value, position, name)
    if type(value) ~= 'string' then
        error(("bad argument #%d to 'string.%s' (string expected, got %s)"):format(position, name,
            value == nil and 'nil' or type(value)), 3)
    end
end

function string.split(text, separator, max)
    check_string(text, 1, 'split')
    if separator ~= nil and type(separator) ~= 'string' then
        error(("bad argument #2 to 'string.split' (string expected, got %s)"):format(type(separator)), 2)
    end
    if separator == '' then
        error("bad argument #2 to 'string.split' (non-empty string expected, got empty string)", 2)
    end
    max = max or math.huge
    local parts, from = {}, 1
    if separator == nil then
        from = text:find('%S') or #text + 1
        while from <= #text and #parts < max do
            local first, last = text:find('%s+', from)
            if first == nil then
                break
            end
            parts[#parts + 1] = text:sub(from, first - 1)
            from = last + 1
        end
        if from <= #text then
            local rest = text:sub(from)
            parts[#parts + 1] = #parts >= max and rest:gsub('%s+$', '') or rest
        end
        return parts
    end
    while #parts < max do
        local first, last = text:find(separator, from, true)
        if first == nil then
            break
        end
        parts[#parts + 1] = text:sub(from, first - 1)
        from = last + 1
    end
    parts[#parts + 1] = text:sub(from)
    return parts
end

local function pad(name, before, after)
    return function(text, width, char)
        check_string(text, 1, name)
        if type(width) ~= 'number' or width < 0 then
            error(("bad argument #2 to 'string.%s' (positive integer expected, got %s)"):format(name,
                width == nil and 'nil' or type(width)), 2)
        end
        if char ~= nil and (type(char) ~= 'string' or #char ~= 1) then
            if type(char) ~= 'string' then
                error(("bad argument #3 to 'string.%s' (string expected, got %s)"):format(name, type(char)), 2)
            end
            error(("bad argument #3 to 'string.%s' (char expected, got string)"):format(name), 2)
        end
        char = char or ' '
        local missing = math.max(width - #text, 0)
        return char:rep(before(missing)) .. text .. char:rep(after(missing))
    end
end

local function none() return 0 end
local function all(missing) return missing end
string.ljust = pad('ljust', none, all)
string.rjust = pad('rjust', all, none)
string.center = pad('center', function(missing) return math.floor(missing / 2) end,
    function(missing) return math.ceil(missing / 2) end)

function string.startswith(text, prefix, from, to)
    check_string(text, 1, 'startswith')
    check_string(prefix, 2, 'startswith')
    return text:sub(from or 1, to or #text):sub(1, #prefix) == prefix
end

function string.endswith(text, suffix, from, to)
    check_string(text, 1, 'endswith')
    check_string(suffix, 2, 'endswith')
    local part = text:sub(from or 1, to or #text)
    return suffix == '' or part:sub(-#suffix) == suffix
end

function string.hex(text)
    check_string(text, 1, 'hex')
    return (text:gsub('.', function(char) return ('%02x'):format(char:byte()) end))
end

function string.fromhex(text)
    check_string(text, 1, 'fromhex')
    if #text % 2 ~= 0 then
        error("bad argument #1 to 'string.fromhex' (even amount of chars expected, got odd amount)", 2)
    end
    if text:find('%X') then
        error("bad argument #1 to 'string.fromhex' (hex string expected, got non hex chars)", 2)
    end
    return (text:gsub('..', function(pair) return string.char(tonumber(pair, 16)) end))
end

local function class_of(chars)
    return chars and '[' .. chars:gsub('[%^%]%-%%]', '%%%0') .. ']' or '%s'
end

local function stripper(name, left, right)
    return function(text, chars)
        check_string(text, 1, name)
        if chars ~= nil and type(chars) ~= 'string' then
            error(("bad argument #2 to 'string.%s' (string expected, got %s)"):format(name, type(chars)), 2)
        end
        if chars == '' then
            return text
        end
        local class = class_of(chars)
        if left then
            text = text:gsub('^' .. class .. '+', '')
        end
        if right then
            local last = #text
            while last > 0 and text:sub(last, last):find(class) do
                last = last - 1
            end
            text = text:sub(1, last)
        end
        return text
    end
end

string.strip = stripper('strip', true, true)
string.lstrip = stripper('lstrip', true, false)
string.rstrip = stripper('rstrip', false, true)

-- table.copy and table.deepcopy.
local function deepcopy(value, seen)
    if type(value) ~= 'table' then
        return value
    end
    if seen[value] then
        return seen[value]
    end
    local metatable = getmetatable(value)
    if type(metatable) == 'table' and metatable.__copy then
        return metatable.__copy(value)
    end
    local copy = {}
    seen[value] = copy
    for key, inner in next, value do
        copy[deepcopy(key, seen)] = deepcopy(inner, seen)
    end
    return setmetatable(copy, metatable)
end

function table.deepcopy(value)
    return deepcopy(value, {})
end

function table.copy(value, is_shallow)
    if not is_shallow then
        return deepcopy(value, {})
    end
    if type(value) ~= 'table' then
        return value
    end
    local copy = {}
    for key, inner in next, value do
        copy[key] = inner
    end
    return setmetatable(copy, getmetatable(value))
end

local function table_equals(a, b)
    if type(a) ~= 'table' or type(b) ~= 'table' then
        return a == b
    end
    for key, value in pairs(a) do
        if not table_equals(value, b[key]) then
            return false
        end
    end
    for key in pairs(b) do
        if a[key] == nil then
            return false
        end
    end
    return true
end
table.equals = table_equals

if not table.new then
    table.new = require('table.new')
end
package.loaded['table.clear'] = package.loaded['table.clear'] or require('table.clear')
table.clear = package.loaded['table.clear']

-- utf8: characters instead of bytes.
local utf8 = {}

local function width(byte)
    if byte < 0x80 then
        return 1
    elseif byte >= 0xc2 and byte < 0xe0 then
        return 2
    elseif byte >= 0xe0 and byte < 0xf0 then
        return 3
    elseif byte >= 0xf0 and byte < 0xf5 then
        return 4
    end
end

local function decode_at(text, at)
    local first = text:byte(at)
    local size = width(first)
    if size == nil or at + size - 1 > #text then
        return nil
    end
    if size == 1 then
        return first, 1
    end
    local code = bit.band(first, bit.rshift(0x7f, size))
    for i = 1, size - 1 do
        local byte = text:byte(at + i)
        if bit.band(byte, 0xc0) ~= 0x80 then
            return nil
        end
        code = code * 64 + bit.band(byte, 0x3f)
    end
    return code, size
end

function utf8.len(text, from, to)
    local at, stop, count = from or 1, to or #text, 0
    if at < 0 then at = #text + at + 1 end
    if stop < 0 then stop = #text + stop + 1 end
    while at <= stop do
        local code, size = decode_at(text, at)
        if code == nil then
            return nil, at
        end
        at, count = at + size, count + 1
    end
    return count
end

function utf8.char(...)
    local parts = {}
    for i = 1, select('#', ...) do
        local code = select(i, ...)
        if code < 0x80 then
            parts[i] = string.char(code)
        elseif code < 0x800 then
            parts[i] = string.char(0xc0 + bit.rshift(code, 6), 0x80 + bit.band(code, 0x3f))
        elseif code < 0x10000 then
            parts[i] = string.char(0xe0 + bit.rshift(code, 12), 0x80 + bit.band(bit.rshift(code, 6), 0x3f),
                0x80 + bit.band(code, 0x3f))
        else
            parts[i] = string.char(0xf0 + bit.rshift(code, 18), 0x80 + bit.band(bit.rshift(code, 12), 0x3f),
                0x80 + bit.band(bit.rshift(code, 6), 0x3f), 0x80 + bit.band(code, 0x3f))
        end
    end
    return table.concat(parts)
end

function utf8.sub(text, from, to)
    local starts, at = {}, 1
    while at <= #text do
        local code, size = decode_at(text, at)
        if code == nil then
            error('invalid UTF-8', 2)
        end
        starts[#starts + 1] = at
        at = at + size
    end
    local count = #starts
    to = to or -1
    if from < 0 then from = math.max(count + from + 1, 1) elseif from == 0 then from = 1 end
    if to < 0 then to = count + to + 1 end
    to = math.min(to, count)
    if from > to then
        return ''
    end
    return text:sub(starts[from], (starts[to + 1] or #text + 1) - 1)
end

function utf8.next(text, from)
    local at = from or 1
    if at > #text then
        return nil
    end
    local code, size = decode_at(text, at)
    if code == nil then
        return nil
    end
    return at + size, code
end

function utf8.upper(text) return internal.utf8_case(text, true) end
function utf8.lower(text) return internal.utf8_case(text, false) end
function utf8.cmp(a, b) return internal.utf8_compare(a, b, 'unicode') end
function utf8.casecmp(a, b) return internal.utf8_compare(a, b, 'unicode_ci') end

_G.utf8 = utf8
package.loaded.utf8 = utf8

package.loaded.strict = {
    on = function()
        setmetatable(_G, {
            __newindex = function(globals, name, value)
                local info = debug.getinfo(2, 'S')
                if info and info.what ~= 'main' and info.what ~= 'C' then
                    error(("assign to undeclared variable '%s'"):format(name), 2)
                end
                rawset(globals, name, value)
            end,
            __index = function(_, name)
                error(("variable '%s' is not declared"):format(name), 2)
            end,
        })
    end,
    off = function() setmetatable(_G, nil) end,
}
