-- box.schema.user, .role and .func, box.session, box.func.
local internal = ...

local check_options, check_value, fail, illegal = internal.check_options, internal.check_value, internal.fail, internal.illegal
local atomically, array, map = internal.atomically, internal.array, internal.map

function internal.effective_user()
    return (select(3, internal.session()))
end

-- Runs `work` with a user's rights.
function internal.as_user(id, work, ...)
    local user, birth = internal.set_user(id, false)
    local function finish(ok, ...)
        internal.restore_user(user, birth)
        if not ok then
            error((...), 0)
        end
        return ...
    end
    return finish(pcall(work, ...))
end

-- Runs `work` with the administrator's rights: bookkeeping that follows from what the caller may do.
function internal.as_admin(work, ...)
    return internal.as_user(1, work, ...)
end
local as_admin = internal.as_admin

local ffi = require('ffi')

-- Privileges --------------------------------------------------------------------------------------------------------
local bits = {
    read = 1, write = 2, execute = 4, session = 8, usage = 16, create = 32, drop = 64, alter = 128, reference = 256,
    trigger = 512, insert = 1024, update = 2048, delete = 4096,
}
local bit_names = {
    'read', 'write', 'execute', 'session', 'usage', 'create', 'drop', 'alter', 'reference', 'trigger', 'insert',
    'update', 'delete',
}

local allowed = {
    -- Of those that a grant on a space may not have: session, and the two that nobody uses.
    universe = bit.tobit(0xffffffff), space = bit.bnot(8 + 8192 + 16384),
    ['function'] = 4 + 16 + 32 + 64, sequence = 1 + 2 + 16 + 32 + 64 + 128, role = 4 + 16 + 32 + 64, user = 32 + 64 + 128,
}

-- A text names every privilege whose word is somewhere in it.
local function check_privileges(privilege, object_type)
    local wanted = privilege
    if type(privilege) == 'string' then
        wanted = 0
        local text = privilege:lower()
        for word, one in pairs(bits) do
            if text:find(word, 1, true) then
                wanted = bit.bor(wanted, one)
            end
        end
    end
    local possible = allowed[object_type]
    if possible == nil then
        fail('UNKNOWN_SCHEMA_OBJECT', tostring(object_type))
    end
    if type(wanted) ~= 'number' or wanted == 0 or bit.band(wanted, possible) ~= wanted then
        fail('UNSUPPORTED_PRIV', object_type, tostring(privilege))
    end
    return wanted
end

-- Where objects of a kind are seen, and the error if one is not there.
local kinds = {
    ['function'] = { view = '_vfunc', absent = 'NO_SUCH_FUNCTION' }, sequence = { view = '_vsequence', absent = 'NO_SUCH_SEQUENCE' },
    role = { view = '_vuser', absent = 'NO_SUCH_ROLE' }, user = { view = '_vuser', absent = 'NO_SUCH_USER' },
}

-- The number of an object; '' stands for all of its kind.
local function object_id(object_type, name)
    if name ~= nil and type(name) ~= 'string' and type(name) ~= 'number' then
        illegal('wrong object name type')
    end
    if object_type == 'universe' then
        return 0
    end
    if name == '' then
        return ''
    end
    if object_type == 'space' then
        local space = box.space[name]
        if space == nil then
            fail('NO_SUCH_SPACE', tostring(name))
        end
        return space.id
    end
    local kind = kinds[object_type]
    local row = internal.named_row(box.space[kind.view], name)
    local is_right = row ~= nil and (kind.view ~= '_vuser' or row[4] == object_type)
    return is_right and row[1] or fail(kind.absent, tostring(name))
end

local function object_name(object_type, id)
    if id == '' or object_type == 'universe' then
        return ''
    end
    local space = ({ space = '_space', ['function'] = '_func', sequence = '_sequence', role = '_user', user = '_user' })[object_type]
    local row = space and as_admin(function() return box.space[space]:get(id) end)
    return row and row[3] or '#' .. tostring(id)
end

-- The number of a user or a role; nil if there is none of that kind.
local function holder_id(name, kind)
    local row = name ~= nil and internal.named_row(box.space._vuser, name) or nil
    return row and row[4] == kind and row[1] or nil
end

local function grantee_id(name, kind)
    return holder_id(name, kind) or fail(kinds[kind].absent, tostring(name))
end

-- The number of the user or role to be dropped; nil if it is not there and need not be.
local function id_to_drop(name, kind, options)
    options = check_options(options, { if_exists = 'boolean' })
    local id = holder_id(name, kind)
    if id == nil and not options.if_exists then
        fail(kinds[kind].absent, tostring(name))
    end
    return id
end

-- What the arguments of grant and revoke mean: (role) or (privileges, type[, name[, options]]).
local function resolve_grant(privilege, object_type, object, options)
    if object == nil then
        if object_type == nil then
            privilege, object_type, object = 'execute', 'role', privilege
        else
            object = ''
        end
    end
    return {
        privilege = privilege, object_type = object_type, object = object, options = options or {},
        wanted = check_privileges(privilege, object_type), id = object_id(object_type, object),
        is_role = object_type == 'role' and object ~= '' and privilege == 'execute',
    }
end

local function grant(grantee, name, ...)
    local asked = resolve_grant(...)
    local options, object_type, object = asked.options, asked.object_type, asked.object
    local grantor = internal.effective_user()
    if options.grantor ~= nil then
        grantor = internal.user_id(options.grantor) or fail('NO_SUCH_USER', tostring(options.grantor))
    end
    local row = as_admin(function() return box.space._priv:get({ grantee, object_type, asked.id }) end)
    local before = row and row[5] or 0
    local after = bit.bor(before, asked.wanted)
    if after ~= before then
        box.space._priv:replace({ grantor, grantee, object_type, asked.id, after })
    elseif not options.if_not_exists then
        if asked.is_role then
            fail('ROLE_GRANTED', tostring(name), tostring(object))
        end
        local text = object_type == 'universe' and tostring(object) or (" '%s'"):format(object)
        fail('PRIV_GRANTED', tostring(name), tostring(asked.privilege), object_type, text)
    end
end

local function revoke(grantee, name, ...)
    local asked = resolve_grant(...)
    local options, object_type, object = asked.options, asked.object_type, asked.object
    local row = as_admin(function() return box.space._priv:get({ grantee, object_type, asked.id }) end)
    local before = row and row[5] or 0
    local after = bit.band(before, bit.bnot(asked.wanted))
    if after == before then
        if options.if_exists then
            return
        end
        if asked.is_role and row == nil then
            fail('ROLE_NOT_GRANTED', tostring(name), tostring(object))
        end
        fail('PRIV_NOT_GRANTED', tostring(name), tostring(asked.privilege), object_type, tostring(object))
    end
    if after ~= 0 then
        box.space._priv:replace({ row[1], grantee, object_type, asked.id, after })
    else
        box.space._priv:delete({ grantee, object_type, asked.id })
    end
end

local function privileges_text(value)
    local names = {}
    for i, name in ipairs(bit_names) do
        if bit.band(value, bit.lshift(1, i - 1)) ~= 0 then
            names[#names + 1] = name
        end
    end
    return table.concat(names, ',')
end

local function info(id)
    local result = {}
    for _, row in ipairs(as_admin(function() return box.space._priv:select({ id }) end)) do
        result[#result + 1] = { privileges_text(row[5]), row[3], object_name(row[3], row[4]) }
    end
    return result
end

local function drop_grants(rows)
    for _, row in ipairs(rows) do
        box.space._priv:delete({ row[2], row[3], row[4] })
    end
end

-- Takes away what anybody was granted on an object. The caller is the administrator.
function internal.drop_grants_on(object_type, id)
    drop_grants(box.space._priv.index.object:select({ object_type, id }))
end

-- Takes away what a user or role was granted.
local function drop_grants_of(id)
    as_admin(function() drop_grants(box.space._priv:select({ id })) end)
end

-- Users -------------------------------------------------------------------------------------------------------------
local user = {}
box.schema.user = user

local function auth_of(password)
    return map({ ['chap-sha1'] = internal.password_hash(password) })
end

function user.password(text)
    if type(text) ~= 'string' then
        error('Usage: box.schema.user.password(string)', 2)
    end
    return internal.password_hash(text)
end

local function next_user_id()
    local top = box.space._user.index[0]:select({}, { iterator = 'REQ' })
    local id = 32
    for _, row in ipairs(top) do
        id = math.max(id, row[1] + 1)
    end
    return id
end

function user.create(name, options)
    local known = internal.user_id(name)
    options = check_options(options, { password = 'string', if_not_exists = 'boolean' })
    if known ~= nil then
        if options.if_not_exists then
            return
        end
        fail('USER_EXISTS', tostring(name))
    end
    local auth = options.password and auth_of(options.password) or map({})
    local maker = internal.effective_user()
    atomically(function()
        local id = next_user_id()
        box.space._user:insert({ id, internal.effective_user(), name, 'user', auth })
        -- Everybody has the role `public` and may open a session and work.
        as_admin(function()
            box.space._priv:replace({ maker, id, 'role', 2, 4 })
            box.space._priv:replace({ 1, id, 'universe', 0, 24 })
            box.space._priv:replace({ maker, id, 'user', id, 128 })
        end)
    end)
end

function user.exists(name)
    return holder_id(name, 'user') ~= nil
end

function user.passwd(name, password)
    if password == nil then
        if type(name) ~= 'string' then
            error('Usage: box.schema.user.passwd([user,] password)', 2)
        end
        -- One's own password: that of who has logged in, not of who `su` or a setuid function makes of it.
        local id = box.session.uid()
        if id == box.schema.GUEST_ID then
            fail('GUEST_USER_PASSWORD')
        end
        as_admin(function()
            box.space._user:update(id, { { '=', 5, auth_of(name) } })
        end)
        return
    end
    local id = grantee_id(name, 'user')
    if id == box.schema.GUEST_ID then
        fail('GUEST_USER_PASSWORD')
    end
    if type(password) ~= 'string' then
        error('Usage: box.schema.user.passwd([user,] password)', 2)
    end
    box.space._user:update(id, { { '=', 5, auth_of(password) } })
end

function user.drop(name, options)
    local id = id_to_drop(name, 'user', options)
    if id == nil then
        return
    end
    if id >= box.schema.SYSTEM_USER_ID_MIN and id <= box.schema.SYSTEM_USER_ID_MAX then
        fail('DROP_USER', tostring(name), 'the user or the role is a system')
    end
    if id == box.session.uid() or id == internal.effective_user() then
        fail('DROP_USER', tostring(name), 'the user is active in the current session')
    end
    atomically(function()
        as_admin(function()
            for _, space in ipairs(box.space._space.index.owner:select({ id })) do
                box.space[space[1]]:drop()
            end
            for _, func in ipairs(box.space._func.index.owner:select({ id })) do
                box.schema.func.drop(func[3])
            end
            for _, sequence in ipairs(box.space._sequence.index.owner:select({ id })) do
                box.schema.sequence.drop(sequence[1])
            end
        end)
        drop_grants_of(id)
        box.space._user:delete(id)
    end)
end

function user.grant(name, ...)
    grant(grantee_id(name, 'user'), name, ...)
end

function user.revoke(name, ...)
    revoke(grantee_id(name, 'user'), name, ...)
end

function user.enable(name)
    user.grant(name, 'session,usage', 'universe', nil, { if_not_exists = true })
end

function user.disable(name)
    user.revoke(name, 'session,usage', 'universe', nil, { if_exists = true })
end

function user.info(name)
    local id
    if name == nil then
        id = internal.effective_user()
    else
        id = grantee_id(name, 'user')
    end
    -- This function is setuid and everybody may call it: what it tells must be what the one who asks may see.
    local row = internal.as_user(box.session.uid(), function() return box.space._vuser:get(id) end)
    if row == nil then
        fail('NO_SUCH_USER', tostring(name))
    end
    return info(id)
end

-- Roles -------------------------------------------------------------------------------------------------------------
local role = {}
box.schema.role = role

function role.create(name, options)
    options = check_options(options, { if_not_exists = 'boolean' })
    if internal.user_id(name) ~= nil then
        if options.if_not_exists then
            return
        end
        fail('ROLE_EXISTS', tostring(name))
    end
    box.space._user:insert({ next_user_id(), internal.effective_user(), name, 'role', map({}) })
end

function role.exists(name)
    return holder_id(name, 'role') ~= nil
end

function role.drop(name, options)
    local id = id_to_drop(name, 'role', options)
    if id == nil then
        return
    end
    if id == box.schema.PUBLIC_ROLE_ID or id == box.schema.SUPER_ROLE_ID then
        fail('DROP_USER', tostring(name), 'the user or the role is a system')
    end
    atomically(function()
        as_admin(internal.drop_grants_on, 'role', id)
        drop_grants_of(id)
        box.space._user:delete(id)
    end)
end

-- Opening sessions and working is for users, not for roles.
local function check_role_privilege(privilege)
    local text = string.lower(privilege)
    if text:find('session', 1, true) or text:find('usage', 1, true) then
        fail('GRANT', 'system privilege can not be granted to role')
    end
end

function role.grant(name, ...)
    local id = grantee_id(name, 'role')
    check_role_privilege(...)
    grant(id, name, ...)
end

function role.revoke(name, ...)
    local id = grantee_id(name, 'role')
    check_role_privilege(...)
    revoke(id, name, ...)
end

function role.info(name)
    return info((grantee_id(name, 'role')))
end

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
        local top = box.space._func.index[0]:max()
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
    -- There are no modules in C.
    fail('NO_SUCH_MODULE', ("Module '%s' does not exist"):format(name))
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

-- Session -----------------------------------------------------------------------------------------------------------
local storages = {}
local session = {}

function session.id() return (internal.session()) end
function session.uid() return (select(2, internal.session())) end
function session.euid() return (select(3, internal.session())) end
function session.type() return (select(4, internal.session())) end
function session.sync() return (select(6, internal.session())) end
function session.user() return internal.user_name((select(2, internal.session()))) end
function session.effective_user() return internal.user_name((select(3, internal.session()))) end
-- The number of a session that a call is given; nothing of it if the call is given none.
local function session_of(name, refusal, ...)
    local count = select('#', ...)
    if count == 0 then
        return nil
    end
    if count > 1 then
        error(('session.%s(sid): bad arguments'):format(name), 3)
    end
    local id = ...
    local is_number = type(id) == 'number' or type(id) == 'string' and tonumber(id) ~= nil
    if not is_number and not (name ~= 'peer' and (ffi.istype('int64_t', id) or ffi.istype('uint64_t', id))) then
        error(refusal:format(type(id)), 3)
    end
    id = tonumber(id)
    if name ~= 'exists' and not internal.session_exists(id) then
        error(('session.%s(): session does not exist'):format(name), 3)
    end
    return id
end
function session.fd(...)
    session_of('fd', 'expected int64_t as -1 argument', ...)
    return -1
end
function session.exists(...)
    local id = session_of('exists', 'expected int64_t as -1 argument', ...)
    return id == nil or internal.session_exists(id)
end
function session.peer(...)
    local id = session_of('peer', "bad argument #1 to '?' (number expected, got %s)", ...)
    if id == nil then
        return (select(5, internal.session()))
    end
    return internal.session_peer(id)
end

function session.su(...)
    if select('#', ...) == 0 then
        error('session.su(): bad arguments', 2)
    end
    local name, work = ...
    local id
    if type(name) ~= 'string' then
        -- What is no number counts as 0, the guest.
        id = math.floor(tonumber(name) or 0)
    else
        local row = as_admin(function() return box.space._user.index.name:get(name) end)
        if row == nil or row[4] ~= 'user' then
            fail('NO_SUCH_USER', tostring(name))
        end
        id = row[1]
    end
    internal.check_su(id)
    if work ~= nil and type(work) ~= 'function' then
        local kind = type(work)
        error(("bad argument #2 to '?' (function expected, got %s)"):format(kind), 2)
    end
    if work == nil then
        internal.set_user(id, true)
        return
    end
    local before, birth = internal.set_user(id, false)
    local function finish(ok, ...)
        internal.restore_user(before, birth)
        if not ok then
            error((...), 0)
        end
        return ...
    end
    return finish(pcall(work, select(3, ...)))
end

function session.push()
    return nil, internal.values.make_error(5, 'ClientError', ("Session '%s' does not support push()"):format(session.type()))
end

setmetatable(session, {
    __index = function(_, key)
        if key == 'storage' then
            local id = internal.session()
            if storages[id] == nil then
                storages[id] = {}
                internal.storage_was_made()
            end
            return storages[id]
        end
    end,
})

-- The settings of the session by name; what is assigned is set.
session.settings = setmetatable({}, {
    __index = function(_, name)
        local row = type(name) == 'string' and box.space._session_settings:get(name) or nil
        if row == nil then
            fail('PROC_LUA', ("Session setting %s doesn't exist"):format(tostring(name)))
        end
        return row[2]
    end,
    __newindex = function(_, name, value)
        if type(name) ~= 'string' or box.space._session_settings:update(name, { { '=', 2, value } }) == nil then
            fail('NO_SUCH_SESSION_SETTING', tostring(name))
        end
    end,
    __serialize = function()
        local result = {}
        for _, row in box.space._session_settings:pairs() do
            result[row[1]] = row[2]
        end
        return result
    end,
})

-- What runs when a connection comes, goes, or has logged in.
local triggers = { on_connect = {}, on_disconnect = {}, on_auth = {} }

-- Tells which events are wanted: the end of a session also ends its storage.
local function announce(name)
    local wanted = #triggers[name] > 0 or name == 'on_disconnect' and next(storages) ~= nil
    internal.set_session_triggers(name, wanted)
end
internal.storage_was_made = function() announce('on_disconnect') end

for name, list in pairs(triggers) do
    session[name] = function(new, old)
        local result = internal.edit_triggers(list, new, old)
        announce(name)
        if result ~= nil then
            return result
        end
    end
end

function internal.values.session_event(name, ...)
    internal.run_triggers_logged(triggers[name], name, ...)
    if name == 'on_disconnect' then
        storages[internal.session()] = nil
        announce(name)
    end
end

box.session = session
