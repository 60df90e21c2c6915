-- digest: hashes, checksums, base64, random bytes.
local internal = ...

local ffi = require('ffi')

local digest = {}
for _, name in ipairs({ 'sha1', 'sha224', 'sha256', 'sha384', 'sha512', 'md5' }) do
    local function hash(text)
        if type(text) ~= 'string' then
            error(("Usage: digest.%s(string)"):format(name), 2)
        end
        return internal.digest(name, text)
    end
    digest[name] = hash
    digest[name .. '_hex'] = function(text)
        if type(text) ~= 'string' then
            error(("Usage: digest.%s_hex(string)"):format(name), 2)
        end
        return internal.digest(name, text):hex()
    end
end

function digest.base64_encode(text, options)
    if type(text) ~= 'string' then
        error('Usage: digest.base64_encode(string[, table])', 2)
    end
    options = options == nil and {} or options
    if type(options) ~= 'table' then
        error('Usage: digest.base64_encode(string[, table])', 2)
    end
    local encoded = internal.base64_encode(text, options.urlsafe or false)
    if options.urlsafe or options.nowrap then
        return options.nopad and encoded:gsub('=+$', '') or encoded
    end
    -- Lines of 72 characters, as the format's oldest readers want.
    local lines = {}
    for at = 1, #encoded, 72 do
        lines[#lines + 1] = encoded:sub(at, at + 71)
    end
    local wrapped = table.concat(lines, '\n')
    if options.nopad then
        wrapped = wrapped:gsub('=+$', '')
    end
    return wrapped
end

function digest.base64_decode(text)
    if type(text) ~= 'string' then
        error('Usage: digest.base64_decode(string)', 2)
    end
    return internal.base64_decode(text)
end

function digest.urandom(count)
    if count == nil then
        error('Usage: digest.urandom(len)', 2)
    end
    return internal.random_bytes(count)
end

-- CRC-32C without the usual inversions, as Tarantool has it.
local function crc32_update(crc, text)
    if type(text) ~= 'string' then
        error('Usage: digest.crc32_update(string)', 2)
    end
    local start = tonumber(crc)
    if start == nil then
        error("bad argument #1 to '?' (cannot convert 'nil' to 'unsigned int')", 2)
    end
    -- Only the lowest 32 bits count.
    return internal.crc32(tonumber(ffi.cast('uint32_t', start)), text)
end
digest.crc32_update = crc32_update
digest.crc32 = setmetatable({
    crc_begin = 4294967295,
    new = function()
        local state = { value = 4294967295 }
        return {
            update = function(_, text) state.value = crc32_update(state.value, text) end,
            result = function() return state.value end,
            clear = function() state.value = 4294967295 end,
        }
    end,
}, {
    __call = function(_, text)
        if type(text) ~= 'string' then
            error('Usage digest.crc32(string)', 2)
        end
        return crc32_update(4294967295, text)
    end,
})

-- guava's consistent hash of a 64-bit number over buckets.
function digest.guava(state, buckets)
    -- Numbers alone: a cast takes pointers and texts, too.
    local function check(value, position, type_name)
        local kind = type(value)
        if kind == 'cdata' then
            kind = ffi.istype('void *', value) and 'void *' or tonumber(value) == nil and 'struct' or 'number'
            kind = ffi.istype('struct tuple', value) and 'struct tuple' or kind
        end
        if kind ~= 'number' and kind ~= 'boolean' then
            local text = "bad argument #%d to '?' (cannot convert '%s' to '%s')"
            error(text:format(position, kind, type_name), 3)
        end
    end
    check(state, 1, 'uint64_t')
    check(buckets, 2, 'int')
    buckets = tonumber(ffi.cast('int32_t', buckets))
    -- A number too large for 64 bits counts as none.
    local is_too_large = type(state) == 'number' and state >= 2^64
    local seed = is_too_large and 0ULL or ffi.cast('uint64_t', state)
    local candidate, next_bucket = 0, 0
    while true do
        seed = seed * 2862933555777941757ULL + 1
        local shifted = tonumber(bit.rshift(seed, 33)) + 1
        next_bucket = math.floor((candidate + 1) * (2147483648 / shifted))
        if next_bucket < 0 or next_bucket >= buckets then
            return candidate
        end
        candidate = next_bucket
    end
end

function digest.pbkdf2(password, salt, iterations, length)
    if type(password) ~= 'string' or type(salt) ~= 'string' then
        error('Usage: digest.pbkdf2(pass, salt[,iters][,digest_len])', 2)
    end
    if iterations ~= nil and type(iterations) ~= 'number' then
        error('iters must be a number', 2)
    end
    if length ~= nil and type(length) ~= 'number' then
        error('digest_len must be a number', 2)
    end
    if length ~= nil and length > 128 then
        error('too big digest size', 2)
    end
    if iterations ~= nil and iterations < 1 or length ~= nil and length < 0 then
        return nil
    end
    -- Texts for C end at their first zero.
    password, salt = password:match('^[^%z]*'), salt:match('^[^%z]*')
    return internal.pbkdf2(password, salt, iterations or 100000, length or 128)
end

function digest.pbkdf2_hex(...)
    return string.hex(digest.pbkdf2(...))
end

-- MurmurHash3 of 32 bits. A product of two numbers of 32 bits has more than a double holds: it is made of halves.
local MURMUR_SEED = 13
local murmur = {}
murmur.__index = murmur

local function times(a, b)
    local low, high = bit.band(a, 0xffff), bit.rshift(a, 16)
    return bit.tobit(low * bit.band(b, 0xffff) + bit.lshift(bit.tobit(low * bit.rshift(b, 16) % 65536 + high * bit.band(b, 0xffff) % 65536), 16))
end

local function mixed(block)
    return times(bit.rol(times(block, 0xcc9e2d51), 15), 0x1b873593)
end

local function murmur_of(text, seed)
    local hash, length = bit.tobit(seed), #text
    for at = 1, length - length % 4, 4 do
        local a, b, c, d = text:byte(at, at + 3)
        hash = bit.bxor(hash, mixed(bit.bor(a, bit.lshift(b, 8), bit.lshift(c, 16), bit.lshift(d, 24))))
        hash = bit.tobit(times(bit.rol(hash, 13), 5) + 0xe6546b64)
        if at % 1048576 == 1 then
            internal.check_stack()
        end
    end
    local rest = 0
    for at = length, length - length % 4 + 1, -1 do
        rest = bit.bor(bit.lshift(rest, 8), text:byte(at))
    end
    if length % 4 > 0 then
        hash = bit.bxor(hash, mixed(rest))
    end
    hash = bit.bxor(hash, length)
    hash = times(bit.bxor(hash, bit.rshift(hash, 16)), 0x85ebca6b)
    hash = times(bit.bxor(hash, bit.rshift(hash, 13)), 0xc2b2ae35)
    hash = bit.bxor(hash, bit.rshift(hash, 16))
    return hash < 0 and hash + 4294967296 or hash
end

function murmur.update(self, text)
    if type(text) ~= 'string' then
        error('Usage: murhash:update(string)', 2)
    end
    self.parts[#self.parts + 1] = text
end

function murmur.result(self)
    self.parts = { table.concat(self.parts) }
    return murmur_of(self.parts[1], self.seed)
end

function murmur.clear(self)
    self.parts = {}
end

function murmur.copy(self)
    return setmetatable({ seed = self.seed, parts = { unpack(self.parts) } }, murmur)
end

digest.murmur = setmetatable({
    default_seed = MURMUR_SEED,
    new = function(options)
        local seed = options and options.seed or MURMUR_SEED
        if type(seed) ~= 'number' then
            error(("cannot convert '%s' to 'int [1]'"):format(type(seed)), 2)
        end
        return setmetatable({ seed = seed, parts = {} }, murmur)
    end,
}, {
    __call = function(_, text)
        if type(text) ~= 'string' then
            error('Usage: digest.murhash(string)', 2)
        end
        return murmur_of(text, MURMUR_SEED)
    end,
})

package.loaded.digest = digest
