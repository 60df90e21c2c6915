-- pwd: users and groups of the machine.
local ffi = require('ffi')

ffi.cdef[[
struct lycosa_passwd { char *name; char *secret; uint32_t uid; uint32_t gid; char *gecos; char *home; char *shell; };
struct lycosa_group { char *name; char *secret; uint32_t gid; char **members; };
struct lycosa_passwd *lycosa_getpwnam(const char *name) __asm__("getpwnam");
struct lycosa_passwd *lycosa_getpwuid(uint32_t uid) __asm__("getpwuid");
struct lycosa_passwd *lycosa_getpwent(void) __asm__("getpwent");
struct lycosa_group *lycosa_getgrnam(const char *name) __asm__("getgrnam");
struct lycosa_group *lycosa_getgrgid(uint32_t gid) __asm__("getgrgid");
struct lycosa_group *lycosa_getgrent(void) __asm__("getgrent");
void lycosa_setpwent(void) __asm__("setpwent");
void lycosa_endpwent(void) __asm__("endpwent");
void lycosa_setgrent(void) __asm__("setgrent");
void lycosa_endgrent(void) __asm__("endgrent");
uint32_t lycosa_getuid(void) __asm__("getuid");
uint32_t lycosa_getgid(void) __asm__("getgid");
]]

local C = ffi.C

local function group_of(found)
    local members = {}
    while found.members[#members] ~= nil do
        members[#members + 1] = ffi.string(found.members[#members])
    end
    return { id = tonumber(found.gid), name = ffi.string(found.name), members = members }
end

local function find(what, kind, own, by_name, by_number)
    if what == nil then
        what = own()
    end
    if type(what) == 'string' then
        what = by_name(what)
    elseif type(what) == 'number' then
        what = by_number(what)
    else
        error(("Bad type of %s (expected 'string'/'number')"):format(kind))
    end
    return what ~= nil and what or nil
end

local function getgr(what)
    local found = find(what, 'gid', C.lycosa_getgid, C.lycosa_getgrnam, C.lycosa_getgrgid)
    if found then
        return group_of(found)
    end
    return nil
end

-- Copied before the next call of C, which uses the same memory.
local function user_of(found)
    local result = {
        name = ffi.string(found.name), id = tonumber(found.uid), workdir = ffi.string(found.home), shell = ffi.string(found.shell),
    }
    result.group = getgr(tonumber(found.gid))
    return result
end

local function getpw(what)
    local found = find(what, 'uid', C.lycosa_getuid, C.lycosa_getpwnam, C.lycosa_getpwuid)
    if found then
        return user_of(found)
    end
    return nil
end

local function all(begin, take, finish, make)
    local result = {}
    begin()
    while true do
        local found = take()
        if found == nil then
            break
        end
        result[#result + 1] = make(found)
    end
    finish()
    return result
end

package.loaded.pwd = {
    getpw = getpw, getgr = getgr,
    getpwall = function() return all(C.lycosa_setpwent, C.lycosa_getpwent, C.lycosa_endpwent, user_of) end,
    getgrall = function() return all(C.lycosa_setgrent, C.lycosa_getgrent, C.lycosa_endgrent, group_of) end,
}
