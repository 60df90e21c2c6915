-- box.info, box.stat and box.slab have the fields that monitors read

function types(t, names) local out = {} for _, n in ipairs(names) do out[n] = type(t[n]) end return out end

types(box.info, {'version', 'id', 'ro', 'uuid', 'package', 'cluster', 'listen', 'replication', 'signature', 'status', 'pid', 'lsn', 'vclock', 'uptime', 'memory', 'gc', 'vinyl', 'sql', 'replication_anon'})

box.info.status

box.info.id

box.info.ro

#box.info.uuid

#box.info.cluster.uuid

box.info.uuid == box.space._cluster:get(1)[2]

box.info.cluster.uuid == box.space._schema:get('cluster')[2]

types(box.info.replication[1], {'id', 'uuid', 'lsn'})

box.info().status

types(box.info.memory(), {'cache', 'data', 'tx', 'lua', 'net', 'index'})

types(box.info.gc(), {'vclock', 'checkpoints', 'signature', 'consumers'})

box.info.none

box.stat.INSERT.total

s = box.schema.space.create('t')

_ = s:create_index('primary')

before = box.stat.INSERT.total

for i = 1, 5 do s:insert{i} end

box.stat.INSERT.total - before

before = box.stat.SELECT.total

s:select() s:get(1)

box.stat.SELECT.total - before

before = box.stat.DELETE.total

_ = s:delete(1)

box.stat.DELETE.total - before

names = {}

for k in pairs(box.stat()) do table.insert(names, k) end

table.sort(names)

names

types(box.stat.UPDATE, {'total', 'rps'})

types(box.stat.net(), {'SENT', 'RECEIVED', 'CONNECTIONS', 'REQUESTS'})

types(box.slab.info(), {'items_size', 'items_used_ratio', 'quota_size', 'quota_used_ratio', 'arena_used_ratio', 'items_used', 'quota_used', 'arena_size', 'arena_used'})

box.slab.info().quota_size

type(box.slab.stats())

box.slab.check()

types(box.runtime.info(), {'lua', 'maxalloc', 'used'})

box.stat.none

box.stat.reset()

box.stat.INSERT.total
