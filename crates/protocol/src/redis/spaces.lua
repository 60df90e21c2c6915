-- The spaces of the door of Redis' protocol; docs/redis.md describes them. Arguments: the engine of those that are made now, and the number of a
-- database whose keys are wanted.
local engine, db = ...
local own_user = 'redis'

local is_new = box.space._user.index.name:get(own_user) == nil
if is_new then
    -- Without a password nobody can log in as it.
    box.schema.user.create(own_user)
end

-- Fields of hashes and members of sets need no order, but places that are found at a look: on disk bytes do, in memory the order is that of their
-- hashes. Members of sorted sets have their order by the index of scores.
local by_hash = engine == 'memtx' and 'bytes_by_hash' or nil
if by_hash and box.space._collation.index.name:get(by_hash) == nil then
    local id = box.space._collation.index.primary:max()[1] + 1
    box.space._collation:insert({ id, by_hash, 1, 'HASH', '', setmetatable({}, { __serialize = 'map' }) })
end

-- Those whom `ACL SETUSER` allows everything have rights on all spaces of the door: on one that comes, too.
local function on_all_spaces(user)
    local own, found = box.space._user.index.name:get(own_user), nil
    for _, right in box.space._priv:pairs({ own.id, 'space' }) do
        -- The door's spaces are those that its own user reads and writes.
        if bit.band(right.privilege, 3) == 3 then
            local row = box.space._priv:get({ user.id, 'space', right.object_id })
            found = bit.band(found or 3, row and row.privilege or 0)
        end
    end
    return found or 0
end
local may_all = {}
for _, user in box.space._user:pairs() do
    may_all[user.name] = user.type == 'user' and user.name ~= own_user and on_all_spaces(user) or nil
end

local function make(name, format, parts, kind, ttl)
    if box.space[name] ~= nil then
        return box.space[name]
    end
    local space = box.schema.space.create(name, { engine = engine, format = format, ttl = ttl })
    space:create_index('primary', { type = engine == 'memtx' and kind or 'tree', parts = parts })
    box.schema.user.grant(own_user, 'read,write', 'space', name)
    for user, rights in pairs(may_all) do
        for mask, privilege in ipairs({ 'read', 'write' }) do
            if bit.band(rights, mask) ~= 0 then
                box.schema.user.grant(user, privilege, 'space', name)
            end
        end
    end
    return space
end

make(db == '0' and 'redis' or 'redis_' .. db, {
    { name = 'key', type = 'string' },
    { name = 'value', type = 'any' },
    { name = 'expires', type = 'unsigned', is_nullable = true },
}, { 'key' }, 'hash', { field = 'expires', unit = 'ms', walk_rows_per_second = 100000 })

make('redis_hashes', {
    { name = 'id', type = 'unsigned' },
    { name = 'field', type = 'string' },
    { name = 'value', type = 'string' },
}, { 'id', { 'field', collation = by_hash } }, 'tree')

make('redis_lists', {
    { name = 'id', type = 'unsigned' },
    { name = 'position', type = 'integer' },
    { name = 'value', type = 'string' },
}, { 'id', 'position' }, 'tree')

make('redis_sets', {
    { name = 'id', type = 'unsigned' },
    { name = 'member', type = 'string' },
}, { 'id', { 'member', collation = by_hash } }, 'tree')

local sorted = make('redis_sorted_sets', {
    { name = 'id', type = 'unsigned' },
    { name = 'member', type = 'string' },
    { name = 'score', type = 'double' },
}, { 'id', { 'member', collation = by_hash } }, 'tree')
if sorted.index.score == nil then
    sorted:create_index('score', { type = 'tree', parts = { 'id', 'score', 'member' } })
end

make('redis_streams', {
    { name = 'id', type = 'unsigned' },
    { name = 'ms', type = 'unsigned' },
    { name = 'seq', type = 'unsigned' },
    { name = 'fields', type = 'array' },
}, { 'id', 'ms', 'seq' }, 'tree')

make('redis_functions', {
    { name = 'name', type = 'string' },
    { name = 'code', type = 'string' },
}, { 'name' }, 'tree')

make('redis_stream_groups', {
    { name = 'id', type = 'unsigned' },
    { name = 'group', type = 'string' },
    { name = 'last_ms', type = 'unsigned' },
    { name = 'last_seq', type = 'unsigned' },
    { name = 'read', type = 'unsigned', is_nullable = true },
}, { 'id', 'group' }, 'tree')

make('redis_stream_consumers', {
    { name = 'id', type = 'unsigned' },
    { name = 'group', type = 'string' },
    { name = 'consumer', type = 'string' },
    { name = 'seen', type = 'unsigned' },
}, { 'id', 'group', 'consumer' }, 'tree')

local pending = make('redis_stream_pending', {
    { name = 'id', type = 'unsigned' },
    { name = 'group', type = 'string' },
    { name = 'ms', type = 'unsigned' },
    { name = 'seq', type = 'unsigned' },
    { name = 'consumer', type = 'string' },
    { name = 'delivered', type = 'unsigned' },
    { name = 'times', type = 'unsigned' },
}, { 'id', 'group', 'ms', 'seq' }, 'tree')
if pending.index.consumer == nil then
    pending:create_index('consumer', { type = 'tree', parts = { 'id', 'group', 'consumer', 'ms', 'seq' } })
end

-- Rules of `ACL SETUSER`. Whoever may write here may allow everything that this door can do. They are those of users who have the role: it goes with its
-- user, so that another one who gets the number has no rules.
if box.space.redis_acl == nil then
    local rules = box.schema.space.create('redis_acl', {
        format = { { name = 'id', type = 'unsigned' }, { name = 'rules', type = 'string' } },
    })
    rules:create_index('primary', { parts = { 'id' } })
end
box.schema.role.create('redis_acl', { if_not_exists = true })
