-- Error objects: cdata `struct error` with code, type, message, prev, unpack, raise, match.
local internal = ...

local ffi = require('ffi')

-- The parts of living error objects by slot.
local parts_of = {}
local next_slot = 0
local last_error

local function trace_at(level)
    for at = level, level + 12 do
        local info = debug.getinfo(at, 'Sl')
        if info == nil then
            break
        end
        if info.what ~= 'C' and info.source:sub(1, 8) ~= '@builtin' then
            return { { file = info.short_src, line = info.currentline } }
        end
    end
    return { { file = 'builtin', line = 0 } }
end

local function forget(object)
    parts_of[tonumber(object.slot__)] = nil
end

local function make(code, kind, message, fields, previous, trace)
    next_slot = next_slot + 1
    local object = ffi.gc(ffi.new('struct error', next_slot), forget)
    parts_of[next_slot] = {
        code = code, type = kind, message = message, fields = fields, prev = previous, trace = trace or trace_at(3),
    }
    return object
end

local function parts(object)
    return parts_of[tonumber(object.slot__)] or {}
end

function internal.values.make_error(code, kind, message, fields, previous)
    return make(code, kind, message, fields, previous)
end

-- Errors that are not the client's have no code.
local without_code = {
    LuajitError = true, SystemError = true, FiberIsCancelled = true, TimedOut = true, IllegalParams = true, CryptoError = true,
}

function internal.values.error_parts(object)
    local own = parts(object)
    local code = own.code
    if code == nil or code == 0 and without_code[own.type] then
        code = 32
    end
    local place = own.trace and own.trace[1] or {}
    return code, own.base_type or own.type, own.message, own.prev, own.base_type and own.type, own.fields, place.file, place.line
end

local ordered = { __serialize = 'ordered' }

-- An error and its causes as msgpack has them: type, file, line, text, errno, code and named details by their numbers.
function internal.values.error_stack(object)
    local stack = {}
    while object ~= nil do
        local own = parts(object)
        local place = own.trace and own.trace[1] or {}
        local fields = {}
        for name, value in pairs(own.fields or {}) do
            fields[name] = value
        end
        if own.base_type ~= nil then
            fields.custom_type = own.type
        end
        stack[#stack + 1] = setmetatable({
            [0] = own.base_type or own.type, place.file or '', place.line or 0, own.message, own.errno or 0, own.code or 0,
            next(fields) ~= nil and setmetatable(fields, ordered) or nil,
        }, ordered)
        object = own.prev
    end
    return setmetatable({ [0] = stack }, ordered)
end

local function is_error(value)
    return ffi.istype('struct error', value)
end

-- An error object of such a stack; nil if it is none.
function internal.values.error_of_stack(value)
    local stack = type(value) == 'table' and value[0]
    if type(stack) ~= 'table' or #stack == 0 then
        return nil
    end
    local object
    for at = #stack, 1, -1 do
        local entry = stack[at]
        local kind, text = type(entry) == 'table' and entry[0], type(entry) == 'table' and entry[3]
        if type(kind) ~= 'string' or type(text) ~= 'string' then
            return nil
        end
        local fields = type(entry[6]) == 'table' and entry[6] or nil
        local place = { file = type(entry[1]) == 'string' and entry[1] or '', line = tonumber(entry[2]) or 0 }
        local previous = object
        object = make(tonumber(entry[5]) or 0, kind, text, fields, previous, { place })
        local own, errno = parts(object), tonumber(entry[4])
        own.errno = errno ~= 0 and errno or nil
        if kind == 'CustomError' then
            own.base_type, own.type = kind, fields and type(fields.custom_type) == 'string' and fields.custom_type or kind
        end
    end
    return object
end

local methods = {}

local function check(object, usage)
    if not is_error(object) then
        error('Usage: ' .. usage, 3)
    end
end

function methods.unpack(object)
    check(object, 'error:unpack()')
    local own = parts(object)
    local result = {
        type = own.type, message = own.message, trace = own.trace, code = own.code, base_type = own.base_type or own.type,
        prev = own.prev,
    }
    if internal.tweaks.error_unpacks_less then
        result.base_type, result.code = nil, own.code ~= 0 and own.code or nil
    elseif own.base_type ~= nil then
        result.custom_type = own.type
    end
    if own.errno then
        result.errno = own.errno
    end
    return result
end

function methods.raise(object)
    check(object, 'error:raise()')
    error(object)
end

function methods.match(object, ...)
    check(object, 'error:match()')
    return string.match(parts(object).message, ...)
end

function methods.is(object, class)
    return parts(object).type == class
end

function methods.set_prev(...)
    local object, previous = ...
    if not is_error(object) or select('#', ...) < 2 or previous ~= nil and not is_error(previous) then
        error('Usage: error1:set_prev(error2)', 2)
    end
    local at = previous
    while at ~= nil do
        if at == object then
            error('Cycles are not allowed', 2)
        end
        at = parts(at).prev
    end
    parts(object).prev = previous
end

ffi.metatype('struct error', {
    __index = function(object, key)
        if key == 'code' and without_code[parts(object).type] then
            return nil
        end
        if key == 'code' or key == 'type' or key == 'message' or key == 'trace' or key == 'prev' or key == 'errno' then
            return parts(object)[key]
        end
        if key == 'base_type' then
            return parts(object).base_type or parts(object).type
        end
        if methods[key] then
            return methods[key]
        end
        local fields = parts(object).fields
        return fields and fields[key]
    end,
    __tostring = function(object)
        return parts(object).message
    end,
    __eq = function(a, b)
        return is_error(a) and is_error(b) and a.slot__ == b.slot__
    end,
    __concat = function(a, b)
        return tostring(a) .. tostring(b)
    end,
})

local codes = internal.error_codes()
local string_format = string.format

local function is_unknown(code)
    return code == 0 or internal.error_template(code) == ''
end

-- The text of a code, filled in: holes for text take anything, those for numbers numbers.
local function filled(code, ...)
    if is_unknown(code) then
        return 'Unknown error'
    end
    local template = internal.error_template(code)
    local count, at, is_binary = select('#', ...), 0, false
    for hole in template:gmatch('%%[%a]+') do
        at = at + 1
        if count < at then
            error(("bad argument #%d to '?' (no value)"):format(at + 1), 0)
        end
        local value = select(at, ...)
        if hole ~= '%s' and tonumber(value) == nil then
            error(("bad argument #%d to '?' (number expected, got %s)"):format(at + 1, type(value)), 0)
        end
        if type(value) == 'string' and utf8.len(value) == nil then
            is_binary = true
        end
    end
    if is_binary then
        -- The bytes of the arguments as they are.
        local values, next_one = { ... }, 0
        return (template:gsub('%%%a+', function()
            next_one = next_one + 1
            return tostring(values[next_one])
        end))
    end
    return internal.error_text(code, ...)
end

-- Makes an error object from what box.error and box.error.new take; nil if they do not take it.
local function build(...)
    local code = ...
    local count = select('#', ...)
    if type(code) == 'table' then
        if count > 1 then
            return nil
        end
        local reason = code.reason == nil and '' or code.reason
        reason = (type(reason) == 'string' or type(reason) == 'number') and tostring(reason) or ''
        local number = tonumber(code.code) or 0
        if type(code.type) == 'string' and code.type ~= 'ClientError' then
            local object = make(number, code.type, reason, nil, nil, trace_at(4))
            parts(object).base_type = 'CustomError'
            return object
        end
        return make(number, 'ClientError', reason, nil, nil, trace_at(4))
    end
    if type(code) == 'string' and tonumber(code) == nil then
        if count < 2 then
            return nil
        end
        local text = select(2, ...)
        if type(text) ~= 'string' and type(text) ~= 'number' then
            return nil
        end
        text = string_format(tostring(text), select(3, ...)):match('^[^%z]*')
        local object = make(0, code, text, nil, nil, trace_at(4))
        parts(object).base_type = 'CustomError'
        return object
    end
    if type(code) ~= 'number' then
        return nil
    end
    if count < 2 and not is_unknown(math.floor(code)) and internal.error_template(math.floor(code)):find('%%') then
        return nil
    end
    -- A number for C has 32 bits.
    code = math.abs(code) < 2^63 and math.floor(code) % 2^32 or 0
    code = code >= 2^31 and code - 2^32 or code
    local message = filled(code, select(2, ...))
    return make(code, 'ClientError', message:match('^[^%z]*'), nil, nil, trace_at(4))
end

local function raise(_, ...)
    local code = ...
    local count = select('#', ...)
    if count == 0 then
        if last_error == nil then
            return
        end
        error(last_error)
    end
    if is_error(code) and count == 1 then
        last_error = code
        error(code)
    end
    local object = not is_error(code) and build(...) or nil
    if object == nil then
        error('box.error(): bad arguments', 2)
    end
    last_error = object
    error(object)
end

local api = {
    new = function(...)
        local object = build(...)
        if object == nil then
            error('Usage: box.error.new(code, args) or box.error.new(type, args)', 2)
        end
        return object
    end,
    last = function(...)
        if select('#', ...) > 0 then
            error('box.error.last(): bad arguments', 2)
        end
        return last_error
    end,
    clear = function(...)
        if select('#', ...) > 0 then
            error('box.error.clear(): bad arguments', 2)
        end
        last_error = nil
    end,
    set = function(...)
        local object = ...
        if select('#', ...) == 0 then
            error('Usage: box.error.set(error)', 2)
        end
        if not is_error(object) then
            error(('Invalid argument #1 (error expected, got %s)'):format(type(object)), 2)
        end
        last_error = object
    end,
    is = is_error,
}

box.error = setmetatable({}, {
    __index = function(_, key)
        return api[key] or codes[key]
    end,
    __call = raise,
    __serialize = function() return codes end,
    __pairs = function() return pairs(codes) end,
})

-- pcall and xpcall note the error for box.error.last().
local pcall_plain = pcall
local function note(ok, ...)
    if not ok and is_error((...)) then
        last_error = ...
    end
    return ok, ...
end

function pcall(...)
    return note(pcall_plain(...))
end

-- Changes a list of triggers as all setters do: `new` comes first, `old` goes, `new` takes the place of `old` where `keeps_place`.
-- Without either gives a copy of the list.
function internal.edit_triggers(list, new, old, keeps_place)
    if new == nil and old == nil then
        return { unpack(list) }
    end
    if new ~= nil and type(new) ~= 'function' or old ~= nil and type(old) ~= 'function' then
        error('trigger reset: incorrect arguments', 3)
    end
    local place = 1
    if old ~= nil then
        local found
        for i, f in ipairs(list) do
            if f == old then
                found = i
            end
        end
        if found == nil then
            error('trigger reset: Trigger is not found', 3)
        end
        table.remove(list, found)
        place = keeps_place and found or 1
    end
    if new ~= nil then
        table.insert(list, place, new)
    end
    return new
end

-- Runs triggers whose errors are nobody's: they are logged under a name.
function internal.run_triggers_logged(list, name, ...)
    for _, f in ipairs({ unpack(list) }) do
        local ok, reason = pcall(f, ...)
        if not ok then
            internal.log('error', name .. ': ' .. tostring(reason))
        end
    end
end

-- Raises a client error as C code of a request does; the caller is not named in the text.
function internal.fail(name, ...)
    -- A text for C ends at its first zero.
    local text = internal.error_text(codes[name], ...):match('^[^%z]*')
    error(make(codes[name], 'ClientError', text, nil, nil, trace_at(4)))
end

function internal.illegal(text, ...)
    if select('#', ...) > 0 then
        text = string.format(text, ...)
    end
    error(make(codes.ILLEGAL_PARAMS, 'ClientError', internal.error_text(codes.ILLEGAL_PARAMS, text), nil, nil, trace_at(4)))
end
