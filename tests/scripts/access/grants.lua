-- grant and revoke: objects, privileges, repetition, and what is refused

s = box.schema.space.create('t')

_ = s:create_index('primary')

box.schema.user.create('ann')

function privs(name) local out = {} for _, p in ipairs(box.schema.user.info(name)) do table.insert(out, table.concat(p, ' ')) end return out end

privs('ann')

box.schema.user.grant('ann', 'read', 'space', 't')

box.schema.user.grant('ann', 'read', 'space', 't')

box.schema.user.grant('ann', 'read', 'space', 't', {if_not_exists = true})

box.schema.user.grant('ann', 'write', 'space', 't')

box.schema.user.grant('ann', 'read,write', 'space', 't')

privs('ann')

box.schema.user.revoke('ann', 'write', 'space', 't')

box.schema.user.revoke('ann', 'write', 'space', 't')

box.schema.user.revoke('ann', 'write', 'space', 't', {if_exists = true})

privs('ann')

box.schema.user.grant('ann', 'read,write,execute', 'universe')

box.schema.user.grant('ann', 'read,write,execute', 'universe')

privs('ann')

box.schema.user.revoke('ann', 'read,write,execute', 'universe')

box.schema.user.grant('ann', 'create,drop,alter', 'space')

privs('ann')

box.schema.user.revoke('ann', 'create,drop,alter', 'space')

box.schema.user.grant('ann', 'execute', 'function', 'none')

box.schema.func.create('f')

box.schema.user.grant('ann', 'execute', 'function', 'f')

_ = box.schema.sequence.create('q')

box.schema.user.grant('ann', 'read,write', 'sequence', 'q')

box.schema.user.grant('ann', 'usage', 'universe')

privs('ann')

box.schema.user.grant('ann', 'read', 'space', 'none')

box.schema.user.grant('none', 'read', 'space', 't')

box.schema.user.grant('ann', 'fly', 'space', 't')

box.schema.user.grant('ann', 'read', 'planet', 't')

box.schema.user.grant('ann', 'none')

box.schema.user.grant('ann')

box.schema.user.grant()

box.schema.user.grant('ann', 'read', 'universe', nil, {colour = 'red'})

box.schema.user.grant('ann', 'execute', 'space', 't')

box.schema.user.grant('ann', 'read', 'function', 'f')

box.schema.user.grant('admin', 'read', 'space', 't')

box.schema.user.grant('guest', 'super')

privs('guest')

box.schema.user.revoke('guest', 'super')

box.schema.user.revoke('guest', 'super')

box.schema.user.disable('ann')

privs('ann')

box.schema.user.enable('ann')

privs('ann')

box.schema.user.grant('ann', 1, 'space', 't')

box.space._priv:select{1, 0}

s:drop()

privs('ann')
