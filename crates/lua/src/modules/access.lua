-- box.schema.user and .role: users, roles and what they are granted.
local internal = ...

local check_options, fail, illegal = internal.check_options, internal.fail, internal.illegal
local atomically, map = internal.atomically, internal.map

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

-- What clients of PostgreSQL and MySQL prove a password by: the space, and what makes it of a password. It stands beside `_user`, once their protocol
-- was opened, with the hash of the password that it is of.
local verifiers = { _scram = internal.scram_verifier, _sha2 = internal.sha2_digest }

local function note_verifier(id, password)
    as_admin(function()
        for name, make in pairs(verifiers) do
            local space = box.space[name]
            -- A space of that name that somebody else has made is theirs to read.
            if space ~= nil and password ~= nil and box.space._space:get(space.id)[2] == 1 then
                space:replace({ id, internal.password_hash(password), make(password) })
            end
        end
    end)
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
        note_verifier(id, options.password)
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
        note_verifier(id, name)
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
    note_verifier(id, password)
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
    internal.check_drop_account(id)
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
        as_admin(function()
            for name in pairs(verifiers) do
                local space = box.space[name]
                if space ~= nil and box.space._space:get(space.id)[2] == 1 then
                    space:delete(id)
                end
            end
        end)
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
    internal.check_drop_account(id)
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

-- Statements of SQL ------------------------------------------------------------------------------------------------
local holders = { user = user, role = role }
local verbs = {
    create_user = user.create, create_role = role.create, drop_user = user.drop, drop_role = role.drop,
    password = user.passwd, own_password = user.passwd, disable = user.disable,
}

function verbs.enable(name, grantor)
    local options = { if_not_exists = true, grantor = grantor ~= '' and grantor or nil }
    user.grant(name, 'session,usage', 'universe', nil, options)
end

function verbs.no_password(name)
    local id = grantee_id(name, 'user')
    box.space._user:update(id, { { '=', 5, map({}) } })
    as_admin(function()
        for verifier in pairs(verifiers) do
            local space = box.space[verifier]
            if space ~= nil and box.space._space:get(space.id)[2] == 1 then
                space:delete(id)
            end
        end
    end)
end

function verbs.grant(kind, name, rights, object_type, object, grantor)
    local options = { if_not_exists = true, grantor = grantor ~= '' and grantor or nil }
    holders[kind].grant(name, tonumber(rights), object_type, object, options)
end

function verbs.revoke(kind, name, rights, object_type, object)
    holders[kind].revoke(name, tonumber(rights), object_type, object, { if_exists = true })
end

function verbs.grant_role(kind, name, granted, grantor)
    local options = { if_not_exists = true, grantor = grantor ~= '' and grantor or nil }
    holders[kind].grant(name, 'execute', 'role', granted, options)
end

function verbs.revoke_role(kind, name, granted)
    holders[kind].revoke(name, 'execute', 'role', granted, { if_exists = true })
end

-- All that was given, but what every user has.
function verbs.revoke_all(kind, name)
    local id = grantee_id(name, kind)
    for _, row in ipairs(as_admin(function() return box.space._priv:select({ id }) end)) do
        local object_type, object, rights = row[3], row[4], row[5]
        local kept = 0
        if object_type == 'universe' then
            kept = bit.band(rights, 24)
        elseif object_type == 'user' and object == id or object_type == 'role' and object == 2 then
            kept = rights
        end
        if kept == 0 then
            box.space._priv:delete({ id, object_type, object })
        elseif kept ~= rights then
            box.space._priv:replace({ row[1], id, object_type, object, kept })
        end
    end
end

function internal.values.manage_accounts(verb, ...)
    verbs[verb](...)
end
