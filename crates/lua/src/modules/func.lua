-- box.schema.func, box.func and calls of procedures by name.
local internal = ...

local ffi = require('ffi')

local check_options, fail = internal.check_options, internal.fail
local atomically, array, map, as_admin = internal.atomically, internal.array, internal.map, internal.as_admin

-- Functions ---------------------------------------------------------------------------------------------------------
local func = {}
box.schema.func = func

function func.create(name, options)
    options = check_options(options, {
        setuid = 'boolean', if_not_exists = 'boolean', language = 'string', body = 'string', is_deterministic = 'boolean',
        is_sandboxed = 'boolean', comment = 'string', param_list = 'table', returns = 'string', exports = 'table', opts = 'table',
    })
    if box.space._vfunc.index.name:get({ name }) ~= nil then
        if options.if_not_exists then
            return
        end
        fail('FUNCTION_EXISTS', tostring(name))
    end
    local own = options.opts
    if own == nil then
        own = map({})
    elseif next(own) ~= nil and getmetatable(own) == nil then
        own = map(table.copy(own))
    end
    local language = (options.language or 'LUA'):upper()
    local now = os.date('%Y-%m-%d %H:%M:%S', internal.clock_wall())
    atomically(function()
        -- Numbers from 2^30 on are those of sessions.
        local top = box.space._func.index[0]:select({ 2 ^ 30 }, { iterator = 'LT', limit = 1 })[1]
        local id = (top and top[1] or 0) + 1
        box.space._func:insert({
            id, internal.effective_user(), name, options.setuid and 1 or 0, language, options.body or '', 'function',
            options.param_list or array({}), options.returns or 'any', 'none', 'none',
            options.is_deterministic or false, options.is_sandboxed or false, true, options.exports or array({ 'LUA' }),
            own, options.comment or '', now, now,
        })
    end)
end

function func.exists(name)
    if type(name) == 'number' then
        return box.space._vfunc:get(name) ~= nil
    end
    return type(name) == 'string' and box.space._vfunc.index.name:get(name) ~= nil
end

function func.drop(name, options)
    options = check_options(options, { if_exists = 'boolean' })
    local row = internal.named_row(box.space._vfunc, name)
    if row == nil then
        if options.if_exists then
            return
        end
        fail('NO_SUCH_FUNCTION', tostring(name))
    end
    atomically(function()
        as_admin(internal.drop_grants_on, 'function', row[1])
        box.space._func:delete(row[1])
    end)
end

function func.call(name, ...)
    if type(name) ~= 'string' and type(name) ~= 'number' then
        error('Use func:call(...)', 2)
    end
    local known = box.func[tostring(name)] or fail('NO_SUCH_FUNCTION', tostring(name))
    return known:call({ ... })
end
function func.reload(...)
    local name = ...
    local kind = select('#', ...) == 0 and 'no value' or type(name)
    if kind ~= 'string' and kind ~= 'number' then
        error(("bad argument #1 to '?' (string expected, got %s)"):format(kind), 2)
    end
    internal.reload_module(tostring(name))
end

-- The file of a module in C; nil if there is none.
function internal.values.search_library(name)
    return (package.searchpath(name, package.cpath))
end

-- Calling -----------------------------------------------------------------------------------------------------------
-- Names of procedures taken apart: {parts of the path, method}. Emptied when clients have asked for very many.
local PATHS_MAX = 10000
local paths, path_count = {}, 0

local function path_of(name)
    local path = paths[name]
    if path == nil then
        local head, method = name:match('^([^:]*):(.*)$')
        path = { parts = {}, method = method }
        for part in (head or name):gmatch('[^%.]+') do
            table.insert(path.parts, part)
        end
        if path_count >= PATHS_MAX then
            paths, path_count = {}, 0
        end
        paths[name] = path
        path_count = path_count + 1
    end
    return path
end

local function resolve(name)
    local path = path_of(name)
    local parts, method = path.parts, path.method
    local value, owner = _G, nil
    for i = 1, #parts do
        local kind = type(value)
        if kind ~= 'table' and kind ~= 'cdata' then
            return nil
        end
        value = value[parts[i]]
        if value == nil then
            return nil
        end
    end
    if method then
        owner = value
        value = value[method]
    end
    return value, owner
end

local function is_callable(value)
    if type(value) == 'function' then
        return true
    end
    local metatable = type(value) == 'table' and getmetatable(value)
    return metatable and metatable.__call ~= nil
end

function internal.values.call(name, ...)
    local value, owner = resolve(name)
    if not is_callable(value) then
        fail('NO_SUCH_PROC', name)
    end
    if owner ~= nil then
        return value(owner, ...)
    end
    return value(...)
end

local sandbox_names = {
    'assert', 'error', 'ipairs', 'math', 'next', 'pairs', 'pcall', 'print', 'select', 'string', 'table', 'tonumber',
    'tostring', 'type', 'unpack', 'xpcall', 'utf8',
}
local compiled = {}

-- The function that a body stands for. Its text is an expression that runs once: in the sandbox already, or what it keeps in locals would be
-- everybody's.
function internal.values.compile_function(body, is_sandboxed)
    local source = 'return ' .. body
    local chunk, reason = loadstring(source, source)
    if chunk == nil then
        error(reason, 0)
    end
    if is_sandboxed then
        local environment = {}
        for _, name in ipairs(sandbox_names) do
            local value = _G[name]
            environment[name] = type(value) == 'table' and table.deepcopy(value) or value
        end
        setfenv(chunk, environment)
    end
    return chunk()
end

function internal.values.call_persistent(id, body, is_sandboxed, ...)
    local known = compiled[id]
    if known == nil or known.body ~= body then
        known = { body = body, f = internal.values.compile_function(body, is_sandboxed) }
        compiled[id] = known
    end
    return known.f(...)
end

local function_methods = {}
internal.function_metatable = { __index = function_methods }

function function_methods.call(self, arguments)
    if type(self) ~= 'table' or self.id == nil then
        error('Use func:call(...)', 2)
    end
    if arguments ~= nil and type(arguments) ~= 'table' then
        error('Use func:call(table)', 2)
    end
    internal.check_function_access(self.id)
    local before, birth
    if self.setuid then
        before, birth = internal.set_user(internal.function_definition(self.id).uid, false)
    end
    local function finish(ok, ...)
        if before ~= nil then
            internal.restore_user(before, birth)
        end
        if not ok then
            local reason = ...
            if not ffi.istype('struct error', reason) then
                reason = internal.values.make_error(0, 'LuajitError', tostring(reason))
            end
            error(reason, 0)
        end
        return ...
    end
    if self.language == 'C' then
        return finish(pcall(internal.call_stored, self.id, arguments or {}))
    end
    if self.body ~= nil and self.body ~= '' then
        return finish(pcall(internal.values.call_persistent, self.id, self.body, self.is_sandboxed, unpack(arguments or {})))
    end
    return finish(pcall(internal.values.call, self.name, unpack(arguments or {})))
end

function func.bless(object)
    setmetatable(object, internal.function_metatable)
end

function function_methods.drop(self)
    box.schema.func.drop(self.name)
end
