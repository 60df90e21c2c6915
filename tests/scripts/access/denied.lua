-- a user without a grant is refused, and told what, to which object and to whom
-- engines: memtx, vinyl

s = box.schema.space.create('t')

_ = s:create_index('primary')

_ = s:insert{1, 'one'}

box.schema.user.create('ann')

_ = box.schema.sequence.create('q')

box.schema.func.create('f')

function f() return box.session.user(), box.session.effective_user() end

su = box.session.su

box.session.user()

su('ann')

box.session.user()

box.session.effective_user()

box.session.uid() == box.session.euid()

s:select()

s:get(1)

s:insert{2}

s:update(1, {})

s:delete(1)

s:count()

s:len()

s:truncate()

s:drop()

s.index.primary:min()

s.index.primary:drop()

box.sequence.q:next()

box.sequence.q:set(1)

box.sequence.q:drop()

box.schema.space.create('u')

box.schema.user.create('u')

box.schema.role.create('u')

box.schema.func.create('u')

box.schema.sequence.create('u')

box.schema.user.grant('ann', 'read', 'space', 't')

box.schema.user.drop('ann')

box.schema.user.passwd('admin', 'x')

box.schema.user.passwd('new')

box.func.f:call()

box.space._vspace:select(s.id)

box.space._space:select(s.id)

box.space._user:select()

box.space._vuser:count()

box.snapshot()

su('admin')

-- one privilege after the other

box.schema.user.grant('ann', 'read', 'space', 't')

su('ann', function() return s:select() end)

su('ann', function() return s:insert{2} end)

su('ann', function() return box.space._vspace:count{s.id} end)

box.schema.user.grant('ann', 'write', 'space', 't')

su('ann', function() return s:insert{2} end)

su('ann', function() return s:drop() end)

box.schema.user.revoke('ann', 'read', 'space', 't')

su('ann', function() return s:replace{2, 'blind'} end)

su('ann', function() return s:upsert({2}, {{'=', 2, 'x'}}) end)

su('ann', function() return s:delete(2) end)

su('ann', function() return s:get(2) end)

box.schema.user.grant('ann', 'execute', 'function', 'f')

su('ann', function() return box.func.f:call() end)

box.schema.user.grant('ann', 'create', 'space')

su('ann', function() return box.schema.space.create('mine').name end)

box.schema.user.grant('ann', 'read,write', 'space', '_space')

box.schema.user.grant('ann', 'read,write', 'space', '_schema')

su('ann', function() return box.schema.space.create('mine').name end)

su('ann', function() return box.space.mine:create_index('primary').name end)

su('ann', function() return box.space.mine:select() end)

box.schema.user.revoke('ann', 'session', 'universe')

su('ann', function() return 1 end)

su('none')

su('none', function() end)

su()

su('ann', 5)

box.session.user()
