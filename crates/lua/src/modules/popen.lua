-- popen: other programs, their streams and their end.
--
-- A fiber of each program waits for its end, so none stays behind as a zombie, whoever has closed the handle. A handle that nobody refers to closes its
-- streams and kills its program, unless it was asked to keep it.
local internal = ...

local ffi = require('ffi')
local errno = require('errno')
local fiber = require('fiber')
local socket = require('socket')

local C = ffi.C

local READ_BYTES = 4096
local FOREVER = 500 * 365 * 86400
local SIGTERM, SIGKILL = 15, 9
local NEW = 'popen.new: wrong parameter "%s": expected %s, got %s'

local signals = {
    SIGHUP = 1, SIGINT = 2, SIGQUIT = 3, SIGILL = 4, SIGTRAP = 5, SIGABRT = 6, SIGIOT = 6, SIGBUS = 7, SIGFPE = 8, SIGKILL = 9,
    SIGUSR1 = 10, SIGSEGV = 11, SIGUSR2 = 12, SIGPIPE = 13, SIGALRM = 14, SIGTERM = 15, SIGSTKFLT = 16, SIGCHLD = 17,
    SIGCONT = 18, SIGSTOP = 19, SIGTSTP = 20, SIGTTIN = 21, SIGTTOU = 22, SIGURG = 23, SIGXCPU = 24, SIGXFSZ = 25,
    SIGVTALRM = 26, SIGPROF = 27, SIGWINCH = 28, SIGIO = 29, SIGPOLL = 29, SIGPWR = 30, SIGSYS = 31,
}
local signal_names = {}
for name, number in pairs(signals) do
    if name ~= 'SIGIOT' and name ~= 'SIGPOLL' then
        signal_names[number] = name
    end
end
local STREAMS = { 'stdin', 'stdout', 'stderr' }
local MODES = { pipe = true, devnull = true, inherit = true, close = true }

local function bad(text)
    error(internal.values.make_error(0, 'IllegalParams', text), 0)
end

local function failure(kind, text)
    return nil, internal.values.make_error(0, kind, text)
end

-- Programs that run, by their numbers.
local running = {}
-- What a handle stands for.
local children = setmetatable({}, { __mode = 'k' })

local function close_stream(child, name)
    local fd = child.fds[name]
    if fd then
        child.fds[name] = false
        internal.descriptor_forget(fd)
        C.close(fd)
    end
end

local function send(child, signal)
    return internal.process_signal(child.pid, signal, child.opts.group_signal)
end

-- Closes the streams, and kills the program unless it is to stay.
local function let_go(child)
    for _, name in ipairs(STREAMS) do
        close_stream(child, name)
    end
    if child.status.state == 'alive' and not child.opts.keep_child then
        send(child, SIGKILL)
    end
end

local function await_end(child, watch)
    fiber.name('popen', { truncate = true })
    while true do
        -- Whoever cancels this fiber does not end the program.
        pcall(socket.iowait, watch, 'R')
        local code, signal = internal.process_look(child.pid)
        if code then
            child.status = { state = 'exited', exit_code = code }
            break
        elseif signal then
            child.status = { state = 'signaled', signo = signal, signame = signal_names[signal] or tostring(signal) }
            break
        end
        pcall(fiber.sleep, 0.001)
    end
    running[child.pid] = nil
    child.pid = nil
    internal.descriptor_forget(watch)
    C.close(watch)
    child.ended:broadcast()
end

-- Kills what would outlive the process.
function internal.end_programs()
    for _, child in pairs(running) do
        if not child.opts.keep_child then
            send(child, SIGKILL)
        end
    end
end

local methods = {}

local function child_of(handle, usage)
    local child = type(handle) == 'userdata' and children[handle]
    if not child then
        bad(usage)
    elseif child.is_closed then
        bad('popen: attempt to operate on a closed handle')
    end
    return child
end

local function status_of(child)
    local status = {}
    for name, value in pairs(child.status) do
        status[name] = value
    end
    return status
end

local function stream_state(child, name)
    if child.fds[name] == nil then
        return nil
    end
    return child.fds[name] and 'open' or 'closed'
end

local function copied(options)
    local result = {}
    for name, value in pairs(options) do
        result[name] = value
    end
    return result
end

local fields = {
    pid = function(child) return child.pid end,
    command = function(child) return child.command end,
    opts = function(child) return copied(child.opts) end,
    status = status_of,
    stdin = function(child) return stream_state(child, 'stdin') end,
    stdout = function(child) return stream_state(child, 'stdout') end,
    stderr = function(child) return stream_state(child, 'stderr') end,
}

function methods.info(handle)
    local child = child_of(handle, 'Bad params, use: ph:info()')
    local result = {}
    for name, get in pairs(fields) do
        result[name] = get(child)
    end
    return result
end

local function deadline_of(options, usage)
    local timeout = options and options.timeout
    if timeout == nil then
        return FOREVER
    elseif type(timeout) ~= 'number' or timeout < 0 then
        bad(usage)
    end
    return timeout
end

-- The descriptor of a stream.
local function fd_of(child, name)
    local fd = child.fds[name]
    if fd == nil then
        bad('popen: handle does not support the requested IO operation')
    elseif fd == false then
        bad('popen: attempt to operate on a closed file descriptor')
    end
    return fd
end

-- Tries until it need not wait any more: what `try` gives, or nil and an error object.
local function with_patience(child, name, way, timeout, try)
    local deadline = fiber.clock() + timeout
    while true do
        local fd = fd_of(child, name)
        local result = try(fd)
        if result ~= nil then
            return result
        end
        local code = errno()
        if code ~= errno.EAGAIN and code ~= errno.EINTR then
            return failure('SocketError', ('%s(%d): %s'):format(way == 'R' and 'read' or 'write', fd, errno.strerror(code)))
        end
        local left = deadline - fiber.clock()
        if left <= 0 then
            return failure('TimedOut', 'timed out')
        end
        socket.iowait(fd, way, left < FOREVER / 2 and left or nil)
        if child.is_closed then
            bad('popen: attempt to operate on a closed handle')
        end
    end
end

local READ_USAGE = 'Bad params, use: ph:read([{stdout = <boolean>, stderr = <boolean>, timeout = <number>}])'
local read_buffer = ffi.new('char[?]', READ_BYTES)

function methods.read(handle, options)
    local child = child_of(handle, READ_USAGE)
    if options ~= nil and type(options) ~= 'table' then
        bad(READ_USAGE)
    end
    options = options or {}
    for _, name in ipairs({ 'stdout', 'stderr' }) do
        if options[name] ~= nil and type(options[name]) ~= 'boolean' then
            bad(READ_USAGE)
        end
    end
    local timeout = deadline_of(options, READ_USAGE)
    if options.stdout and options.stderr then
        bad('popen: reading from both stdout and stderr at one call is not supported')
    end
    return with_patience(child, options.stderr and 'stderr' or 'stdout', 'R', timeout, function(fd)
        local count = tonumber(C.read(fd, read_buffer, READ_BYTES))
        return count >= 0 and ffi.string(read_buffer, count) or nil
    end)
end

local WRITE_USAGE = 'Bad params, use: ph:write(str[, {timeout = <number>}])'

function methods.write(handle, text, options)
    local child = child_of(handle, WRITE_USAGE)
    if type(text) ~= 'string' or options ~= nil and type(options) ~= 'table' then
        bad(WRITE_USAGE)
    end
    local timeout = deadline_of(options, WRITE_USAGE)
    local bytes, at = ffi.cast('const char *', text), 0
    fd_of(child, 'stdin')
    local result, reason
    while at < #text do
        result, reason = with_patience(child, 'stdin', 'W', timeout, function(fd)
            local count = tonumber(C.write(fd, bytes + at, #text - at))
            return count >= 0 and count or nil
        end)
        if result == nil then
            return nil, reason
        end
        at = at + result
    end
    return true
end

local SHUTDOWN_USAGE = 'Bad params, use: ph:shutdown({stdin = <boolean>, stdout = <boolean>, stderr = <boolean>})'

function methods.shutdown(handle, options)
    local child = child_of(handle, SHUTDOWN_USAGE)
    if options ~= nil and type(options) ~= 'table' then
        bad(SHUTDOWN_USAGE)
    end
    local wanted = {}
    for _, name in ipairs(STREAMS) do
        local value = options and options[name]
        if value ~= nil and type(value) ~= 'boolean' then
            bad(SHUTDOWN_USAGE)
        elseif value then
            wanted[#wanted + 1] = name
        end
    end
    if #wanted == 0 then
        bad('popen: neither stdin, stdout nor stderr is set')
    end
    for _, name in ipairs(wanted) do
        if child.fds[name] == nil then
            bad('popen: handle does not support the requested IO operation')
        end
    end
    for _, name in ipairs(wanted) do
        close_stream(child, name)
    end
    return true
end

local function signal(child, number)
    if child.status.state ~= 'alive' then
        return failure('SystemError', ('Attempt to send a signal %d to a process that does not exist anymore'):format(number))
    end
    if send(child, number) then
        return true
    end
    return failure('SystemError', ('Unable to kill %d signo %d'):format(child.pid, number))
end

function methods.signal(handle, number)
    local child = child_of(handle, 'Bad params, use: ph:signal(signo)')
    if type(number) ~= 'number' then
        bad('Bad params, use: ph:signal(signo)')
    end
    return signal(child, number)
end

function methods.terminate(handle)
    return signal(child_of(handle, 'Bad params, use: ph:terminate()'), SIGTERM)
end

function methods.kill(handle)
    return signal(child_of(handle, 'Bad params, use: ph:kill()'), SIGKILL)
end

function methods.wait(handle, timeout)
    local usage = 'Bad params, use: ph:wait()'
    local child = child_of(handle, usage)
    if timeout ~= nil and (type(timeout) ~= 'number' or timeout < 0) then
        bad('Bad params, use: ph:wait([timeout])')
    end
    local deadline = timeout and fiber.clock() + timeout
    while child.status.state == 'alive' do
        local left = deadline and deadline - fiber.clock()
        if left and left <= 0 then
            return failure('TimedOut', 'timed out')
        end
        child.ended:wait(left)
        fiber.testcancel()
        if child.is_closed then
            bad('popen: attempt to operate on a closed handle')
        end
    end
    return status_of(child)
end

function methods.close(handle)
    local child = type(handle) == 'userdata' and children[handle]
    if not child then
        bad('Bad params, use: ph:close()')
    end
    if not child.is_closed then
        child.is_closed = true
        let_go(child)
        child.ended:broadcast()
    end
    return true
end

local prototype = newproxy(true)
local metatable = getmetatable(prototype)
metatable.__index = function(handle, name)
    if methods[name] then
        return methods[name]
    end
    local child = children[handle]
    if not child then
        bad('Bad params, use: ph.<field>')
    elseif child.is_closed then
        bad('Attempt to index a closed popen handle')
    end
    return fields[name] and fields[name](child)
end
metatable.__serialize = function(handle) return methods.info(handle) end
metatable.__gc = function(handle)
    local child = children[handle]
    if child and not child.is_closed then
        child.is_closed = true
        let_go(child)
    end
end

-- The arguments in a line, for people.
local function command_of(arguments)
    local words = {}
    for at, word in ipairs(arguments) do
        words[at] = word:find(' ', 1, true) and "'" .. word .. "'" or word
    end
    return table.concat(words, ' ')
end

local function type_of(value, is_given)
    return is_given and type(value) or 'no value'
end

local function checked_options(given)
    local options = {
        stdin = 'inherit', stdout = 'inherit', stderr = 'inherit', shell = false, setsid = false, close_fds = true,
        restore_signals = true, group_signal = false, keep_child = false,
    }
    for name, default in pairs(options) do
        local value = given[name]
        if value ~= nil then
            if type(value) ~= type(default) then
                bad(NEW:format('opts.' .. name, type(default) .. ' or nil', type(value)))
            elseif type(default) == 'string' and not MODES[value] then
                bad(NEW:format('opts.' .. name, 'popen.opts.<...> constant', value))
            end
            options[name] = value
        end
    end
    if options.group_signal and not options.setsid then
        bad('popen: group signal without setting sid')
    end
    return options
end

local function checked_environment(given)
    if given == nil then
        return nil
    elseif type(given) ~= 'table' then
        bad(NEW:format('opts.env', 'table or nil', type(given)))
    end
    local pairs_of = {}
    for name, value in pairs(given) do
        if type(name) ~= 'string' or type(value) ~= 'string' then
            bad(NEW:format('opts.env', '{[<string>] = <string>, ...}', 'a non-string key or value'))
        end
        pairs_of[#pairs_of + 1] = name .. '=' .. value
    end
    return pairs_of
end

local function start(arguments, given)
    local options, environment = checked_options(given), checked_environment(given.env)
    local path = arguments[1] or ''
    if options.shell then
        path = '/bin/sh'
        arguments = { 'sh', '-c', unpack(arguments) }
    end
    -- A name alone is a file here, not one that is looked for.
    local pid, watch, stdin, stdout, stderr = internal.process_start(path, arguments, environment, options.stdin,
        options.stdout, options.stderr, options.setsid, options.close_fds, options.restore_signals)
    local child = {
        pid = pid, command = command_of(arguments), opts = options, status = { state = 'alive' }, ended = fiber.cond(),
        fds = { stdin = stdin, stdout = stdout, stderr = stderr },
    }
    if pid then
        running[pid] = child
        local fine, reason = pcall(fiber.new, await_end, child, watch)
        if not fine then
            -- Nobody would learn of its end.
            let_go(child)
            send(child, SIGKILL)
            running[pid] = nil
            C.close(watch)
            error(reason, 0)
        end
    else
        -- It has not become another program: that is its end.
        child.status = { state = 'exited', exit_code = #arguments == 0 and errno.EFAULT or watch }
        for _, name in ipairs(STREAMS) do
            child.fds[name] = options[name] == 'pipe' and false or nil
        end
    end
    local handle = newproxy(prototype)
    children[handle] = child
    return handle
end

local popen = {
    signal = signals,
    state = { ALIVE = 'alive', EXITED = 'exited', SIGNALED = 'signaled' },
    stream = { OPEN = 'open', CLOSED = 'closed' },
    opts = { INHERIT = 'inherit', DEVNULL = 'devnull', CLOSE = 'close', PIPE = 'pipe' },
}

function popen.new(...)
    local arguments, options = ...
    if type(arguments) ~= 'table' then
        bad(NEW:format('argv', 'table', type_of(arguments, select('#', ...) > 0)))
    elseif options ~= nil and type(options) ~= 'table' then
        bad(NEW:format('opts', 'table or nil', type(options)))
    end
    local list = {}
    for at, word in ipairs(arguments) do
        if type(word) ~= 'string' then
            bad(NEW:format(('argv[%d]'):format(at), 'string', type(word)))
        end
        list[at] = word
    end
    return start(list, options or {})
end

function popen.shell(...)
    local command, mode = ...
    local usage = 'popen.shell: wrong parameter "%s": expected %s, got %s'
    if type(command) ~= 'string' then
        bad(usage:format('command', 'string', type_of(command, select('#', ...) > 0)))
    elseif mode ~= nil and type(mode) ~= 'string' then
        bad(usage:format('mode', 'string or nil', type(mode)))
    end
    local options = { shell = true, setsid = true, group_signal = true }
    for letter in (mode or ''):gmatch('.') do
        local name = ({ r = 'stdout', w = 'stdin', R = 'stderr' })[letter]
        if name == nil then
            bad(usage:format('mode', "'r', 'w', 'R' or its combination", mode))
        end
        options[name] = 'pipe'
    end
    return start({ command }, options)
end

package.loaded.popen = popen
