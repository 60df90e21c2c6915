-- once, snapshot and other small things of box

box.snapshot()

box.once('key', function(a) ran = (ran or 0) + a end, 5)

box.once('key', function(a) ran = (ran or 0) + a end, 5)

ran

box.space._schema:get('oncekey')

box.once('failing', function() error('stop') end)

box.once('failing', function() return 'never' end)

box.once(5, function() end)

box.once('x')

box.once()

type(box.schema)

type(box.backup.start)

box.is_in_txn()

type(box.ctl.wait_rw)

box.ctl.wait_rw()

box.ctl.wait_rw(0.01)

box.ctl.wait_ro(0.01)

f = function() end

box.ctl.on_shutdown(f) == f

box.ctl.on_shutdown(nil, f)

box.ctl.on_schema_init(f) == f

box.ctl.on_schema_init(nil, f)

type(box.tuple.new)

type(box.index.GE)

type(box.error)

box.none

-- a limit of the size of a row

s = box.schema.space.create('t')

_ = s:create_index('primary')

_ = s:insert{1, ('x'):rep(1000 * 1000)}

s:insert{2, ('x'):rep(2 * 1024 * 1024)}

_ = s:replace{1}

s:len()
