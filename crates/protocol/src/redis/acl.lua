-- What `ACL SETUSER` and its kin do: users and grants of the database, with the rights of who asks. Arguments: what to do, a user's name, and for `set`:
-- a password or '', then 'yes' or 'no': whether it may log in, read, write; and its rules, '' if it may do everything.
local what, name, password, is_on, reads, writes, rules = ...

local own_user = 'redis'
local role = 'redis_acl'

local spaces = { 'redis' }
for number = 1, 15 do
    table.insert(spaces, 'redis_' .. number)
end
for _, rest in ipairs({ 'hashes', 'lists', 'sets', 'sorted_sets', 'streams', 'stream_groups', 'stream_consumers', 'stream_pending', 'functions' }) do
    table.insert(spaces, 'redis_' .. rest)
end

local kept = box.space.redis_acl
if kept == nil then
    box.error({ code = box.error.ILLEGAL_PARAMS, reason = "the space 'redis_acl' is gone: it is made when the server begins to listen" })
end

-- What somebody has on an object, by its roles, too.
local function rights(id, kind, object)
    local row = box.space._vpriv:get({ id, kind, object })
    local found = row and row.privilege or 0
    for _, of_role in box.space._vpriv:pairs({ id, 'role' }) do
        found = bit.bor(found, rights(of_role.object_id, kind, object))
    end
    return found
end

-- Name; whether it has a password, may log in, read, write, and has rules; and those.
local function describe(user)
    local everything = user.id == 1 and 0xff or rights(user.id, 'universe', 0)
    local has = bit.bor(everything, rights(user.id, 'space', ''), rights(user.id, 'space', box.space.redis.id))
    local auth = user.auth or {}
    local role_id = box.space._vuser.index.name:get(role).id
    local row = kept:get(user.id)
    -- Who has the role has rules, even if there are none to be read.
    local rules = row ~= nil and type(row[2]) == 'string' and row[2] or ''
    return user.name, auth['chap-sha1'] ~= nil, bit.band(everything, 8) ~= 0, bit.band(has, 1) ~= 0, bit.band(has, 2) ~= 0,
        rights(user.id, 'role', role_id) ~= 0, rules
end

if what == 'all' then
    local found = {}
    for _, user in box.space._vuser:pairs() do
        if user.type == 'user' then
            table.insert(found, user.name)
        end
    end
    return unpack(found)
end

local user = box.space._vuser.index.name:get(name)
if what == 'get' then
    if user ~= nil and user.type == 'user' then
        return describe(user)
    end
    return
end

if what == 'delete' then
    if user == nil or user.type ~= 'user' then
        return false
    end
    box.atomic(function()
        box.schema.user.drop(name)
        kept:delete(user.id)
    end)
    return true
end

-- All of it or nothing.
box.begin()
local is_done, failure = pcall(function()
    if user == nil then
        box.schema.user.create(name, password ~= '' and { password = password } or nil)
    elseif user.type ~= 'user' then
        box.error({ code = box.error.ILLEGAL_PARAMS, reason = name .. ' is a role' })
    elseif password ~= '' then
        box.schema.user.passwd(name, password)
    end
    local function set(may, privilege, kind, object)
        local change = may == 'yes' and box.schema.user.grant or box.schema.user.revoke
        local options = may == 'yes' and { if_not_exists = true } or { if_exists = true }
        change(name, privilege, kind, object, options)
    end
    set(is_on, 'session', 'universe', nil)
    set(rules ~= '' and 'yes' or 'no', 'execute', 'role', role)
    local id = box.space._user.index.name:get(name).id
    if rules ~= '' then
        kept:replace({ id, rules })
    else
        kept:delete(id)
    end
    for _, space in ipairs(spaces) do
        -- What rules allow is done as the door's own user, who keeps its rights.
        if box.space[space] ~= nil and name ~= own_user then
            set(reads, 'read', 'space', space)
            set(writes, 'write', 'space', space)
        end
    end
end)
if not is_done then
    box.rollback()
    error(failure, 0)
end
box.commit()
return true
