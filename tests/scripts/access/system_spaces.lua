-- what each kind of user reads, sees and may write of the spaces that hold the schema

secret = box.schema.space.create('secret')

_ = secret:create_index('primary')

_ = secret:insert{1, 'kept'}

_ = box.schema.sequence.create('tickets')

for _, name in ipairs{'plain', 'reader', 'writer', 'executor', 'maker', 'owner'} do box.schema.user.create(name) end

box.schema.user.grant('reader', 'read', 'universe')

box.schema.user.grant('writer', 'read,write', 'universe')

box.schema.user.grant('executor', 'execute', 'function')

for _, kind in ipairs{'space', 'function', 'sequence', 'user', 'role'} do box.schema.user.grant('maker', 'create', kind) end

for _, name in ipairs{'_space', '_index', '_func', '_user', '_priv', '_sequence', '_space_sequence'} do box.schema.user.grant('maker', 'read,write', 'space', name) end

box.schema.user.grant('owner', 'create', 'space')

for _, name in ipairs{'_space', '_index', '_space_sequence', '_truncate'} do box.schema.user.grant('owner', 'read,write', 'space', name) end

box.session.su('owner', function() own = box.schema.space.create('own') own:create_index('primary') own:insert{1} end)

users = {'guest', 'plain', 'reader', 'writer', 'executor', 'maker', 'owner'}

number_of = {}

for _, name in ipairs(users) do number_of[name] = box.space._user.index.name:get(name)[1] end

-- Runs the work as each user, takes back what it did, and says how it went.
function each(work)
    local result = {}
    for _, name in ipairs(users) do
        box.begin()
        local ok, answer = pcall(box.session.su, name, work, number_of[name])
        box.rollback()
        result[name] = ok and 'done' or tostring(answer)
    end
    return result
end

function write(space, row) return each(function(user) return box.space[space]:replace(type(row) == 'function' and row(user) or row) end) end

map = setmetatable({}, {__serialize = 'map'})

-- reading

function reading(name)
    local result = {}
    for _, user in ipairs(users) do
        local ok, answer = pcall(box.session.su, user, function() return box.space[name]:select()[1] ~= nil end)
        result[user] = ok and (answer and 'rows' or 'none') or tostring(answer)
    end
    return result
end

reading('_schema')

reading('_collation')

reading('_space')

reading('_sequence')

reading('_sequence_data')

reading('_index')

reading('_func')

reading('_user')

reading('_priv')

reading('_cluster')

reading('_truncate')

reading('_space_sequence')

-- what views show: numbers of rows beyond those that everybody sees

function seen(name)
    local result = {}
    local function count() return box.space[name]:count() end
    local least = box.session.su('plain', count)
    for _, user in ipairs(users) do
        result[user] = box.session.su(user, count) - least
    end
    return result
end

seen('_vspace')

seen('_vindex')

seen('_vuser')

seen('_vsequence')

seen('_vcollation')

-- emptying a space

write('_truncate', {secret.id, 1})

write('_truncate', function() return {own.id, 1} end)

secret:count(), own:count()

each(function() return box.space._truncate:delete(own.id) end)

-- passwords and users

write('_user', function(user) return {1, user, 'admin', 'user', {['chap-sha1'] = 'vhvewKp0tNyweZQ+cFKAlsyphfg='}} end)

write('_user', function(user) return {number_of.plain, user, 'plain', 'user', {['chap-sha1'] = 'vhvewKp0tNyweZQ+cFKAlsyphfg='}} end)

each(function() return box.schema.user.passwd('plain', 'x') end)

each(function() return box.schema.user.passwd('x') end)

each(function() return box.space._user:delete(1) end)

write('_user', function(user) return {90, user, 'new', 'user', map} end)

-- rights

write('_priv', function(user) return {user, user, 'universe', 0, 7} end)

write('_priv', function(user) return {1, user, 'universe', 0, 7} end)

write('_priv', function(user) return {user, user, 'role', 31, 4} end)

write('_priv', function(user) return {user, user, 'space', secret.id, 3} end)

write('_priv', function(user) return {1, user, 'space', secret.id, 3} end)

write('_priv', function(user) return {user, 0, 'space', own.id, 3} end)

write('_priv', {1, 99, 'universe', 0, 1})

write('_priv', {1, 0, 'universe', 0, 0})

each(function() return box.space._priv:delete{1, 'universe', 0} end)

box.space._priv:replace{1, 99, 'universe', 0, 1}

box.space._priv:replace{1, 0, 'universe', 0, 0}

box.space._priv:replace{1, 1, 'universe', 0, 1}

-- definitions

write('_space', function(user) return {600, user, 'made', 'memtx', 0, map, {}} end)

write('_space', function(user) return {secret.id, user, 'secret', 'memtx', 0, map, {}} end)

each(function() return box.space._space:delete(secret.id) end)

each(function() return box.space._index:delete{secret.id, 0} end)

write('_index', {secret.id, 1, 'second', 'tree', {unique = false}, {{1, 'unsigned'}}})

write('_func', function(user) return {100, user, 'run', 1, 'LUA', '', 'function', {}, 'any', 'none', 'none', false, false, true, {'LUA'}, map, '', '', ''} end)

each(function() return box.space._func:delete(1) end)

each(function() return box.space._collation:delete(1) end)

box.space._collation:replace{400, 'mine', 1, 'ICU', 'ru-RU', {strength = 'nonsense'}}

box.space._collation:replace{400, 'mine', 1, 'ICU', 'ru-RU', {case_level = 'sometimes'}}

-- sequences

write('_sequence', function(user) return {50, user, 'made', 1, 1, 100, 1, 0, false} end)

write('_sequence_data', {1, 77})

write('_space_sequence', function() return {own.id, 1, false, 0, ''} end)

each(function() return box.sequence.tickets:next() end)

-- identity

write('_schema', {'cluster', 'aaaaaaaa-0000-4000-a000-000000000011'}).plain

write('_schema', {'cluster', 'nonsense'})

each(function() return box.space._schema:delete('cluster') end)

write('_cluster', {1, 'aaaaaaaa-0000-4000-a000-000000000011'})

write('_cluster', {2, 'nonsense'})

write('_cluster', {0, 'aaaaaaaa-0000-4000-a000-000000000011'})

each(function() return box.space._cluster:delete(1) end)

-- functions that everybody may call

each(function() return box.func['box.schema.user.info']:call{'admin'} end)

each(function() return box.schema.user.info() end)
