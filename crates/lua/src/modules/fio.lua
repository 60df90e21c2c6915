-- fio: paths, whole files, directories. File handles are plain and do not wait.
local internal = ...

local ffi = require('ffi')
local fio = {}

ffi.cdef[[
char *getcwd(char *buf, size_t size);
int chdir(const char *path);
int open(const char *path, int flags, ...);
int close(int fd);
long read(int fd, void *buf, size_t count);
long write(int fd, const void *buf, size_t count);
long pread(int fd, void *buf, size_t count, long offset);
long pwrite(int fd, const void *buf, size_t count, long offset);
long lseek(int fd, long offset, int whence);
int fsync(int fd);
int ftruncate(int fd, long length);
int rmdir(const char *path);
int mkdir(const char *path, unsigned int mode);
int symlink(const char *target, const char *path);
int link(const char *target, const char *path);
unsigned int umask(unsigned int mask);
long readlink(const char *path, char *buf, size_t size);
int chmod(const char *path, unsigned int mode);
char *mkdtemp(char *template);
int truncate(const char *path, long length);
int chown(const char *path, unsigned int owner, unsigned int group);
void sync(void);
int fio_utimensat(int fd, const char *path, const int64_t *times, int flags) __asm__("utimensat");
struct fio_passwd { char *name; char *password; unsigned int uid; unsigned int gid; };
struct fio_group { char *name; char *password; unsigned int gid; };
struct fio_passwd *fio_getpwnam(const char *name) __asm__("getpwnam");
struct fio_group *fio_getgrnam(const char *name) __asm__("getgrnam");
]]

local C = ffi.C

-- What a failed call returns: nil (or false) and an error object.
local function reason(text)
    return internal.values.make_error(0, 'SystemError', 'fio: ' .. text)
end

local function failed()
    return nil, reason(ffi.string(C.strerror(ffi.errno())))
end

local function refused()
    return false, reason(ffi.string(C.strerror(ffi.errno())))
end

-- The outcome of an operation on names.
local function outcome(ok, text)
    if ok then
        return true
    end
    return false, reason(text)
end

local function check_string(value, usage)
    if type(value) ~= 'string' then
        error('Usage: ' .. usage, 3)
    end
end

-- A name that a call is given; a number counts as its text.
local function name_of(value, usage)
    if type(value) == 'number' then
        return tostring(value)
    end
    if type(value) ~= 'string' then
        error(usage, 3)
    end
    return value
end

fio.c = {
    flag = {
        O_RDONLY = 0, O_WRONLY = 1, O_RDWR = 2, O_CREAT = 64, O_EXCL = 128, O_TRUNC = 512, O_APPEND = 1024, O_NONBLOCK = 2048,
        O_SYNC = 1052672,
    },
    mode = {
        S_IRWXU = 448, S_IRUSR = 256, S_IWUSR = 128, S_IXUSR = 64, S_IRWXG = 56, S_IRGRP = 32, S_IWGRP = 16, S_IXGRP = 8,
        S_IRWXO = 7, S_IROTH = 4, S_IWOTH = 2, S_IXOTH = 1,
    },
    seek = { SEEK_SET = 0, SEEK_CUR = 1, SEEK_END = 2 },
}

-- Paths -------------------------------------------------------------------------------------------------------------
function fio.basename(path, suffix)
    check_string(path, 'fio.basename(path[, suffix])')
    local name = path:match('([^/]*)$')
    if suffix ~= nil then
        -- Wherever it stands, as Tarantool.
        name = name:gsub((tostring(suffix):gsub('%W', '%%%0')), '')
    end
    return name
end

function fio.dirname(path)
    check_string(path, 'fio.dirname(path)')
    local stripped = path:gsub('/+$', '')
    if stripped == '' then
        return path:sub(1, 1) == '/' and '/' or '.'
    end
    local dir = stripped:match('^(.*)/[^/]*$')
    if dir == nil then
        return '.'
    end
    dir = dir:gsub('/+$', '')
    return dir == '' and '/' or dir
end

function fio.pathjoin(...)
    local parts = {}
    for i = 1, select('#', ...) do
        local part = select(i, ...)
        if part == nil then
            error(('fio.pathjoin(): undefined path part %d'):format(i), 2)
        end
        part = tostring(part)
        -- Empty parts in front do not make the path an absolute one.
        if part ~= '' or #parts > 0 then
            parts[#parts + 1] = part
        end
    end
    if #parts == 0 then
        return '.'
    end
    local path = table.concat(parts, '/'):gsub('/+', '/')
    if #path > 1 then
        path = path:gsub('/$', '')
    end
    return path
end

function fio.cwd()
    local buffer = ffi.new('char[4096]')
    if C.getcwd(buffer, 4096) == nil then
        return failed('.')
    end
    return ffi.string(buffer)
end

function fio.abspath(path)
    if path == nil then
        error('Usage: fio.abspath(path)', 2)
    end
    if path:sub(1, 1) ~= '/' then
        path = fio.cwd() .. '/' .. path
    end
    local parts = {}
    for part in path:gmatch('[^/]+') do
        if part == '..' then
            parts[#parts] = nil
        elseif part ~= '.' then
            parts[#parts + 1] = part
        end
    end
    return '/' .. table.concat(parts, '/')
end

fio.path = {}
local function kind_of(path)
    return internal.file_kind(path, true)
end
function fio.path.exists(path) return (kind_of(path)) ~= nil end
function fio.path.is_file(path) return kind_of(path) == 'file' end
function fio.path.is_dir(path) return kind_of(path) == 'directory' end
function fio.path.is_link(path) return internal.file_kind(path, false) == 'link' end
function fio.path.lexists(path) return (internal.file_kind(path, false)) ~= nil end

-- Directories and names ---------------------------------------------------------------------------------------------
function fio.listdir(path)
    check_string(path, 'fio.listdir(path)')
    local names, why = internal.file_operation('list', path)
    if names == nil then
        return nil, ("can't listdir %s: fio: %s"):format(path, why)
    end
    return names
end

function fio.mkdir(path, mode)
    path = name_of(path, 'Usage fio.mkdir(pathname[, mode])')
    if C.mkdir(path, mode or 511) ~= 0 then
        return refused()
    end
    return true
end

function fio.mktree(path, mode)
    check_string(path, 'fio.mktree(path[, mode])')
    local made = ''
    for part in fio.abspath(path):gmatch('[^/]+') do
        made = made .. '/' .. part
        local why
        if kind_of(made) == nil then
            -- Another process may make it at the same time.
            if C.mkdir(made, mode or 511) ~= 0 then
                why = kind_of(made) ~= 'directory' and ffi.string(C.strerror(ffi.errno()))
            end
        elseif kind_of(made) ~= 'directory' then
            why = 'File exists'
        end
        if why then
            return false, ('Error creating directory %s: %s'):format(made, why)
        end
    end
    return true
end

function fio.rmdir(path)
    path = name_of(path, 'Usage: fio.rmdir(pathname)')
    if C.rmdir(path) ~= 0 then
        return refused()
    end
    return true
end

function fio.unlink(path)
    path = name_of(path, 'Usage: fio.unlink(pathname)')
    return outcome(internal.file_operation('unlink', path))
end

function fio.rmtree(path)
    check_string(path, 'fio.rmtree(path)')
    path = fio.abspath(path)
    local names, why = fio.listdir(path)
    if names == nil then
        return nil, why
    end
    for _, name in ipairs(names) do
        local inner = fio.pathjoin(path, name)
        -- A link to a directory is a link: what it leads to stays.
        local remove = internal.file_kind(inner, false) == 'directory' and fio.rmtree or fio.unlink
        local ok, reason = remove(inner)
        if not ok then
            return ok, reason
        end
    end
    return fio.rmdir(path)
end

function fio.rename(from, to)
    from = name_of(from, 'Usage: fio.rename(oldpath, newpath)')
    to = name_of(to, 'Usage: fio.rename(oldpath, newpath)')
    return outcome(internal.file_operation('rename', from, to))
end

function fio.copyfile(from, to)
    check_string(from, 'fio.copyfile(from, to)')
    check_string(to, 'fio.copyfile(from, to)')
    if fio.path.is_dir(to) then
        to = fio.pathjoin(to, fio.basename(from))
    end
    local text, why = internal.file_read(from)
    local ok = text ~= nil
    if ok then
        ok, why = internal.file_operation('write', to, text)
    end
    if not ok then
        return false, ('failed to copy %s to %s: fio: %s'):format(from, to, why)
    end
    return true
end

function fio.copytree(from, to)
    check_string(from, 'fio.copytree(from, to)')
    check_string(to, 'fio.copytree(from, to)')
    local kind = kind_of(from)
    if kind == nil then
        return false, ('Directory %s does not exist'):format(from)
    end
    if kind ~= 'directory' then
        return false, 'Not a directory'
    end
    from, to = fio.abspath(from), fio.abspath(to)
    -- Listed before the copy is there, which may be within.
    local names, why = fio.listdir(from)
    if names == nil then
        return false, why
    end
    local ok
    ok, why = fio.mktree(to)
    for _, name in ipairs(names) do
        if not ok then
            break
        end
        local inner, copy = fio.pathjoin(from, name), fio.pathjoin(to, name)
        kind = internal.file_kind(inner, false)
        if kind == 'directory' then
            ok, why = fio.copytree(inner, copy)
        elseif kind == 'link' then
            ok, why = fio.readlink(inner)
            if ok then
                ok, why = fio.symlink(ok, copy)
            end
        else
            ok, why = fio.copyfile(inner, copy)
        end
    end
    if not ok then
        return false, why
    end
    return true
end

function fio.symlink(target, path)
    target, path = name_of(target, 'Usage: fio.symlink(target, linkpath)'), name_of(path, 'Usage: fio.symlink(target, linkpath)')
    if C.symlink(target, path) ~= 0 then
        return refused()
    end
    return true
end

function fio.link(target, path)
    target, path = name_of(target, 'Usage: fio.link(target, linkpath)'), name_of(path, 'Usage: fio.link(target, linkpath)')
    if C.link(target, path) ~= 0 then
        return refused()
    end
    return true
end

function fio.truncate(path, size)
    path = name_of(path, 'Usage: fio.truncate(pathname[, newlen])')
    if C.truncate(path, size or 0) ~= 0 then
        return refused()
    end
    return true
end

-- The working directory as what a path is relative to.
local AT_FDCWD = -100

-- Times of access and of change, in seconds: now, if none is given; both the same, if one is.
function fio.utime(path, accessed_at, changed_at)
    path = name_of(path, 'Usage: fio.utime(filepath[, atime[, mtime]])')
    local now = internal.clock_wall()
    accessed_at = accessed_at == nil and now or accessed_at
    changed_at = changed_at == nil and accessed_at or changed_at
    local times = ffi.new('int64_t[4]')
    for at, given in ipairs({ accessed_at, changed_at }) do
        if type(given) ~= 'number' or not (math.abs(given) < 2 ^ 62) then
            error(('fio.utime: %s should be a number'):format(at == 1 and 'atime' or 'mtime'), 2)
        end
        local seconds = math.floor(given)
        times[at * 2 - 2], times[at * 2 - 1] = seconds, math.min(math.floor((given - seconds) * 1e9 + 0.5), 999999999)
    end
    if C.fio_utimensat(AT_FDCWD, path, times, 0) ~= 0 then
        return refused()
    end
    return true
end

function fio.sync()
    C.sync()
    return true
end

function fio.umask(mask)
    if mask == nil then
        local old = C.umask(0)
        C.umask(old)
        return tonumber(old)
    end
    return tonumber(C.umask(mask))
end

function fio.readlink(path)
    path = name_of(path, 'Usage: fio.readlink(pathname)')
    local buffer = ffi.new('char[4096]')
    local size = C.readlink(path, buffer, 4096)
    if size < 0 then
        return failed(path)
    end
    return ffi.string(buffer, size)
end

function fio.chdir(path)
    check_string(path, 'fio.chdir(path)')
    return C.chdir(path) == 0
end

function fio.chmod(path, mode)
    path = name_of(path, 'Usage: fio.chmod(pathname, mode)')
    if mode == nil then
        error('Usage: fio.chmod(pathname, mode)', 2)
    end
    if C.chmod(path, mode) ~= 0 then
        return refused()
    end
    return true
end

-- Owner and group are numbers, or names that the machine knows.
function fio.chown(path, owner, group)
    local usage = 'Usage: fio.chown(pathname, owner, group)'
    path = name_of(path, usage)
    if owner == nil or group == nil then
        error(usage, 2)
    end
    -- Whatever a pointer of the program leads to is no name.
    if type(owner) == 'cdata' or type(group) == 'cdata' then
        error(usage, 2)
    end
    if type(owner) ~= 'number' then
        local found = C.fio_getpwnam(owner)
        if found == nil then
            return nil
        end
        owner = found.uid
    end
    if type(group) ~= 'number' then
        local found = C.fio_getgrnam(group)
        if found == nil then
            return nil
        end
        group = found.gid
    end
    if C.chown(path, owner, group) ~= 0 then
        return refused()
    end
    return true
end

function fio.tempdir()
    local base = (os.getenv('TMPDIR') or '/tmp') .. '/XXXXXX'
    local buffer = ffi.new('char[?]', #base + 1, base)
    if C.mkdtemp(buffer) == nil then
        return failed(base)
    end
    return ffi.string(buffer)
end

function fio.glob(pattern)
    pattern = name_of(pattern, 'Usage: fio.glob(pattern)')
    local dir = pattern:match('^(.*)/[^/]*$')
    local name = pattern:match('([^/]*)$')
    local expression = '^' .. name:gsub('[%^%$%(%)%%%.%[%]%+%-]', '%%%0'):gsub('%*', '.*'):gsub('%?', '.') .. '$'
    local found = {}
    for _, entry in ipairs(fio.listdir(dir == nil and '.' or dir == '' and '/' or dir) or {}) do
        if entry:match(expression) and (entry:sub(1, 1) ~= '.' or name:sub(1, 1) == '.') then
            found[#found + 1] = dir and dir .. '/' .. entry or entry
        end
    end
    table.sort(found)
    return found
end

local kinds = { file = 'is_reg', directory = 'is_dir', link = 'is_link' }
local function describe(path, follows_links)
    local kind, size, modified, mode, links = internal.file_kind(path, follows_links)
    if kind == nil then
        return nil, reason('No such file or directory')
    end
    local stat = { size = size, mtime = modified, mode = mode, nlink = links }
    for name, method in pairs(kinds) do
        stat[method] = function() return kind == name end
    end
    return stat
end

function fio.stat(path)
    path = name_of(path, 'Usage: fio.stat(pathname)')
    return describe(path, true)
end

function fio.lstat(path)
    path = name_of(path, 'Usage: fio.lstat(pathname)')
    return describe(path, false)
end

-- Open files --------------------------------------------------------------------------------------------------------
local file = {}
file.__index = file

function file:read(buffer_or_size, size)
    if type(buffer_or_size) == 'cdata' then
        local got = C.read(self.fh, buffer_or_size, size)
        if got < 0 then
            return failed(self.path)
        end
        return tonumber(got)
    end
    local wanted = buffer_or_size
    if wanted == nil then
        local stat = select(2, internal.file_kind(self.path, true)) or 0
        wanted = math.max(stat, 4096)
    end
    local buffer = ffi.new('char[?]', wanted)
    local got = C.read(self.fh, buffer, wanted)
    if got < 0 then
        return failed(self.path)
    end
    return ffi.string(buffer, got)
end

function file:write(text)
    local done = 0
    while done < #text do
        local put = C.write(self.fh, ffi.cast('const char *', text) + done, #text - done)
        if put < 0 then
            return refused()
        end
        done = done + tonumber(put)
    end
    return true
end

function file:pread(size, offset)
    local buffer = ffi.new('char[?]', size)
    local got = C.pread(self.fh, buffer, size, offset)
    if got < 0 then
        return failed(self.path)
    end
    return ffi.string(buffer, got)
end

function file:pwrite(text, offset)
    return C.pwrite(self.fh, text, #text, offset) == #text
end

function file:seek(offset, whence)
    local names = { SEEK_SET = 0, SEEK_CUR = 1, SEEK_END = 2 }
    local at = C.lseek(self.fh, offset or 0, names[whence] or whence or 0)
    if at < 0 then
        return failed(self.path)
    end
    return tonumber(at)
end

function file:truncate(size) return C.ftruncate(self.fh, size or 0) == 0 end
function file:fsync() return C.fsync(self.fh) == 0 end
file.fdatasync = file.fsync
function file:stat() return fio.stat(self.path) end
function file:close()
    if self.fh < 0 then
        return false
    end
    local ok = C.close(self.fh) == 0
    self.fh = -1
    return ok
end

function fio.open(path, flags, mode)
    check_string(path, 'fio.open(path[, flags[, mode]])')
    local bits = 0
    if type(flags) == 'number' then
        bits = flags
    elseif flags ~= nil and type(flags) ~= 'table' then
        flags = { flags }
    end
    if type(flags) == 'table' then
        for _, flag in pairs(flags) do
            if type(flag) ~= 'number' then
                local known = fio.c.flag[flag]
                if known == nil then
                    error(("fio.open(): unknown flag: %s"):format(tostring(flag)), 2)
                end
                flag = known
            end
            bits = bit.bor(bits, flag)
        end
    end
    if type(mode) == 'table' then
        local all = 0
        for _, name in pairs(mode) do
            local known = type(name) == 'number' and name or fio.c.mode[name]
            if known == nil then
                error(("fio.open(): unknown mode: %s"):format(tostring(name)), 2)
            end
            all = bit.bor(all, known)
        end
        mode = all
    elseif type(mode) == 'string' then
        error(("fio.open(): unknown mode: %s"):format(mode), 2)
    end
    local fd = C.open(path, bits, ffi.cast('int', mode or 438))
    if fd < 0 then
        return failed(path)
    end
    return setmetatable({ fh = fd, path = path }, file)
end

package.loaded.fio = fio
