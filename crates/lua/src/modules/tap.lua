-- tap: tests that print what they find as TAP, the Test Anything Protocol.
local ffi = require('ffi')
local yaml = require('yaml')

local methods = {}
local metatable = { __index = methods }

local function say(self, text, ...)
    if select('#', ...) > 0 then
        text = text:format(...)
    end
    io.write((' '):rep(4 * self.level), text, '\n')
end

-- Where the check was made: the functions above this module.
local function trace()
    local result, level = {}, 3
    while true do
        local info = debug.getinfo(level, 'nSl')
        if info == nil then
            return result
        end
        if info.source ~= '@builtin/tap.lua' then
            result[#result + 1] = {
                source = info.source, src = info.short_src, line = info.currentline, what = info.what, name = info.name,
                namewhat = info.namewhat, filename = info.source:match('^@(.*)') or 'eval',
            }
        end
        level = level + 1
    end
end

function methods.diag(self, text, ...)
    say(self, '# ' .. tostring(text), ...)
end

function methods.ok(self, condition, message, details)
    self.total = self.total + 1
    if condition then
        say(self, '%s', 'ok - ' .. tostring(message))
        return true
    end
    self.failed = self.failed + 1
    say(self, '%s', 'not ok - ' .. tostring(message))
    local shown = {}
    for name, value in pairs(type(details) == 'table' and details or {}) do
        shown[name] = value
    end
    shown.trace = trace()
    shown.filename, shown.line = arg and arg[0] or 'eval', shown.trace[1] and shown.trace[1].line or 0
    local fine, text = pcall(yaml.encode, shown)
    text = fine and text or '---\nerror: details cannot be shown\n...\n'
    for line in text:gmatch('([^\n]*)\n') do
        say(self, '%s', '  ' .. line)
    end
    return false
end

function methods.fail(self, message, details)
    return self:ok(false, message, details)
end

function methods.skip(self, message, details)
    self:ok(true, tostring(message) .. ' # skip', details)
end

local function with(details, fields)
    for name, value in pairs(type(details) == 'table' and details or {}) do
        fields[name] = value
    end
    return fields
end

function methods.is(self, got, expected, message, details)
    return self:ok(got == expected, message, with(details, { got = got, expected = expected }))
end

function methods.isnt(self, got, unexpected, message, details)
    return self:ok(got ~= unexpected, message, with(details, { got = got, unexpected = unexpected }))
end

-- Nothing if both are alike, else what is not.
local function difference(got, expected, is_strict, path)
    if type(got) == 'number' and type(expected) == 'number' and got ~= got and expected ~= expected then
        return nil
    end
    if type(got) == 'cdata' or type(expected) == 'cdata' then
        if got == expected and (not is_strict or type(got) == type(expected)) then
            return nil
        end
        return { path = path, got = got, expected = expected, strict = is_strict }
    end
    if type(got) ~= 'table' or type(expected) ~= 'table' then
        if got == expected then
            return nil
        end
        return { path = path, got = got, expected = expected, strict = is_strict }
    end
    for key, value in pairs(got) do
        local found = difference(value, expected[key], is_strict, path .. '/' .. tostring(key))
        if found then
            return found
        end
    end
    for key in pairs(expected) do
        if got[key] == nil and (is_strict or expected[key] ~= nil) then
            return { path = path .. '/' .. tostring(key), got = 'nil', expected = 'key ' .. tostring(key), strict = is_strict }
        end
    end
end

function methods.is_deeply(self, got, expected, message, details)
    local found = difference(got, expected, self.strict or false, '//')
    return self:ok(found == nil, message, with(details, found or {}))
end

function methods.like(self, got, pattern, message, details)
    return self:ok(tostring(got):match(tostring(pattern)) ~= nil, message, with(details, { got = got, expected = pattern }))
end

function methods.unlike(self, got, pattern, message, details)
    return self:ok(tostring(got):match(tostring(pattern)) == nil, message, with(details, { got = got, expected = pattern }))
end

for _, kind in ipairs({ 'nil', 'string', 'number', 'table', 'boolean', 'function' }) do
    methods['is' .. kind] = function(self, value, message, details)
        return self:ok(type(value) == kind, message, with(details, { got = type(value), expected = kind }))
    end
end

for name, kind in pairs({ isudata = 'userdata', iscdata = 'cdata' }) do
    methods[name] = function(self, value, ctype, message, details)
        local is_so = type(value) == kind
        if is_so and kind == 'cdata' then
            is_so = ffi.istype(ctype, value)
        elseif is_so then
            is_so = getmetatable(value) == ctype
        end
        return self:ok(is_so, message, with(details, { got = type(value), expected = tostring(ctype) }))
    end
end

function methods.plan(self, planned)
    self.planned = planned
    say(self, '1..%d', planned)
end

function methods.check(self)
    if self.is_checked then
        error('check called twice', 2)
    end
    self.is_checked = true
    if self.planned ~= self.total then
        if self.parent ~= nil then
            self.parent:ok(false, 'bad plan', { planned = self.planned, run = self.total })
        else
            say(self, '# bad plan: planned %d run %d', self.planned, self.total)
        end
        return false
    elseif self.failed > 0 then
        if self.parent ~= nil then
            self.parent:ok(false, 'failed subtests', { planned = self.planned, failed = self.failed })
        else
            say(self, '# failed subtest: %d', self.failed)
        end
        return false
    end
    if self.parent ~= nil then
        self.parent:ok(true, self.name)
    end
    return true
end

local function new_test(parent, name, body, ...)
    local test = setmetatable({
        parent = parent, level = parent and parent.level + 1 or 0, name = name, total = 0, failed = 0, planned = 0,
        strict = parent and parent.strict or false,
    }, metatable)
    if parent ~= nil then
        say(test, '# %s', name)
    else
        say(test, 'TAP version 13')
    end
    if body == nil then
        return test
    end
    body(test, ...)
    if parent ~= nil then
        say(test, '# %s: end', name)
    end
    return test:check()
end

methods.test = new_test

package.loaded.tap = { test = function(...) return new_test(nil, ...) end }
