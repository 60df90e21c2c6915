-- Fills a data directory (the working directory) on either server: schema, rows, a snapshot, and logs after it.
box.cfg{ log_level = 2, log = os.getenv('SERVER_LOG'), checkpoint_count = 1 }

local stock = box.schema.space.create('stock', {
    format = { { 'id', 'unsigned' }, { 'name', 'string' }, { 'n', 'integer', is_nullable = true }, { 'any', 'any', is_nullable = true } },
})
box.schema.sequence.create('ids', { start = 10, step = 2 })
stock:create_index('primary', { sequence = 'ids' })
stock:create_index('name', { parts = { { 'name', 'string', collation = 'unicode_ci' } }, unique = false })
stock:create_index('n', { parts = { { 3, 'integer', is_nullable = true } }, unique = false })
local pairs_ = box.schema.space.create('pairs')
pairs_:create_index('pk', { type = 'HASH', parts = { 1, 'string', 2, 'unsigned' } })
box.schema.user.create('ann', { password = 'secret' })
box.schema.role.create('reader')
box.schema.role.grant('reader', 'read', 'space', 'stock')
box.schema.user.grant('ann', 'reader')
box.schema.func.create('double', { body = 'function(x) return x * 2 end' })
box.schema.user.grant('ann', 'execute', 'function', 'double')

local uuid, decimal = require('uuid'), require('decimal')
local function rows(from, to)
    for i = from, to do
        stock:insert({ box.NULL, 'Name' .. i % 7, i % 3 == 0 and box.NULL or i - 50, { i, { a = 'x' .. i } } })
        pairs_:replace({ 'key' .. i % 20, i, ('long '):rep(i % 50) })
    end
end
rows(1, 300)
pairs_:replace({ 'uuid', 1, uuid.fromstr('11111111-2222-3333-4444-555555555555'), decimal.new('-12.345') })
pairs_:replace({ 'numbers', 1, -1, 1.5, 18446744073709551615ULL, -9223372036854775807LL, true, box.NULL })
box.snapshot()
rows(301, 400)
box.begin()
stock:delete(12)
stock:update(16, { { '=', 'name', 'changed' }, { '+', 'n', 1000 } })
pairs_:upsert({ 'key1', 1, 'x' }, { { '=', 3, 'upserted' } })
pairs_:upsert({ 'fresh', 1, 'x' }, { { '=', 3, 'upserted' } })
box.commit()
stock:create_index('late', { parts = { { 2, 'string' }, { 1, 'unsigned' } } })
box.schema.space.create('dropped'):create_index('pk')
box.space.dropped:insert({ 1 })
box.space.dropped:drop()
os.exit(0)
