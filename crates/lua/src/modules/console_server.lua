-- The console as a conversation: on a socket for whoever connects, or on the process's own terminal. Lines in, answers out.
--
-- Whoever reaches it is the administrator, as in Tarantool: a unix socket is open to its owner alone, and an address should be a local one.
local internal = ...

local ffi = require('ffi')
local errno = require('errno')
local fiber = require('fiber')
local socket = require('socket')
local uri = require('uri')
local yaml = require('yaml')
local console = require('console')

ffi.cdef[[
int isatty(int fd);
]]

local C = ffi.C

-- Longest text that a client may send before its end comes.
local TEXT_BYTES_MAX = 16 * 1024 * 1024
-- Lines of the greeting, without their ends.
local GREETING_COLUMNS = 63
-- Tables nested deeper are shown by their address.
local DEPTH_MAX = 64
local DEFAULT_SOCKET = '/tmp/tarantool-console.sock'
-- Until a connection to another console has answered.
local CONNECT_S = 10
-- Longest time for the TLS handshake of a client.
local HANDSHAKE_S = 10

local HELP = [[
To get help, see the pages in docs, or type 'help' for a few words.
To start the tutorial, type 'tutorial()' here.

Available backslash commands:

  \set language <language>   -- set language (lua)
  \set output <format>       -- set output format (lua[,line|block] or yaml)
  \set delimiter <delimiter> -- set expression delimiter
  \help                      -- show this screen
  \quit                      -- quit interactive console
]]

-- Answers as Lua ------------------------------------------------------------------------------------------------------------
local escapes = { ['"'] = '\\"', ['\\'] = '\\\\', ['\n'] = '\\n', ['\0'] = '\\0', ['\r'] = '\\r', ['\26'] = '\\026' }

local function quoted(text)
    return '"' .. text:gsub('["\\\n%z\r\26]', escapes) .. '"'
end

local lua_text

local function lua_table(value, is_block, depth, seen)
    if seen[value] or depth > DEPTH_MAX then
        return quoted(tostring(value))
    end
    seen[value] = true
    local parts, length, keys = {}, #value, {}
    for key in pairs(value) do
        keys[#keys + 1] = key
    end
    if #keys == length then
        keys = {}
        for i = 1, length do
            parts[i] = lua_text(value[i], is_block, depth + 1, seen)
        end
    end
    table.sort(keys, function(a, b)
        if type(a) == type(b) and (type(a) == 'number' or type(a) == 'string') then
            return a < b
        end
        return tostring(a) < tostring(b)
    end)
    for _, key in ipairs(keys) do
        local is_word = type(key) == 'string' and key:match('^[%a_][%w_]*$')
        local name = is_word and key or '[' .. lua_text(key, false, depth + 1, seen) .. ']'
        parts[#parts + 1] = name .. ' = ' .. lua_text(value[key], is_block, depth + 1, seen)
    end
    seen[value] = nil
    if #parts == 0 then
        return '{}'
    elseif not is_block then
        return '{' .. table.concat(parts, ', ') .. '}'
    end
    local margin = ('  '):rep(depth)
    return '{\n' .. margin .. '  ' .. table.concat(parts, ',\n' .. margin .. '  ') .. '\n' .. margin .. '}'
end

function lua_text(value, is_block, depth, seen)
    local kind = type(value)
    if kind == 'string' then
        return quoted(value)
    elseif kind == 'nil' or kind == 'number' or kind == 'boolean' then
        return tostring(value)
    elseif kind == 'cdata' then
        if value == nil then
            return 'box.NULL'
        elseif box.tuple.is(value) then
            return lua_table(value:totable(), is_block, depth, seen)
        elseif ffi.istype('int64_t', value) or ffi.istype('uint64_t', value) then
            return (tostring(value):gsub('U?LL$', ''))
        end
        return quoted(tostring(value))
    elseif kind ~= 'table' then
        return quoted(tostring(value))
    end
    local metatable = getmetatable(value)
    local serialize = type(metatable) == 'table' and metatable.__serialize or nil
    if type(serialize) == 'function' and depth <= DEPTH_MAX then
        return lua_text(serialize(value), is_block, depth + 1, seen)
    end
    return lua_table(value, is_block, depth, seen)
end

-- Forms of answers ----------------------------------------------------------------------------------------------------------
local default_output = { fmt = 'yaml' }

-- A form by its text, `yaml`, `lua` or `lua,block`; nil and what is wrong.
local function parse_output(text)
    if text == nil or text == '' then
        return nil, 'Specify output format: lua or yaml.'
    end
    local name, option = text:match('^([^,]+),(.+)$')
    name = name or text
    if name ~= 'lua' and name ~= 'yaml' then
        return nil, ('Invalid format "%s", supported languages: lua and yaml.'):format(name)
    elseif name == 'lua' and option ~= nil and option ~= 'line' and option ~= 'block' then
        return nil, ('Wrong option "%s", expecting: line or block.'):format(option)
    end
    return { fmt = name, opts = name == 'lua' and option or nil }
end

local formats = {}

function formats.yaml(_, ok, ...)
    if not ok then
        local reason = ...
        if reason == nil then
            reason = box.NULL
        end
        return console.yaml_of({ { error = reason } }, 1)
    end
    local values, count = { ... }, select('#', ...)
    for i = 1, count do
        if values[i] == nil then
            values[i] = box.NULL
        end
    end
    return console.yaml_of(values, count)
end

function formats.lua(options, ok, ...)
    local is_block = options == 'block'
    if not ok then
        local reason = ...
        if reason == nil then
            reason = box.NULL
        elseif ffi.istype('struct error', reason) then
            reason = reason.message
        end
        return lua_text({ error = reason }, is_block, 0, {}) .. ';'
    end
    local parts = {}
    for i = 1, select('#', ...) do
        parts[i] = lua_text((select(i, ...)), is_block, 0, {})
    end
    return table.concat(parts, ', ') .. ';'
end

local function show(repl, ok, ...)
    local output = repl.output
    local fine, text = pcall(formats[output.fmt], output.opts, ok, ...)
    if not fine then
        text = formats[output.fmt](output.opts, false, tostring(text))
    end
    return text
end

-- Commands --------------------------------------------------------------------------------------------------------------------
local setters = {}

function setters.language(_, value)
    if value == nil then
        return true, { language = 'lua' }
    elseif value == 'sql' then
        return false, 'SQL is not there yet'
    elseif value ~= 'lua' then
        return false, ('Invalid language "%s", supported languages: lua and sql.'):format(value)
    end
    return true, true
end

function setters.output(repl, value)
    local output, reason = parse_output(value)
    if output == nil then
        return false, reason
    end
    repl.output = output
    return true, true
end

function setters.delimiter(repl, value)
    repl.delimiter = value or ''
    return true
end
setters.lang, setters.l, setters.out, setters.o = setters.language, setters.language, setters.output, setters.output
setters.delim, setters.d = setters.delimiter, setters.delimiter

local function set(repl, text)
    local name, value = text:match('^%s*(%S+)%s*(.-)%s*$')
    if name == nil then
        return false, 'Invalid set syntax, type \\help for help'
    elseif setters[name] == nil then
        return false, 'Unknown parameter: ' .. name
    end
    return setters[name](repl, value ~= '' and value or nil)
end

local function quit(repl)
    repl.is_running = false
    return true
end

local function give_help()
    return true, { HELP }
end

local commands = { help = give_help, h = give_help, quit = quit, q = quit, set = set, s = set }

-- Runs an expression or statements.
local function run(text)
    local chunk, reason = loadstring('return ' .. text)
    if chunk == nil then
        chunk, reason = loadstring(text)
    end
    if chunk == nil then
        return false, reason
    end
    return pcall(chunk)
end

-- Does one text. Gives the answer as text.
local function execute(repl, text)
    local name, rest = text:match('^\\(%S+)(.*)$')
    if name == nil and text:sub(1, 1) ~= '\\' then
        return show(repl, run(text))
    end
    local command = commands[name]
    if command == nil then
        return show(repl, false, ('Invalid command %s. Type \\help for help.'):format(text))
    end
    return show(repl, command(repl, rest))
end

-- Another console or server, instead of this process ---------------------------------------------------------------------------
-- Asks a console by text. Gives its answer; nil if it is gone.
local function ask_text(remote, text)
    -- Lines of one text are one text there, too.
    if remote.socket:write('\\set delimiter \1\n') == nil or remote.socket:read('...\n', CONNECT_S) == nil
        or remote.socket:write(text .. '\1\n') == nil then
        return nil
    end
    local answer = remote.socket:read({ delimiter = '\n...\n', chunk = TEXT_BYTES_MAX })
    remote.socket:write('\\set delimiter\1\n')
    remote.socket:read('...\n', CONNECT_S)
    return answer
end

local function execute_remotely(repl, text)
    local answer = repl.remote.ask(text)
    if answer == nil or answer == '' then
        repl.remote.close()
        repl.remote, repl.prompt = nil, repl.own_prompt
        return show(repl, false, 'Connection is not established')
    end
    return answer
end

local function address_of(text, usage)
    local parsed = type(text) == 'number' and { service = tostring(text), host = '' }
        or type(text) == 'string' and uri.parse(text) or nil
    if parsed == nil then
        error(usage, 3)
    end
    if parsed.unix or parsed.host == 'unix/' then
        return 'unix/', parsed.unix or parsed.service, parsed
    end
    return parsed.host ~= nil and parsed.host ~= '' and parsed.host or '127.0.0.1', parsed.service, parsed
end

-- The conversation --------------------------------------------------------------------------------------------------------------
local on_start, on_client_disconnect

local function current()
    return fiber.self().storage.console
end

local function new_repl()
    return {
        is_running = true, delimiter = '', prompt = 'tarantool', own_prompt = 'tarantool',
        output = { fmt = default_output.fmt, opts = default_output.opts }, execute = execute,
        __index = { eval = execute },
    }
end

-- Reads texts and answers them until the other side or a command ends it.
local function converse(repl)
    fiber.self().storage.console = repl
    if on_start ~= nil then
        on_start(repl)
    end
    while repl.is_running do
        local text = repl:read()
        if text == nil then
            break
        end
        local is_command = text:sub(1, 1) == '\\'
        local answer = (repl.remote and not is_command and execute_remotely or execute)(repl, text)
        if not repl.is_running or not repl:print(answer) then
            break
        end
    end
    fiber.self().storage.console = nil
    if repl.remote then
        repl.remote.close()
    end
end

local function greeting()
    local function padded(text)
        return text .. (' '):rep(GREETING_COLUMNS - #text) .. '\n'
    end
    local version = require('tarantool').version:match('^%d+%.%d+%.%d+')
    return padded(('Tarantool %s (Lua console)'):format(version)) .. padded("type 'help' for interactive help")
end

local function client_read(repl)
    -- The session that `box.session` shows is this client's; what the previous text had left open is over.
    local ends = { repl.delimiter .. '\n', repl.delimiter .. '\r' }
    local text = repl.client:read({ delimiter = ends, chunk = TEXT_BYTES_MAX })
    if text == nil or text == '' then
        return nil
    end
    local last = text:sub(-#repl.delimiter - 1)
    if last ~= ends[1] and last ~= ends[2] then
        if #text == TEXT_BYTES_MAX then
            repl:print(show(repl, false, ('a text is longer than %d bytes'):format(TEXT_BYTES_MAX)))
        end
        return nil
    end
    return text:sub(1, -#repl.delimiter - 2)
end

local function client_print(repl, text)
    return repl.client:write(text) ~= nil
end

local function peer_of(client)
    local peer = client:peer()
    if peer == nil then
        return nil
    elseif peer.family == 'AF_UNIX' then
        return 'unix/:(socket)'
    elseif peer.family == 'AF_INET6' then
        return ('[%s]:%d'):format(peer.host, peer.port)
    end
    return ('%s:%d'):format(peer.host, peer.port)
end

local function serve_client(client)
    local id = internal.session_begin(peer_of(client))
    internal.session_fds[id] = client:fd()
    internal.values.session_event('on_connect')
    local repl = new_repl()
    repl.client, repl.read, repl.print = client, client_read, client_print
    local fine, reason = pcall(function()
        if client:write(greeting()) ~= nil then
            converse(repl)
        end
    end)
    if on_client_disconnect ~= nil then
        pcall(on_client_disconnect, repl)
    end
    internal.values.session_event('on_disconnect')
    internal.session_fds[id] = nil
    internal.session_end()
    if not fine then
        error(reason, 0)
    end
end

function console.listen(address)
    local host, service, parsed = 'unix/', DEFAULT_SOCKET, nil
    local parameters
    if type(address) == 'table' then
        address, parameters = address.uri or address[1], address.params
    end
    if address ~= nil then
        host, service, parsed = address_of(address, 'Usage: console.listen("[host:]port")')
    end
    if service == nil then
        error('Usage: console.listen("[host:]port")', 2)
    end
    local secure = internal.secure_of(true, parsed and parsed.query, parameters)
    local handler = serve_client
    if secure then
        handler = function(client)
            local fine, why = internal.secure_socket(client, secure, '', HANDSHAKE_S)
            if fine then
                return serve_client(client)
            end
            internal.log('warn', ('TLS handshake of a console with %s has failed: %s'):format(peer_of(client) or 'a client', why))
        end
    end
    -- A unix socket is its owner's from its first moment on.
    local mask = host == 'unix/' and C.umask(63) or nil
    local server = socket.tcp_server(host, service, { handler = handler, name = 'console' })
    local code = errno()
    if mask ~= nil then
        C.umask(mask)
    end
    if server == nil then
        error(('failed to create server %s:%s: %s'):format(host, service, errno.strerror(code)))
    end
    return server
end

-- The terminal ------------------------------------------------------------------------------------------------------------------
local input = { text = '' }
local input_buffer = ffi.new('char[4096]')

-- A line of standard input without its end; nil at its end.
local function read_line()
    while true do
        local line, rest = input.text:match('^([^\n]*)\n(.*)$')
        if line then
            input.text = rest
            return line
        end
        socket.iowait(0, 'R')
        local count = tonumber(C.read(0, input_buffer, 4096))
        if count > 0 then
            input.text = input.text .. ffi.string(input_buffer, count)
        elseif count == 0 then
            line, input.text = input.text, ''
            return line ~= '' and line or nil
        elseif errno() ~= errno.EAGAIN and errno() ~= errno.EINTR then
            return nil
        end
    end
end

local function terminal_read(repl)
    local text
    internal.write_out(repl.prompt .. '> ')
    while true do
        local line = read_line()
        if line == nil then
            return nil
        end
        text = text and text .. '\n' .. line or line
        if text:sub(1, 1) == '\\' then
            return text
        elseif repl.delimiter ~= '' then
            if text:sub(-#repl.delimiter) == repl.delimiter then
                return text:sub(1, -#repl.delimiter - 1)
            end
        elseif repl.remote or not console.is_incomplete(text) then
            return text
        end
        internal.write_out((' '):rep(#repl.prompt) .. '> ')
    end
end

local function terminal_print(_, text)
    internal.write_out(text .. '\n')
    return true
end

local is_started = false

function console.start()
    if is_started then
        error('console is already started', 2)
    end
    is_started = true
    local repl = new_repl()
    repl.read, repl.print = terminal_read, terminal_print
    local fine, reason = pcall(converse, repl)
    is_started = false
    if not fine then
        error(reason, 0)
    end
end

-- Goes on with another server: the texts of this console are run there.
function console.connect(address, options)
    local repl = current()
    if repl == nil then
        error('console.connect() need existing console', 2)
    end
    if address == nil then
        error("Usage: console.connect('[login:password@][host:]port')", 2)
    end
    local given, parameters = address, nil
    if type(address) == 'table' then
        given, parameters = address.uri or address[1], address.params
    end
    local host, service, parsed = address_of(given, "Usage: console.connect('[login:password@][host:]port')")
    options = options or {}
    local secure = internal.secure_of(false, parsed.query, parameters)
    local connection = socket.tcp_connect(host, service, options.timeout or CONNECT_S)
    if connection == nil then
        error(('Connection is not established: %s'):format(errno.strerror()), 2)
    end
    if secure then
        local fine, why = internal.secure_socket(connection, secure, host, options.timeout or CONNECT_S)
        if not fine then
            connection:close()
            error(('Connection is not established: %s'):format(why), 2)
        end
    end
    local hello = connection:read(128, options.timeout or CONNECT_S)
    if hello ~= nil and hello:match('%(Lua console%)') then
        repl.remote = {
            ask = function(text) return ask_text({ socket = connection }, text) end,
            close = function() connection:close() end,
        }
    else
        connection:close()
        local remote = require('net.box').connect(address, {
            user = options.user or parsed.login, password = options.password or parsed.password,
            connect_timeout = options.timeout or CONNECT_S,
        })
        if not remote:wait_connected(options.timeout or CONNECT_S) then
            local reason = remote.error
            remote:close()
            error(('Connection is not established: %s'):format(tostring(reason)), 2)
        end
        repl.remote = {
            ask = function(text)
                local fine, answer = pcall(remote.eval, remote, 'return require("console").eval(...)', { text })
                return fine and answer or show(repl, false, answer)
            end,
            close = function() remote:close() end,
        }
    end
    repl.prompt = ('%s:%s'):format(host, service)
    return true
end

-- Settings ------------------------------------------------------------------------------------------------------------------------
function console.on_start(handler)
    if handler ~= nil and type(handler) ~= 'function' then
        error('Wrong type of on_start hook: ' .. type(handler), 2)
    end
    on_start = handler
end

function console.on_client_disconnect(handler)
    if handler ~= nil and type(handler) ~= 'function' then
        error('Wrong type of on_client_disconnect hook: ' .. type(handler), 2)
    end
    on_client_disconnect = handler
end

function console.delimiter(delimiter)
    local repl = current()
    if repl == nil then
        error('console.delimiter(): need existing console', 2)
    elseif delimiter == nil then
        return repl.delimiter
    elseif type(delimiter) ~= 'string' then
        error('invalid delimiter', 2)
    end
    repl.delimiter = delimiter
end

-- Completion is the terminal's own.
function console.ac(is_on)
    if current() == nil then
        error('console.ac(): need existing console', 2)
    end
    current().is_completing = is_on and true or false
end

function console.completion_handler(text)
    return console.complete(text)
end

console.eos = { yaml = '\n...\n', lua = ';' }

function console.get_default_output()
    return { fmt = default_output.fmt, opts = default_output.opts }
end

function console.set_default_output(text)
    local output, reason = parse_output(text)
    if output == nil then
        error(reason, 2)
    end
    default_output = output
end

function console.eval(text)
    if text == nil then
        return nil
    end
    local repl = current() or new_repl()
    return show({ output = current() and repl.output or { fmt = 'yaml' } }, run(text))
end
