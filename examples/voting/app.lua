#!/usr/bin/env tarantool
-- Starts the database of the voting service. Options come from the environment: LISTEN, WORK_DIR, WAL_MODE, MEMTX_MEMORY, LOG_LEVEL; WEB_PASSWORD, the
-- password of the user `web`, which has to be given; STICKERS, how many; SESSION_SECONDS, how long a session lives; ADD_SESSIONS, how many
-- sessions of nobody to begin with.

local options = {
    listen = os.getenv('LISTEN') or '127.0.0.1:3301',
    work_dir = os.getenv('WORK_DIR'),
    wal_mode = os.getenv('WAL_MODE'),
    memtx_memory = tonumber(os.getenv('MEMTX_MEMORY')),
    log_level = tonumber(os.getenv('LOG_LEVEL')),
}
local web_password = os.getenv('WEB_PASSWORD')
if not web_password then
    io.stderr:write('WEB_PASSWORD is not set: the password of the user `web`, as whom the web server calls\n')
    os.exit(1)
end

-- The modules beside this file.
local fio = require('fio')
package.path = fio.pathjoin(fio.dirname(fio.abspath(arg[0])), '?.lua') .. ';' .. package.path

box.cfg(options)
voting = require('voting')
voting.start({
    stickers = tonumber(os.getenv('STICKERS')) or 1024,
    session_seconds = tonumber(os.getenv('SESSION_SECONDS')),
    web_password = web_password,
})
voting.add_sessions(tonumber(os.getenv('ADD_SESSIONS')) or 0)
