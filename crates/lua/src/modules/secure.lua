-- Sockets with TLS: what their reads and writes do, and the parameters of addresses that ask for it.
--
-- A socket that has been made secure has `_secure`: the number of its session, and the sealed bytes that the system has not taken yet. The module
-- `socket` asks here before it reads or writes.
local internal = ...

local errno = require('errno')
local fiber = require('fiber')

local EPROTO = errno.EPROTO
-- Plain bytes that are sealed in one go.
local CHUNK_BYTES = 65536

-- Frees what belongs to a number when nobody refers to it any more.
local function guarded(number)
    local guard = newproxy(true)
    getmetatable(guard).__gc = function() internal.secure_forget(number) end
    return guard
end

local function failed(self, reason)
    self._errno, self._reason = EPROTO, reason
    errno(EPROTO)
end

-- Sends sealed bytes as far as the system takes them. True if none are left; else false, and nil if the connection is gone.
local function send_sealed(self, send)
    local state = self._secure
    local more = internal.secure_sealed(state.number)
    if more then
        state.sealed = state.sealed and state.sealed .. more or more
    end
    while state.sealed do
        local count = send(self, state.sealed)
        if count == nil then
            if self._errno == errno.EAGAIN or self._errno == errno.EINTR then
                return false
            end
            state.sealed = nil
            return nil
        end
        state.sealed = count < #state.sealed and state.sealed:sub(count + 1) or nil
    end
    return true
end

-- Plain bytes of a socket, at most so many: a text, empty at the end; nil with the system's number kept. `receive` and `send` are the plain calls.
function internal.secure_take(self, size, receive, send)
    local state = self._secure
    if size == 0 then
        return ''
    end
    while true do
        local plain, reason = internal.secure_read(state.number, size)
        -- Answers that the protocol itself gives.
        send_sealed(self, send)
        if plain then
            self._errno = nil
            return plain
        elseif reason then
            return failed(self, reason)
        end
        local sealed = receive(self)
        if sealed == nil then
            return nil
        end
        internal.secure_come(state.number, sealed)
    end
end

-- Takes plain bytes to be sent. How many it has taken; nil if the system takes nothing now, with its number kept. Nothing given sends what is left.
function internal.secure_put(self, text, send)
    local state = self._secure
    local is_sent = send_sealed(self, send)
    if not is_sent then
        return nil
    end
    if #text == 0 then
        return 0
    end
    local piece = #text > CHUNK_BYTES and text:sub(1, CHUNK_BYTES) or text
    local fine, reason = pcall(internal.secure_write, state.number, piece)
    if not fine then
        return failed(self, tostring(reason))
    end
    if send_sealed(self, send) == nil then
        return nil
    end
    self._errno = nil
    return #piece
end

-- True if sealed bytes wait for the system.
function internal.secure_has_sealed(self)
    return self._secure.sealed ~= nil
end

-- Says that nothing more comes.
function internal.secure_finish(self, send)
    pcall(internal.secure_end, self._secure.number)
    send_sealed(self, send)
end

function internal.secure_close(self, send)
    internal.secure_finish(self, send)
    internal.secure_forget(self._secure.number)
end

-- The settings that the parameters of an address ask for; nil if it asks for none. Raises what is wrong.
function internal.secure_of(is_server, query, parameters)
    local flat
    if type(parameters) == 'table' then
        flat = {}
        for name, value in pairs(parameters) do
            if type(value) == 'table' then
                value = value[#value]
            end
            flat[name] = type(value) == 'number' and tostring(value) or value
        end
    end
    local number = internal.secure_settings(is_server, query, flat)
    return number and { number = number, guard = guarded(number) }
end

-- The same for a client's options, which may have the parameters among them.
function internal.secure_of_options(options)
    local parameters = {}
    for name, value in pairs(options._params or {}) do
        parameters[name] = value
    end
    for name, value in pairs(options) do
        if name == 'transport' or type(name) == 'string' and name:match('^ssl_') then
            parameters[name] = value
        end
    end
    local fine, secure = pcall(internal.secure_of, false, options._query, parameters)
    if not fine then
        internal.fail('ILLEGAL_PARAMS', 'net.box: ' .. tostring(secure))
    end
    options._params, options._query = nil, nil
    return secure
end

-- The settings of a client of the web.
function internal.secure_for_web(...)
    local number = internal.secure_web_settings(...)
    return { number = number, guard = guarded(number) }
end

-- Shakes hands over a connected socket. True, or nil and why not.
function internal.secure_socket(socket, settings, host, timeout)
    local number = internal.secure_open(settings.number, host ~= 'unix/' and host or '')
    socket._secure = { number = number, guard = guarded(number) }
    local deadline = fiber.clock() + timeout
    local plain = internal.plain_socket
    while true do
        local is_done, reason = internal.secure_shake(number)
        local is_sent = send_sealed(socket, plain.send)
        if reason then
            return nil, reason
        elseif is_done and is_sent then
            return true
        end
        local left = deadline - fiber.clock()
        if left <= 0 then
            return nil, 'the TLS handshake has taken too long'
        end
        if is_sent == nil then
            return nil, 'Peer closed'
        elseif not is_sent then
            socket:writable(left)
        else
            local sealed = plain.receive(socket)
            if sealed then
                internal.secure_come(number, sealed)
            elseif socket._errno == errno.EAGAIN or socket._errno == errno.EINTR then
                socket:readable(left)
            else
                return nil, errno.strerror(socket._errno)
            end
        end
    end
end
