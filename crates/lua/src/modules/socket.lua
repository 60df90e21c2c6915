-- socket: sockets of the system. What never waits is a call of C through ffi; `iowait` lets other fibers run until a descriptor is ready.
--
-- Every descriptor of a socket is non-blocking. A method that has failed returns nil or false and keeps the system's number in the socket.
local internal = ...

local ffi = require('ffi')
local bit = require('bit')
local fiber = require('fiber')
local errno = require('errno')

ffi.cdef[[
typedef int32_t pid_t;
typedef uint32_t mode_t;
typedef uint32_t uid_t;
typedef uint32_t gid_t;
typedef uint32_t socklen_t;
typedef intptr_t ssize_t;
typedef int64_t off_t;
typedef int64_t time_t;
struct lycosa_descriptor { int fd; };
struct lycosa_pollfd { int fd; short events; short revents; };
struct lycosa_linger { int active; int timeout; };
struct lycosa_servent { char *name; char **aliases; int port; char *protocol; };
struct lycosa_protoent { char *name; char **aliases; int number; };
int socket(int domain, int type, int protocol);
int connect(int fd, const char *address, socklen_t length);
int bind(int fd, const char *address, socklen_t length);
int listen(int fd, int backlog);
int accept4(int fd, char *address, socklen_t *length, int flags);
int getsockname(int fd, char *address, socklen_t *length);
int getpeername(int fd, char *address, socklen_t *length);
int setsockopt(int fd, int level, int name, const void *value, socklen_t length);
int getsockopt(int fd, int level, int name, void *value, socklen_t *length);
ssize_t send(int fd, const void *bytes, size_t length, int flags);
ssize_t recv(int fd, void *bytes, size_t length, int flags);
ssize_t sendto(int fd, const void *bytes, size_t length, int flags, const char *address, socklen_t address_length);
ssize_t recvfrom(int fd, void *bytes, size_t length, int flags, char *address, socklen_t *address_length);
int shutdown(int fd, int how);
int fcntl(int fd, int command, ...);
int poll(struct lycosa_pollfd *fds, unsigned long count, int timeout);
int inet_pton(int family, const char *text, void *address);
const char *inet_ntop(int family, const void *address, char *text, socklen_t length);
int unlink(const char *path);
struct lycosa_servent *lycosa_getservbyname(const char *name, const char *protocol) __asm__("getservbyname");
struct lycosa_protoent *lycosa_getprotobyname(const char *name) __asm__("getprotobyname");
]]

local C = ffi.C

-- Time-outs from here on never come.
local FOREVER = 500 * 365 * 86400
-- Read from a socket in one go.
local CHUNK_BYTES = 65536
-- Connections that wait to be accepted, unless a server says otherwise.
local BACKLOG = 128
-- A server that has no descriptors left for a connection tries again after this long.
local RETRY_S = 0.05

-- Numbers of the system, by name --------------------------------------------------------------------------------------
local DOMAIN = { PF_UNSPEC = 0, PF_UNIX = 1, PF_LOCAL = 1, PF_INET = 2, PF_INET6 = 10 }
for name, number in pairs({ UNSPEC = 0, UNIX = 1, LOCAL = 1, INET = 2, INET6 = 10 }) do
    DOMAIN['AF_' .. name] = number
end
local SO_TYPE = { SOCK_STREAM = 1, SOCK_DGRAM = 2, SOCK_RAW = 3, SOCK_RDM = 4, SOCK_SEQPACKET = 5 }
local SOL_SOCKET = 1
local SEND_FLAGS = {
    MSG_OOB = 1, MSG_PEEK = 2, MSG_DONTROUTE = 4, MSG_CTRUNC = 8, MSG_TRUNC = 32, MSG_DONTWAIT = 64, MSG_EOR = 128,
    MSG_WAITALL = 256, MSG_CONFIRM = 2048, MSG_ERRQUEUE = 8192, MSG_NOSIGNAL = 16384, MSG_MORE = 32768,
    MSG_CMSG_CLOEXEC = 0x40000000,
}
local AI_FLAGS = {
    AI_PASSIVE = 1, AI_CANONNAME = 2, AI_NUMERICHOST = 4, AI_V4MAPPED = 8, AI_ALL = 16, AI_ADDRCONFIG = 32,
    AI_NUMERICSERV = 1024,
}
-- Options: number, type (1 number, 2 text), what may be done (1 get, 2 set, 3 both).
local SO_OPT = {
    SO_DEBUG = { 1, 1, 3 }, SO_REUSEADDR = { 2, 1, 3 }, SO_TYPE = { 3, 1, 1 }, SO_ERROR = { 4, 1, 1 },
    SO_DONTROUTE = { 5, 1, 3 }, SO_BROADCAST = { 6, 1, 3 }, SO_SNDBUF = { 7, 1, 3 }, SO_RCVBUF = { 8, 1, 3 },
    SO_KEEPALIVE = { 9, 1, 3 }, SO_OOBINLINE = { 10, 1, 3 }, SO_PRIORITY = { 12, 1, 3 }, SO_LINGER = { 13, 0, 0 },
    SO_REUSEPORT = { 15, 1, 3 }, SO_PASSCRED = { 16, 1, 3 }, SO_PEERCRED = { 17, 0, 0 }, SO_RCVLOWAT = { 18, 1, 3 },
    SO_SNDLOWAT = { 19, 1, 3 }, SO_RCVTIMEO = { 20, 0, 0 }, SO_SNDTIMEO = { 21, 0, 0 }, SO_BINDTODEVICE = { 25, 2, 2 },
    SO_ACCEPTCONN = { 30, 1, 1 }, SO_PEERSEC = { 31, 2, 1 }, SO_SNDBUFFORCE = { 32, 1, 3 }, SO_RCVBUFFORCE = { 33, 1, 3 },
    SO_PASSSEC = { 34, 1, 3 }, SO_MARK = { 36, 1, 3 }, SO_PROTOCOL = { 38, 1, 1 }, SO_DOMAIN = { 39, 1, 1 },
}
local SHUTDOWN = {
    R = 0, W = 1, RW = 2, READ = 0, WRITE = 1, RDWR = 2, [0] = 0, [1] = 1, [2] = 2,
    SHUT_RD = 0, SHUT_WR = 1, SHUT_RDWR = 2,
}
local SOL_TCP, TCP_OPT = 6, { TCP_NODELAY = 1, TCP_KEEPCNT = 6, TCP_KEEPIDLE = 4, TCP_KEEPINTVL = 5 }
local SOCK_NONBLOCK, SOCK_CLOEXEC = 2048, 524288
local F_GETFL, F_SETFL, O_NONBLOCK = 3, 4, 2048
local POLLIN, POLLOUT = 1, 4

local function names_of(numbers, prefix)
    local result = {}
    for name, number in pairs(numbers) do
        if name:sub(1, #prefix) == prefix and name ~= prefix .. 'LOCAL' then
            result[number] = name
        end
    end
    return result
end
local family_names, type_names = names_of(DOMAIN, 'AF_'), names_of(SO_TYPE, 'SOCK_')

local protocols = setmetatable({ tcp = 6, udp = 17, icmp = 1, ip = 0, ['ipv6-icmp'] = 58 }, {
    __index = function(self, name)
        if type(name) ~= 'string' then
            return nil
        end
        local found = C.lycosa_getprotobyname(name)
        if found == nil then
            errno(errno.EPROTOTYPE)
            return nil
        end
        self[name] = found.number
        return found.number
    end,
})
local protocol_names = { [6] = 'tcp', [17] = 'udp', [1] = 'icmp' }

-- A number by its name, or a number as it is.
local function number_of(numbers, name)
    local number = numbers[name]
    if number == nil and type(name) == 'number' then
        number = name
    end
    return number
end

-- Addresses -------------------------------------------------------------------------------------------------------------
local ADDRESS_BYTES = 128
local address_buffer = ffi.new('char[?]', ADDRESS_BYTES)
local length_buffer = ffi.new('socklen_t[1]')
local text_buffer = ffi.new('char[64]')

local function put_family(bytes, family)
    ffi.fill(bytes, ADDRESS_BYTES)
    ffi.cast('uint16_t *', bytes)[0] = family
end

local function put_port(bytes, port)
    bytes[2], bytes[3] = bit.rshift(port, 8), bit.band(port, 255)
end

-- Puts an address without a name into the buffer. Returns its length and family; nil if it is no address.
local function put_address(host, port)
    if host == 'unix/' then
        port = tostring(port)
        if #port > 107 or #port == 0 then
            return nil
        end
        put_family(address_buffer, DOMAIN.AF_UNIX)
        ffi.copy(address_buffer + 2, port, #port)
        return 2 + #port + 1, DOMAIN.AF_UNIX
    end
    port = tonumber(port)
    if type(host) ~= 'string' or port == nil or port < 0 or port > 65535 then
        return nil
    end
    put_family(address_buffer, DOMAIN.AF_INET)
    put_port(address_buffer, port)
    if C.inet_pton(DOMAIN.AF_INET, host, address_buffer + 4) == 1 then
        return 16, DOMAIN.AF_INET
    end
    put_family(address_buffer, DOMAIN.AF_INET6)
    put_port(address_buffer, port)
    if C.inet_pton(DOMAIN.AF_INET6, host, address_buffer + 8) == 1 then
        return 28, DOMAIN.AF_INET6
    end
    return nil
end

-- The address in the buffer as a table.
local function read_address()
    local length = tonumber(length_buffer[0])
    if length < 2 then
        return nil
    end
    local family = ffi.cast('uint16_t *', address_buffer)[0]
    local result = { family = family_names[family] or family }
    if family == DOMAIN.AF_UNIX then
        local path = ffi.string(address_buffer + 2, math.min(length, ADDRESS_BYTES) - 2):match('^%Z*')
        result.host, result.port = 'unix/', path
    elseif family == DOMAIN.AF_INET or family == DOMAIN.AF_INET6 then
        local bytes = ffi.cast('uint8_t *', address_buffer)
        C.inet_ntop(family, address_buffer + (family == DOMAIN.AF_INET and 4 or 8), text_buffer, 64)
        result.host, result.port = ffi.string(text_buffer), bytes[2] * 256 + bytes[3]
    end
    return result
end

-- Sockets ---------------------------------------------------------------------------------------------------------------
local methods = {}
local metatable

local descriptor_type = ffi.metatype('struct lycosa_descriptor', {
    __gc = function(self)
        if self.fd >= 0 then
            internal.descriptor_forget(self.fd)
            C.close(self.fd)
            self.fd = -1
        end
    end,
})

local function descriptor_of(socket)
    local descriptor = type(socket) == 'table' and rawget(socket, '_gc_socket')
    if not descriptor then
        error('Usage: socket:method()', 3)
    end
    if descriptor.fd < 0 then
        error('attempt to use closed socket', 3)
    end
    return descriptor.fd
end

local function wrap(fd, kind)
    return setmetatable({ _gc_socket = descriptor_type(fd), itype = kind, buffer__ = '' }, metatable)
end

-- What came of a call that gives -1 for a failure.
local function noted(self, result)
    if result < 0 then
        self._errno = errno()
        return false
    end
    self._errno = nil
    return true
end

local function is_transient(code)
    return code == errno.EAGAIN or code == errno.EINTR
end

-- What waits may be for, as bits, and as letters.
local event_bits = { R = 1, W = 2, RW = 3, WR = 3, [''] = 0 }
local event_texts = { [0] = '', [1] = 'R', [2] = 'W', [3] = 'RW' }
local polled = ffi.new('struct lycosa_pollfd[1]')

local function poll_now(fd, events)
    polled[0].fd, polled[0].revents = fd, 0
    polled[0].events = (bit.band(events, 1) ~= 0 and POLLIN or 0) + (bit.band(events, 2) ~= 0 and POLLOUT or 0)
    if C.poll(polled, 1, 0) <= 0 then
        return 0
    end
    local found = polled[0].revents
    -- Errors and ends are found by trying.
    if bit.band(found, bit.bnot(POLLIN + POLLOUT)) ~= 0 then
        return events
    end
    return (bit.band(found, POLLIN) ~= 0 and 1 or 0) + (bit.band(found, POLLOUT) ~= 0 and 2 or 0)
end

local function wait_bits(fd, events, timeout)
    local found = poll_now(fd, events)
    if found ~= 0 or timeout ~= nil and timeout <= 0 then
        fiber.yield()
        return found ~= 0 and found or poll_now(fd, events)
    end
    if fd < 0 then
        fiber.sleep(timeout or FOREVER)
        return 0
    end
    return internal.descriptor_wait(fd, events, timeout)
end

local function iowait(fd, events, timeout)
    if fd == nil and events == nil then
        fiber.sleep(math.max(tonumber(timeout) or FOREVER, 0))
        return
    end
    local bits = type(events) == 'string' and event_bits[events] or events
    if type(fd) ~= 'number' and fd ~= nil or type(bits) ~= 'number' or bits < 0 or bits > 3 then
        error("Usage: iowait(fd, 1 | 'r' | 2 | 'w' | 3 | 'rw' [, timeout])", 2)
    end
    timeout = tonumber(timeout)
    local found = wait_bits(fd or -1, bits, timeout)
    return type(events) == 'string' and event_texts[found] or found
end

local function create(domain, kind, protocol)
    local fd = C.socket(domain, kind + SOCK_NONBLOCK + SOCK_CLOEXEC, protocol or 0)
    if fd < 0 then
        return nil
    end
    return wrap(fd, kind)
end

local function create_by_names(domain, kind, protocol)
    local domain_number, kind_number = number_of(DOMAIN, domain), number_of(SO_TYPE, kind)
    if domain_number == nil or kind_number == nil then
        errno(errno.EINVAL)
        return nil
    end
    local protocol_number = number_of(protocols, protocol or 0)
    if protocol_number == nil then
        errno(errno.EINVAL)
        return nil
    end
    return create(domain_number, kind_number, protocol_number)
end

function methods.fd(self)
    return descriptor_of(self)
end

function methods.errno(self)
    return self._errno or 0
end

function methods.error(self)
    if self._reason and self._errno == errno.EPROTO then
        return self._reason
    end
    return self._errno and errno.strerror(self._errno) or nil
end

function methods.close(self)
    local fd = descriptor_of(self)
    if self._secure then
        internal.secure_close(self, internal.plain_socket.send)
        self._secure = nil
    end
    self._gc_socket.fd = -1
    internal.descriptor_forget(fd)
    self.buffer__ = ''
    return noted(self, C.close(fd))
end

function methods.sysconnect(self, host, port)
    local fd = descriptor_of(self)
    local length = put_address(host, port)
    if length == nil then
        self._errno = errno.EINVAL
        errno(self._errno)
        return false
    end
    return noted(self, C.connect(fd, address_buffer, length))
end

local function written(self, count)
    count = tonumber(count)
    if count < 0 then
        self._errno = errno()
        return nil
    end
    self._errno = nil
    return count
end

local function check_octets(octets, usage)
    if type(octets) ~= 'string' then
        error('Usage: ' .. usage, 3)
    end
end

-- syswrite(octets) or syswrite(char *, bytes)
function methods.syswrite(self, octets, size)
    local fd = descriptor_of(self)
    if self._secure then
        if type(octets) == 'cdata' then
            octets = ffi.string(ffi.cast('const char *', octets), math.min(size, CHUNK_BYTES))
        end
        return internal.secure_put(self, octets, internal.plain_socket.send)
    end
    if type(octets) == 'cdata' then
        return written(self, C.send(fd, ffi.cast('const char *', octets), size, SEND_FLAGS.MSG_NOSIGNAL))
    end
    check_octets(octets, 'socket:syswrite(data)')
    local count = C.send(fd, octets, #octets, SEND_FLAGS.MSG_NOSIGNAL)
    if count < 0 and errno() == errno.ENOTSOCK then
        count = C.write(fd, octets, #octets)
    end
    return written(self, count)
end

local chunk_buffer = ffi.new('char[?]', CHUNK_BYTES)

-- Bytes of a socket, at most so many; nil and the number of the error kept.
local function take(self, fd, size, flags)
    if self._secure then
        return internal.secure_take(self, size, internal.plain_socket.receive, internal.plain_socket.send)
    end
    local buffer = chunk_buffer
    if size > CHUNK_BYTES then
        buffer = ffi.new('char[?]', size)
    end
    local count = tonumber(C.recv(fd, buffer, size, flags))
    if count < 0 then
        self._errno = errno()
        return nil
    end
    self._errno = nil
    return ffi.string(buffer, count)
end

-- What sockets with TLS are over: bytes as they are.
internal.plain_socket = {
    send = function(self, octets)
        local count = tonumber(C.send(self._gc_socket.fd, octets, #octets, SEND_FLAGS.MSG_NOSIGNAL))
        self._errno = count < 0 and errno() or nil
        return count >= 0 and count or nil
    end,
    receive = function(self)
        local count = tonumber(C.recv(self._gc_socket.fd, chunk_buffer, CHUNK_BYTES, 0))
        self._errno = count < 0 and errno() or nil
        return count >= 0 and ffi.string(chunk_buffer, count) or nil
    end,
}

-- sysread(bytes) or sysread(char *, bytes)
function methods.sysread(self, first, second)
    local fd = descriptor_of(self)
    if type(first) == 'cdata' then
        if self._secure then
            local text = take(self, fd, second, 0)
            if text == nil then
                return nil
            end
            ffi.copy(first, text, #text)
            return #text
        end
        return written(self, C.recv(fd, ffi.cast('char *', first), second, 0))
    end
    local size = first or CHUNK_BYTES
    if type(size) ~= 'number' or size < 0 then
        error('socket:sysread(): size can not be negative', 2)
    end
    return take(self, fd, size, 0)
end

function methods.nonblock(self, is_nonblocking)
    local fd = descriptor_of(self)
    local flags = C.fcntl(fd, F_GETFL)
    if flags < 0 then
        self._errno = errno()
        return nil
    end
    if is_nonblocking == nil then
        self._errno = nil
        return bit.band(flags, O_NONBLOCK) ~= 0
    end
    flags = is_nonblocking and bit.bor(flags, O_NONBLOCK) or bit.band(flags, bit.bnot(O_NONBLOCK))
    if C.fcntl(fd, F_SETFL, ffi.cast('int', flags)) < 0 then
        self._errno = errno()
        return nil
    end
    self._errno = nil
    return is_nonblocking and true or false
end

local function wait_for(self, events, timeout)
    local fd = descriptor_of(self)
    self._errno = nil
    return wait_bits(fd, events, timeout and timeout < FOREVER and timeout or nil)
end

function methods.readable(self, timeout)
    descriptor_of(self)
    return wait_for(self, 1, timeout) ~= 0
end

function methods.writable(self, timeout)
    descriptor_of(self)
    return wait_for(self, 2, timeout) ~= 0
end

function methods.wait(self, timeout)
    descriptor_of(self)
    return event_texts[wait_for(self, 3, timeout)]
end

function methods.listen(self, backlog)
    return noted(self, C.listen(descriptor_of(self), backlog or BACKLOG))
end

function methods.bind(self, host, port)
    local fd = descriptor_of(self)
    local length = put_address(host, port or 0)
    if length == nil then
        self._errno = errno.EINVAL
        errno(self._errno)
        return false
    end
    return noted(self, C.bind(fd, address_buffer, length))
end

function methods.shutdown(self, how)
    local fd = descriptor_of(self)
    local number = SHUTDOWN[how]
    if number == nil then
        self._errno = errno.EINVAL
        return false
    end
    if self._secure and number ~= SHUTDOWN.R then
        internal.secure_finish(self, internal.plain_socket.send)
    end
    return noted(self, C.shutdown(fd, number))
end

-- The number of an option and what may be done with it.
local function option_of(level, name)
    if type(level) == 'string' then
        level = level == 'SOL_SOCKET' and SOL_SOCKET or protocols[level:match('^SOL_(.*)$') and level:sub(5):lower() or level]
    end
    if level == SOL_TCP then
        local number = number_of(TCP_OPT, name)
        return level, number, number and 1, 3
    elseif level ~= SOL_SOCKET then
        return level, type(name) == 'number' and name or nil, 1, 3
    end
    local option = SO_OPT[name]
    if option == nil and type(name) == 'number' then
        return level, name, 1, 3
    end
    return level, option and option[1], option and option[2], option and option[3]
end

local int_buffer = ffi.new('int[1]')

function methods.setsockopt(self, level, name, value)
    local fd = descriptor_of(self)
    local level_number, number, kind, rights = option_of(level, name)
    if level_number == nil or number == nil then
        self._errno = errno.EINVAL
        errno(self._errno)
        if level_number == SOL_SOCKET then
            error(('Unknown socket option name: %s'):format(tostring(name)), 2)
        end
        return false
    end
    if value == nil then
        error('Missing value for setsockopt', 2)
    end
    if bit.band(rights, 2) == 0 then
        error(('Socket option %s is read only'):format(name), 2)
    end
    if type(value) == 'boolean' then
        value = value and 1 or 0
    end
    if kind == 1 then
        value = tonumber(value)
        if value == nil then
            error('Wrong value type', 2)
        end
        int_buffer[0] = value
        return noted(self, C.setsockopt(fd, level_number, number, int_buffer, 4))
    end
    value = tostring(value)
    return noted(self, C.setsockopt(fd, level_number, number, value, #value))
end

function methods.getsockopt(self, level, name)
    local fd = descriptor_of(self)
    local level_number, number, kind, rights = option_of(level, name)
    if level_number == nil or number == nil then
        self._errno = errno.EINVAL
        errno(self._errno)
        if level_number == SOL_SOCKET then
            error(('Unknown socket option name: %s'):format(tostring(name)), 2)
        end
        return nil
    end
    if bit.band(rights, 1) == 0 then
        error(('Socket option %s is write only'):format(name), 2)
    end
    if kind == 1 then
        length_buffer[0] = 4
        if not noted(self, C.getsockopt(fd, level_number, number, int_buffer, length_buffer)) then
            return nil
        end
        return tonumber(int_buffer[0])
    end
    length_buffer[0] = 256
    if not noted(self, C.getsockopt(fd, level_number, number, chunk_buffer, length_buffer)) then
        return nil
    end
    return ffi.string(chunk_buffer, length_buffer[0])
end

function methods.linger(self, active, timeout)
    local fd = descriptor_of(self)
    local linger = ffi.new('struct lycosa_linger')
    if active == nil then
        length_buffer[0] = ffi.sizeof(linger)
        if not noted(self, C.getsockopt(fd, SOL_SOCKET, SO_OPT.SO_LINGER[1], linger, length_buffer)) then
            return nil
        end
        return linger.active ~= 0, linger.timeout
    end
    linger.active, linger.timeout = active and 1 or 0, timeout or 0
    if not noted(self, C.setsockopt(fd, SOL_SOCKET, SO_OPT.SO_LINGER[1], linger, ffi.sizeof(linger))) then
        return nil
    end
    return active and true or false, timeout or 0
end

function methods.accept(self)
    local server = descriptor_of(self)
    length_buffer[0] = ADDRESS_BYTES
    local fd = C.accept4(server, address_buffer, length_buffer, SOCK_NONBLOCK + SOCK_CLOEXEC)
    if fd < 0 then
        self._errno = errno()
        return nil
    end
    self._errno = nil
    local from = read_address() or { host = 'unix/', port = '', family = 'AF_UNIX' }
    return wrap(fd, self.itype), from
end

-- The name or the peer of a descriptor, with its type.
local function described(self, get)
    local fd = descriptor_of(self)
    length_buffer[0] = ADDRESS_BYTES
    if get(fd, address_buffer, length_buffer) < 0 then
        self._errno = errno()
        return nil
    end
    self._errno = nil
    local result = read_address() or { family = 'AF_UNIX', host = 'unix/', port = '' }
    length_buffer[0] = 4
    if C.getsockopt(fd, SOL_SOCKET, SO_OPT.SO_TYPE[1], int_buffer, length_buffer) == 0 then
        result.type = type_names[int_buffer[0]] or int_buffer[0]
    end
    length_buffer[0] = 4
    if C.getsockopt(fd, SOL_SOCKET, SO_OPT.SO_PROTOCOL[1], int_buffer, length_buffer) == 0 then
        result.protocol = protocol_names[int_buffer[0]] or int_buffer[0]
    end
    return result
end

function methods.name(self)
    descriptor_of(self)
    return described(self, C.getsockname)
end

function methods.peer(self)
    descriptor_of(self)
    return described(self, C.getpeername)
end

-- Reading ---------------------------------------------------------------------------------------------------------------
-- The end of the first delimiter in a text from a place on; the earliest one, and of two at one place the first given.
local function find_end(text, from, delimiters)
    local first, last
    for _, delimiter in ipairs(delimiters) do
        local start, stop = text:find(delimiter, from, true)
        if start and stop >= start and (first == nil or start < first) then
            first, last = start, stop
        end
    end
    return last
end

-- Reads up to a delimiter or so many bytes. What was read and is not asked for yet stays in `buffer__`.
local function read_until(self, limit, delimiters, timeout)
    local fd = descriptor_of(self)
    self._errno = nil
    local longest = 0
    for _, delimiter in ipairs(delimiters) do
        longest = math.max(longest, #delimiter)
    end
    if limit == 0 then
        return ''
    end
    local pieces, total = {}, 0
    local tail, behind_tail = '', 0
    local deadline = timeout and timeout < FOREVER and fiber.clock() + timeout or nil

    -- Takes a piece; gives the result as soon as there is one.
    local function add(piece)
        pieces[#pieces + 1] = piece
        total = total + #piece
        local stop
        if longest > 0 then
            local window = tail .. piece
            local found = find_end(window, 1, delimiters)
            stop = found and found + behind_tail or nil
            local kept = math.min(longest - 1, #window)
            behind_tail = behind_tail + #window - kept
            tail = kept > 0 and window:sub(-kept) or ''
        end
        if stop == nil and limit <= total or stop ~= nil and stop > limit then
            stop = limit
        end
        if stop then
            local all = table.concat(pieces)
            self.buffer__ = all:sub(stop + 1)
            return all:sub(1, stop)
        end
    end

    -- Keeps what has come for the next call.
    local function keep()
        self.buffer__ = table.concat(pieces)
    end

    local buffered = self.buffer__
    self.buffer__ = ''
    if #buffered > 0 then
        local result = add(buffered)
        if result then
            return result
        end
    end
    while true do
        -- Closed by another fiber meanwhile.
        if self._gc_socket.fd ~= fd then
            keep()
            self._errno = errno.EBADF
            errno(self._errno)
            return nil
        end
        local piece = take(self, fd, CHUNK_BYTES, 0)
        if piece ~= nil then
            if #piece == 0 then
                local all = table.concat(pieces)
                self.buffer__ = ''
                return all
            end
            local result = add(piece)
            if result then
                return result
            end
        elseif not is_transient(self._errno) then
            local code = self._errno
            keep()
            errno(code)
            return nil
        else
            local left = deadline and deadline - fiber.clock() or nil
            local fine, found = true, 0
            if left == nil or left > 0 then
                fine, found = pcall(wait_bits, fd, 1, left)
            end
            if not fine then
                keep()
                error(found, 0)
            end
            if found == 0 and deadline and deadline <= fiber.clock() then
                keep()
                self._errno = errno.ETIMEDOUT
                errno(self._errno)
                return nil
            end
        end
    end
end

local READ_USAGE = 'Usage: s:read(delimiter|chunk|{delimiter = x, chunk = x}, timeout)'

function methods.read(self, what, timeout)
    descriptor_of(self)
    if type(what) == 'number' then
        if what < 0 then
            error('socket:read(): limit can not be negative', 2)
        end
        return read_until(self, what, {}, timeout)
    elseif type(what) == 'string' then
        return read_until(self, 4294967295, { what }, timeout)
    elseif type(what) ~= 'table' then
        error(READ_USAGE, 2)
    end
    local limit = what.chunk or what.size or 4294967295
    local delimiters = what.delimiter or what.line or {}
    if type(delimiters) == 'string' then
        delimiters = { delimiters }
    end
    if type(limit) ~= 'number' or type(delimiters) ~= 'table' then
        error(READ_USAGE, 2)
    end
    return read_until(self, limit, delimiters, timeout)
end

function methods.write(self, octets, timeout)
    descriptor_of(self)
    self._errno = nil
    if #octets == 0 then
        return 0
    end
    local deadline = timeout and timeout < FOREVER and fiber.clock() + timeout or nil
    local bytes, at = ffi.cast('const char *', octets), 0
    while true do
        local count = methods.syswrite(self, bytes + at, #octets - at)
        if count == nil then
            if not is_transient(self._errno) then
                return nil
            end
        else
            at = at + count
            if at == #octets and not (self._secure and internal.secure_has_sealed(self)) then
                return at
            end
        end
        local left = deadline and deadline - fiber.clock() or nil
        if left and left <= 0 or wait_bits(descriptor_of(self), 2, left) == 0 then
            break
        end
        if self._gc_socket.fd < 0 then
            self._errno = errno.EBADF
            errno(self._errno)
            return nil
        end
    end
    self._errno = errno.ETIMEDOUT
    errno(self._errno)
    return nil
end

local function flags_of(flags)
    if flags == nil then
        return 0
    elseif type(flags) == 'table' then
        local sum = 0
        for _, name in ipairs(flags) do
            local number = number_of(SEND_FLAGS, name)
            if number == nil then
                return nil
            end
            sum = bit.bor(sum, number)
        end
        return sum
    end
    return number_of(SEND_FLAGS, flags)
end

function methods.send(self, octets, flags)
    local fd = descriptor_of(self)
    check_octets(octets, 'socket:send(octets[, flags])')
    if self._secure then
        return methods.syswrite(self, octets)
    end
    local number = flags_of(flags)
    if number == nil then
        self._errno = errno.EINVAL
        return nil
    end
    return written(self, C.send(fd, octets, #octets, bit.bor(number, SEND_FLAGS.MSG_NOSIGNAL)))
end

-- How much to read when nobody says: what is there for a datagram.
local function size_of(fd, size, is_secure)
    if size ~= nil then
        return size
    elseif is_secure then
        return CHUNK_BYTES
    end
    local count = tonumber(C.recv(fd, nil, 0, SEND_FLAGS.MSG_PEEK + SEND_FLAGS.MSG_TRUNC))
    return count > 0 and count or 512
end

function methods.recv(self, size, flags)
    local fd = descriptor_of(self)
    local number = flags_of(flags)
    if number == nil then
        self._errno = errno.EINVAL
        return nil
    end
    return take(self, fd, size_of(fd, size, self._secure), number)
end

function methods.recvfrom(self, size, flags)
    local fd = descriptor_of(self)
    local number = flags_of(flags)
    if number == nil then
        self._errno = errno.EINVAL
        return nil
    end
    size = size_of(fd, size)
    local buffer = size > CHUNK_BYTES and ffi.new('char[?]', size) or chunk_buffer
    length_buffer[0] = ADDRESS_BYTES
    local count = tonumber(C.recvfrom(fd, buffer, size, number, address_buffer, length_buffer))
    if count < 0 then
        self._errno = errno()
        return nil
    end
    self._errno = nil
    return ffi.string(buffer, count), read_address()
end

function methods.sendto(self, host, port, octets, flags)
    local fd = descriptor_of(self)
    check_octets(octets, 'socket:sendto(host, port, octets[, flags])')
    local length, number = put_address(host, port), flags_of(flags)
    if length == nil or number == nil then
        self._errno = errno.EINVAL
        errno(self._errno)
        return nil
    end
    return written(self, C.sendto(fd, octets, #octets, bit.bor(number, SEND_FLAGS.MSG_NOSIGNAL), address_buffer, length))
end

local function text_of(address)
    if address.family == 'AF_UNIX' then
        return 'unix/:' .. (address.port == '' and '(socket)' or address.port)
    elseif address.family == 'AF_INET6' then
        return ('[%s]:%d'):format(address.host, address.port)
    end
    return ('%s:%d'):format(address.host, address.port)
end

metatable = {
    __index = methods,
    __tostring = function(self)
        local fd = self._gc_socket.fd
        local text = ('fd %d'):format(fd)
        if fd < 0 then
            return text
        end
        local before = self._errno
        local name, peer = methods.name(self), methods.peer(self)
        self._errno = before
        if name then
            text = text .. ', aka ' .. text_of(name)
        end
        if peer then
            text = text .. ', peer ' .. text_of(peer)
        end
        return text
    end,
    __serialize = function(self)
        local fd = self._gc_socket.fd
        if fd < 0 then
            return { fd = fd }
        end
        local before = self._errno
        local result = { fd = fd, name = methods.name(self), peer = methods.peer(self) }
        self._errno = before
        return result
    end,
}

-- Names -----------------------------------------------------------------------------------------------------------------
local default_protocols = { [1] = 'tcp', [2] = 'udp' }

local function port_of(port)
    if port == nil or port == '' then
        return 0
    end
    local number = tonumber(port)
    if number then
        return number
    end
    -- What a table says that it is in words need not be a string.
    if type(port) ~= 'string' then
        return nil
    end
    local service = C.lycosa_getservbyname(port, nil)
    return service ~= nil and tonumber(bit.rshift(bit.bswap(service.port), 16)) or nil
end

local function hosts_of(host, is_passive, timeout)
    if host == nil or host == '' then
        return is_passive and { '0.0.0.0', '::' } or { '::1', '127.0.0.1' }
    end
    if put_address(host, 0) then
        return { host }
    end
    if #host > 255 or host:find('[%z%s]') then
        return nil, 'no such name'
    end
    return internal.resolve(host, timeout)
end

-- getaddrinfo(host, port[, timeout][, options]): the addresses of a name, or nil and an error object.
local function getaddrinfo(host, port, timeout, options)
    if type(timeout) == 'table' and options == nil then
        timeout, options = nil, timeout
    end
    options = options or {}
    local flags = options.flags or {}
    if type(flags) ~= 'table' then
        flags = { flags }
    end
    local is_passive = false
    for _, flag in ipairs(flags) do
        local number = number_of(AI_FLAGS, flag)
        if number == nil then
            errno(errno.EINVAL)
            return nil
        end
        is_passive = is_passive or bit.band(number, AI_FLAGS.AI_PASSIVE) ~= 0
    end
    local kind, family = options.type, options.family or options.domain
    if kind ~= nil then
        kind = number_of(SO_TYPE, kind)
    end
    if family ~= nil then
        family = number_of(DOMAIN, family)
    end
    local protocol = options.protocol
    if protocol ~= nil then
        protocol = number_of(protocols, protocol)
    end
    if options.type ~= nil and kind == nil or (options.family or options.domain) ~= nil and family == nil
        or options.protocol ~= nil and protocol == nil then
        errno(errno.EINVAL)
        return nil
    end
    if host == 'unix/' then
        return { { host = host, port = port, family = 'AF_UNIX', type = type_names[kind or 1] } }
    end
    local number = port_of(port)
    local hosts, reason
    if number == nil or number < 0 or number > 65535 then
        reason = 'Servname not supported for ai_socktype'
    else
        hosts, reason = hosts_of(host, is_passive, timeout)
    end
    if hosts == nil then
        errno(reason and errno.EIO or errno.ETIMEDOUT)
        local text = 'getaddrinfo: ' .. (reason or 'timed out')
        return nil, internal.values.make_error(0, reason and 'SystemError' or 'TimedOut', text)
    end
    local result = {}
    for _, found in ipairs(hosts) do
        local _, found_family = put_address(found, number)
        for each = 1, 3 do
            local own = default_protocols[each]
            local is_wanted = (kind == nil or kind == each) and (family == nil or family == 0 or family == found_family)
                and (protocol == nil or protocol == 0 or own == nil or protocols[own] == protocol)
            if is_wanted and found_family then
                result[#result + 1] = {
                    host = found, port = number, family = family_names[found_family], type = type_names[each],
                    protocol = own or protocol_names[protocol] or 0,
                }
            end
        end
    end
    return result
end

-- Connecting and serving --------------------------------------------------------------------------------------------------
-- A connection to one address; nil with errno if there is none.
local function connect_to(address, deadline)
    local socket = create_by_names(address.family, address.type or 'SOCK_STREAM', address.protocol or 0)
    if socket == nil then
        return nil
    end
    local function give_up(code)
        methods.close(socket)
        errno(code)
        return nil
    end
    if methods.sysconnect(socket, address.host, address.port) then
        return socket
    end
    if socket._errno ~= errno.EINPROGRESS then
        return give_up(socket._errno)
    end
    local left = deadline and deadline - fiber.clock() or nil
    if left and left <= 0 or wait_bits(socket._gc_socket.fd, 2, left) == 0 then
        return give_up(errno.ETIMEDOUT)
    end
    local code = methods.getsockopt(socket, 'SOL_SOCKET', 'SO_ERROR')
    if code ~= 0 then
        return give_up(code or socket._errno)
    end
    socket._errno = nil
    return socket
end

local function tcp_connect(host, port, timeout)
    local deadline = timeout and timeout < FOREVER and fiber.clock() + timeout or nil
    if host == 'unix/' then
        return connect_to({ host = host, port = port, family = 'AF_UNIX' }, deadline)
    end
    local addresses, reason = getaddrinfo(host, port, timeout, { type = 'SOCK_STREAM', protocol = 'tcp' })
    if addresses == nil then
        return nil, reason
    end
    errno(errno.EINVAL)
    local code = errno.EINVAL
    for _, address in ipairs(addresses) do
        local socket = connect_to(address, deadline)
        if socket then
            return socket
        end
        code = errno()
        if deadline and deadline <= fiber.clock() then
            code = errno.ETIMEDOUT
            break
        end
    end
    errno(code)
    return nil
end

-- One connection of a server.
local function serve_client(handler, client, from)
    local fine, reason = pcall(handler, client, from)
    if client._gc_socket.fd >= 0 then
        methods.close(client)
    end
    if not fine then
        error(reason, 0)
    end
end

local function serve(server, options, address)
    fiber.name(('%s/%s:%s'):format(options.name or 'server', address.host, address.port), { truncate = true })
    while server._gc_socket.fd >= 0 do
        local client, from = methods.accept(server)
        if client then
            local fine, reason = pcall(function()
                local handling = fiber.new(serve_client, options.handler, client, from)
                handling:name(options.name or 'client', { truncate = true })
            end)
            if not fine then
                internal.log('error', 'socket: no fiber for a connection: ' .. tostring(reason))
                methods.close(client)
            end
        elseif is_transient(server._errno) then
            wait_bits(server._gc_socket.fd, 1)
        elseif server._errno == errno.EMFILE or server._errno == errno.ENFILE or server._errno == errno.ENOMEM
            or server._errno == errno.ENOBUFS then
            fiber.sleep(RETRY_S)
        elseif server._errno ~= errno.ECONNABORTED and server._errno ~= errno.EPROTO then
            break
        end
    end
end

-- True if nobody serves the unix socket any more: its file may go.
local function is_left_behind(path)
    local probe = create(DOMAIN.AF_UNIX, SO_TYPE.SOCK_STREAM)
    if probe == nil then
        return false
    end
    local is_refused = not methods.sysconnect(probe, 'unix/', path) and probe._errno == errno.ECONNREFUSED
    methods.close(probe)
    return is_refused
end

local function listen_at(address, options)
    local server = create_by_names(address.family, address.type or 'SOCK_STREAM', address.protocol or 0)
    if server == nil then
        return nil
    end
    local backlog
    if options.prepare then
        backlog = options.prepare(server)
    else
        methods.setsockopt(server, 'SOL_SOCKET', 'SO_REUSEADDR', true)
    end
    local is_bound = methods.bind(server, address.host, address.port)
    if not is_bound and server._errno == errno.EADDRINUSE and address.family == 'AF_UNIX' and is_left_behind(address.port) then
        C.unlink(address.port)
        is_bound = methods.bind(server, address.host, address.port)
    end
    if not is_bound or not methods.listen(server, type(backlog) == 'number' and backlog or BACKLOG) then
        local code = server._errno
        methods.close(server)
        errno(code)
        return nil
    end
    return server
end

local function tcp_server(host, port, options, timeout)
    if type(options) == 'function' then
        options = { handler = options }
    end
    if type(options) ~= 'table' or type(options.handler) ~= 'function'
        or options.prepare ~= nil and type(options.prepare) ~= 'function' then
        error('Usage: socket.tcp_server(host, port, handler | opts)', 2)
    end
    local hints = { type = 'SOCK_STREAM', protocol = 'tcp', flags = 'AI_PASSIVE' }
    local addresses, reason = getaddrinfo(host, port, timeout, hints)
    if addresses == nil then
        return nil, reason
    end
    local code = errno.EINVAL
    for _, address in ipairs(addresses) do
        local server = listen_at(address, options)
        if server then
            fiber.new(serve, server, options, address)
            return server, address
        end
        code = errno()
    end
    errno(code)
    return nil
end

package.loaded.socket = setmetatable({
    iowait = iowait, getaddrinfo = getaddrinfo, tcp_connect = tcp_connect, tcp_server = tcp_server,
    internal = {
        DOMAIN = DOMAIN, SO_TYPE = SO_TYPE, SO_OPT = SO_OPT, SOL_SOCKET = SOL_SOCKET, SEND_FLAGS = SEND_FLAGS,
        AI_FLAGS = AI_FLAGS, protocols = protocols, iowait = iowait,
    },
}, {
    __call = function(_, ...) return create_by_names(...) end,
})
