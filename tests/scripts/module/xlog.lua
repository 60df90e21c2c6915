-- module xlog: rows of logs and snapshots
-- wal_mode: write

xlog, fio = require('xlog'), require('fio')

s = box.schema.space.create('t', {id = 600})

_ = s:create_index('pk')

s:insert({1, 'a'})

s:replace({2, 'b'})

s:delete({1})

box.begin() s:insert({3}) s:insert({4}) box.commit()

log = fio.glob('*.xlog')[1]

function of(file, low) local r = {} for lsn, row in xlog.pairs(file) do if row.BODY.space_id >= low then row.HEADER.timestamp = type(row.HEADER.timestamp) r[#r + 1] = {lsn == (row.HEADER.lsn or 0), row.HEADER.type, row.HEADER.commit, row.HEADER.tsn and row.HEADER.tsn - row.HEADER.lsn, row.HEADER.replica_id, row.HEADER.timestamp, row.BODY} end end return r end

of(log, 512)

box.snapshot()

snapshots = fio.glob('*.snap') table.sort(snapshots)

of(snapshots[#snapshots], 512)

#of(log, 512)

-- what is no log

xlog.pairs('nope')

xlog.pairs()

xlog.pairs({})

xlog.pairs(5)

xlog.pairs(log, 5)

s:drop()
