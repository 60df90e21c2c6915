-- a function with setuid runs as its owner; without, as its caller
-- engines: memtx, vinyl

s = box.schema.space.create('secret')

_ = s:create_index('primary')

_ = s:insert{1, 'hidden'}

box.schema.user.create('ann')

function peek() return box.session.effective_user(), box.session.user(), box.space.secret:get(1) end

box.schema.func.create('peek')

box.schema.user.grant('ann', 'execute', 'function', 'peek')

box.session.su('ann', function() return box.func.peek:call() end)

box.schema.func.drop('peek')

box.schema.func.create('peek', {setuid = true})

box.func.peek.setuid

box.session.su('ann', function() return box.func.peek:call() end)

box.schema.user.grant('ann', 'execute', 'function', 'peek')

box.session.su('ann', function() return box.func.peek:call() end)

box.session.su('ann', function() return box.space.secret:get(1) end)

box.schema.func.create('write', {setuid = true, body = 'function(t) return box.space.secret:insert(t) end'})

box.schema.user.grant('ann', 'execute', 'function', 'write')

box.session.su('ann', function() return box.func.write:call{{2, 'by ann'}} end)

box.session.su('ann', function() return box.func.write:call{{2, 'by ann'}} end)

box.schema.user.drop('ann')

box.space._priv:select{}[1] ~= nil
