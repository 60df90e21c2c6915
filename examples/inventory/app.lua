#!/usr/bin/env tarantool
-- Starts a server with the inventory. Options come from the environment: LISTEN, WORK_DIR, WAL_MODE, MEMTX_MEMORY, LOG_LEVEL. What is not set
-- there is left to the server's defaults.

local options = {
    listen = os.getenv('LISTEN') or '127.0.0.1:3301',
    work_dir = os.getenv('WORK_DIR'),
    wal_mode = os.getenv('WAL_MODE'),
    memtx_memory = tonumber(os.getenv('MEMTX_MEMORY')),
    log_level = tonumber(os.getenv('LOG_LEVEL')),
}

-- The modules beside this file.
local fio = require('fio')
package.path = fio.pathjoin(fio.dirname(fio.abspath(arg[0])), '?.lua') .. ';' .. package.path

box.cfg(options)
-- Only now: Tarantool listens while it still reads its logs, and a procedure that was there already would decide on a state of the past. A
-- client that is too early hears that there is no such procedure.
inventory = require('inventory')
inventory.create_schema()

-- A space for plain load, and free access: this is an example at a loopback address.
local bench = box.schema.space.create('bench', { if_not_exists = true })
bench:create_index('primary', { parts = { { 1, 'unsigned' } }, if_not_exists = true })
box.schema.user.grant('guest', 'read,write,execute', 'universe', nil, { if_not_exists = true })
box.schema.user.create('bench', { password = 'bench', if_not_exists = true })
box.schema.user.grant('bench', 'read,write,execute', 'universe', nil, { if_not_exists = true })

-- Drops all rows of `bench`.
function bench_clear()
    box.space.bench:truncate()
end

-- Answered as soon as all of the above is there.
function bench_ready()
    return true
end
