-- users and roles: creating, dropping, existence, passwords, and what is refused

box.schema.user.exists('guest')

box.schema.user.exists('nobody')

box.schema.user.create('ann')

box.schema.user.create('ann')

box.schema.user.create('ann', {if_not_exists = true})

box.schema.user.create('bob', {password = 'secret'})

box.space._user.index.name:get('bob')

box.schema.user.create('', {})

box.schema.user.create(5)

box.schema.user.create('x', {colour = 'red'})

box.schema.user.create('x', {password = 5})

box.schema.user.password('secret')

box.schema.user.password('')

box.schema.user.passwd('bob', 'new')

box.space._user.index.name:get('bob').auth

box.schema.user.passwd('none', 'x')

box.schema.user.passwd('guest', 'x')

box.schema.user.info('ann')

box.schema.user.info('guest')

box.schema.user.info('none')

box.schema.user.info()

box.schema.role.create('reader')

box.schema.role.create('reader')

box.schema.role.create('reader', {if_not_exists = true})

box.schema.role.create('ann')

box.schema.user.create('reader')

box.schema.role.exists('reader')

box.schema.role.exists('ann')

box.schema.user.exists('reader')

box.schema.role.info('reader')

box.schema.role.info('none')

box.schema.role.grant('reader', 'read', 'universe')

box.schema.role.info('reader')

box.schema.user.grant('ann', 'reader')

box.schema.user.grant('ann', 'reader')

box.schema.user.grant('ann', 'reader', nil, nil, {if_not_exists = true})

box.schema.user.info('ann')

box.schema.role.grant('reader', 'reader')

box.schema.role.create('upper')

box.schema.role.grant('upper', 'reader')

box.schema.role.grant('reader', 'upper')

box.schema.role.drop('reader')

box.schema.user.info('ann')

box.schema.role.drop('none')

box.schema.role.drop('none', {if_exists = true})

box.schema.role.drop('ann')

box.schema.user.drop('upper')

box.schema.user.drop('ann')

box.schema.user.exists('ann')

box.schema.user.drop('ann')

box.schema.user.drop('ann', {if_exists = true})

box.schema.user.drop('admin')

box.schema.user.drop('guest')

box.schema.role.drop('public')

box.schema.role.drop('super')

box.space._user:select({}, {iterator = 'LE', limit = 2})
