-- What grant and revoke take as arguments, and which fault of several is named.
user, role = box.schema.user, box.schema.role

user.create('u')

role.create('r')

-- Of both, and for a user and a role: `both('u', ...)` is what user.grant, user.revoke say.
function try(f, ...) local ok, reason = pcall(f, ...) return ok or reason.code, ok or tostring(reason) end

function both(...) local a, b = try(user.grant, 'u', ...) local c, d = try(user.revoke, 'u', ...) return a, b, c, d end

function both_of_role(...) local a, b = try(role.grant, 'r', ...) local c, d = try(role.revoke, 'r', ...) return a, b, c, d end

both('zz')

both({})

both(5)

both('read')

both('read', nil, '_space')

both('', 'universe')

both('read', 'UNIVERSE')

both('read', 'Space', '_space')

both('readwrite', 'space', '_space')

both('read;write', 'space', '_space')

both(3, 'space', '_space')

both(1e10, 'space', '_space')

both('session', 'space', '_space')

both('create', 'space')

both('create', 'space', '')

both('read', 'space', {})

both('read', 'space', 280)

both('read', 'space', 9999)

both('execute', 'function', 'zz')

both('execute', 'function', 5.5)

both('execute', 'role', 'zz')

both('execute', 'role', 'super')

both('public')

user.grant('u', 'public')

user.grant('u', 'public')

both(31)

both('alter', 'user', 'admin')

both('alter', 'user', 'zz')

both('read', 'sequence', 'zz')

both('read', 'sequence', 1)

both('read', 'universe', 'zz')

user.grant('u', 'read', 'universe')

user.grant('u', 'read', 'universe', 'zz')

user.grant('u', 'read', 'universe', nil, {if_not_exists = true})

user.revoke('u', 'read', 'universe')

user.revoke('u', 'read', 'universe', 'zz')

user.revoke('u', 'read', 'universe', 'zz', {if_exists = true})

both('read', 5)

both('read', 'universe', {})

both('read', 'zz')

both('read', '')

both(true, 'universe')

-- Roles.
both_of_role('session', 'universe')

both_of_role('usage', 'space', 'zz')

both_of_role('read', nil, '_space')

both_of_role('', 'sequence', nil)

both_of_role('create', 'space')

both_of_role('r')

both_of_role(5)

-- Of whom.
try(user.grant)

try(user.grant, 'r', 'read', 'universe')

try(user.grant, {}, 'read', 'universe')

try(role.grant, 'u', 'read', 'universe')

try(user.create, 5)

try(user.create, 1)

try(user.create, {})

try(user.create)

try(user.drop, {})

try(user.drop, 0)

try(user.drop, 5.5)

try(user.drop, 'r')

try(role.create, 5)

try(role.create, {})

try(role.drop, {})

try(role.drop, 2)

try(role.drop, 'u')

try(user.info, {})

try(role.info, 'u')

user.exists('r'), role.exists('u'), user.exists(1), role.exists(2)

user.info('u')

role.info('r')
