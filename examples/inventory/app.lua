#!/usr/bin/env tarantool
-- Starts a server with the inventory. Options come from the environment: LISTEN, WORK_DIR, WAL_MODE, MEMTX_MEMORY.

local options = { listen = os.getenv('LISTEN') or '127.0.0.1:3301', log_level = tonumber(os.getenv('LOG_LEVEL') or 4) }
for name, variable in pairs({ work_dir = 'WORK_DIR', wal_mode = 'WAL_MODE' }) do
    options[name] = os.getenv(variable)
end
options.memtx_memory = tonumber(os.getenv('MEMTX_MEMORY') or 1024 * 1024 * 1024)

-- The modules beside this file.
local fio = require('fio')
package.path = fio.pathjoin(fio.dirname(fio.abspath(arg[0])), '?.lua') .. ';' .. package.path

box.cfg(options)
inventory = require('inventory')
inventory.create_schema()

-- A space for plain load, and free access: this is an example at a loopback address.
local bench = box.schema.space.create('bench', { if_not_exists = true })
bench:create_index('primary', { parts = { { 1, 'unsigned' } }, if_not_exists = true })
box.schema.user.grant('guest', 'read,write,execute', 'universe', nil, { if_not_exists = true })
box.schema.user.create('bench', { password = 'bench', if_not_exists = true })
box.schema.user.grant('bench', 'read,write,execute', 'universe', nil, { if_not_exists = true })

-- Drops all rows of `bench` and starts it anew.
function bench_clear()
    box.space.bench:truncate()
end
