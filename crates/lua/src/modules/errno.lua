-- errno: numbers of errors of the operating system, their names and texts.
local ffi = require('ffi')

ffi.cdef[[
char *strerror(int errnum);
]]

local errno_codes = {
    EPERM = 1, ENOENT = 2, ESRCH = 3, EINTR = 4, EIO = 5, ENXIO = 6, E2BIG = 7, ENOEXEC = 8, EBADF = 9, ECHILD = 10,
    EAGAIN = 11, EWOULDBLOCK = 11, ENOMEM = 12, EACCES = 13, EFAULT = 14, EBUSY = 16, EEXIST = 17, EXDEV = 18,
    ENODEV = 19, ENOTDIR = 20, EISDIR = 21, EINVAL = 22, ENFILE = 23, EMFILE = 24, ENOTTY = 25, EFBIG = 27, ENOSPC = 28,
    ESPIPE = 29, EROFS = 30, EMLINK = 31, EPIPE = 32, EDOM = 33, ERANGE = 34, EDEADLK = 35, ENAMETOOLONG = 36,
    ENOSYS = 38, ENOTEMPTY = 39, ELOOP = 40, EPROTO = 71, EOVERFLOW = 75, EILSEQ = 84, ENOTSOCK = 88, EMSGSIZE = 90,
    EPROTOTYPE = 91, ENOPROTOOPT = 92, EPROTONOSUPPORT = 93, ENOTSUP = 95, EOPNOTSUPP = 95, EAFNOSUPPORT = 97,
    EADDRINUSE = 98, EADDRNOTAVAIL = 99, ENETDOWN = 100, ENETUNREACH = 101, ENETRESET = 102, ECONNABORTED = 103,
    ECONNRESET = 104, ENOBUFS = 105, EISCONN = 106, ENOTCONN = 107, ETIMEDOUT = 110, ECONNREFUSED = 111,
    EHOSTUNREACH = 113, EALREADY = 114, EINPROGRESS = 115, ESTALE = 116, EDQUOT = 122, ECANCELED = 125,
}
package.loaded.errno = setmetatable({
    strerror = function(code)
        -- What is no number fails as nil does, in the call of C.
        if code == nil then
            code = ffi.errno()
        else
            code = tonumber(code)
        end
        return ffi.string(ffi.C.strerror(code))
    end,
}, {
    __index = errno_codes,
    __call = function(_, code)
        if code == nil then
            return ffi.errno()
        end
        return ffi.errno(code)
    end,
})
