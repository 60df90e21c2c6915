-- Fills a data directory (the working directory) with rows on disk, on either server: runs of several dumps in several ranges, merged and not,
-- and a log behind them.
box.cfg{ log_level = 2, log = os.getenv('SERVER_LOG'), wal_mode = 'write', vinyl_page_size = 512, vinyl_range_size = 20000, vinyl_run_count_per_level = 1,
    vinyl_memory = 8 * 1024 * 1024, checkpoint_count = 1, checkpoint_interval = 0 }

local numbers = box.schema.space.create('numbers', { engine = 'vinyl' })
numbers:create_index('pk', { parts = { 1, 'unsigned' } })
local words = box.schema.space.create('words', { engine = 'vinyl' })
words:create_index('pk', { parts = { { 2, 'string', collation = 'unicode_ci' }, { 1, 'integer' } } })
words:create_index('by_third', { parts = { { 3, 'integer', is_nullable = true } }, unique = false })
words:create_index('unique', { parts = { 4, 'scalar' } })
-- Rows of local spaces count apart.
local here = box.schema.space.create('here', { is_local = true })
here:create_index('pk')
local in_memory = box.schema.space.create('in_memory')
in_memory:create_index('pk')
local emptied = box.schema.space.create('emptied', { engine = 'vinyl' })
emptied:create_index('pk')
local gone = box.schema.space.create('gone', { engine = 'vinyl' })
gone:create_index('pk')
local grown = box.schema.space.create('grown', { engine = 'vinyl' })
grown:create_index('pk', { parts = { 1, 'number' } })

for round = 1, 6 do
    for i = 1, 600 do
        if (i * round) % 7 == 0 then
            numbers:delete(i)
        elseif (i + round) % 5 == 0 then
            numbers:upsert({ i, 'new' .. round, 1 }, { { '+', 3, round } })
        else
            numbers:replace({ i, ('x'):rep(20 + round), i * round })
        end
        if i % 3 == round % 3 then
            words:replace({ i % 50 - 25, 'Key' .. i % 20, i % 4 ~= 0 and i * round or nil, ('%d/%d'):format(i % 50, i % 20) })
        elseif i % 11 == 0 then
            words:delete({ 'kEY' .. i % 20, i % 50 - 25 })
        end
        if i % 50 == 0 then here:replace({ i, round }) in_memory:replace({ i, round }) end
    end
    emptied:replace({ round, 'before' })
    gone:replace({ round })
    grown:replace({ round + 0.5, { a = round } })
    grown:replace({ -round })
    if round == 3 then emptied:truncate() end
    box.snapshot()
end
-- What a merge is at leaves files.
require('fiber').sleep(0.3)

-- Only in the log.
numbers:replace({ 10001, 'log only', 7 })
numbers:upsert({ 5, 'z', 3 }, { { '+', 3, 1000 } })
numbers:delete(6)
numbers:upsert({ 20000, 'upserted', 3 }, { { '+', 3, 1000 } })
box.begin()
words:replace({ 1, 'key1', 1, 'behind' })
words:update({ 'KEY1', 1 }, { { '=', 3, 77 } })
box.commit()
here:replace({ 1, 'behind' })
emptied:replace({ 100, 'behind' })
emptied:truncate()
emptied:replace({ 101, 'after all' })
gone:drop()
grown:create_index('second', { parts = { { 1, 'number' } } })
local late = box.schema.space.create('late', { engine = 'vinyl' })
late:create_index('pk')
late:replace({ 1, 'made behind the snapshot' })
os.exit(0)
