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

local function rights(user, kind, id)
    local row = box.space._vpriv:get({ user.id, kind, id })
    return row and row.privilege or 0
end

local function describe(user)
    local everything = rights(user, 'universe', 0)
    local has = bit.bor(everything, rights(user, 'space', box.space.redis.id))
    local auth = user.auth or {}
    local row = box.space.redis_acl:get(user.id)
    local has_rules = row ~= nil and rights(user, 'role', box.space._vuser.index.name:get(role).id) ~= 0
    return user.name, auth['chap-sha1'] ~= nil, bit.band(everything, 8) ~= 0 or user.id == 1, bit.band(has, 1) ~= 0 or user.id == 1,
        bit.band(has, 2) ~= 0 or user.id == 1, has_rules and row.rules or ''
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
        box.space.redis_acl:delete(user.id)
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
        box.space.redis_acl:replace({ id, rules })
    else
        box.space.redis_acl:delete(id)
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
