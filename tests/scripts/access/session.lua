-- box.session: who is speaking, storage, su

box.session.id()

box.session.user()

box.session.effective_user()

box.session.uid()

box.session.euid()

box.session.type()

box.session.peer()

box.session.exists(box.session.id())

box.session.exists(12345)

box.session.exists()

box.session.exists('x')

box.session.storage

box.session.storage.key = 'value'

box.session.storage

box.session.storage.key

box.session.storage.key = nil

box.session.storage.key

box.session.su('guest')

box.session.user()

box.session.uid()

box.session.effective_user()

box.session.su('admin')

box.session.su('guest', function(a, b) return box.session.user(), box.session.effective_user(), a + b end, 1, 2)

box.session.su('guest', function() error('stop') end)

box.session.user()

box.session.su(0)

box.session.uid()

box.session.su(1)

box.session.uid()

box.session.fd()

box.session.sync()

box.session.push({1})

box.session.on_connect()

f = function() end

box.session.on_connect(f) == f

#box.session.on_connect()

box.session.on_connect(nil, f)

box.session.on_disconnect(f) == f

box.session.on_disconnect(nil, f)

box.session.on_auth(f) == f

box.session.on_auth(nil, f)

box.session.on_auth(5)
