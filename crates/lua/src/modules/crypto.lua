-- crypto: ciphers, digests and keyed digests, whole or piece by piece.
local internal = ...

local ffi = require('ffi')
local digest_module = require('digest')

ffi.cdef[[
struct byte_stream { uint64_t slot__; };
]]

local function free_slot(handle)
    internal.stream_free(tonumber(handle.slot__))
end

-- A stream of bytes that `begin` makes: the old one begun anew where there is one; or nil and what is wrong.
function internal.byte_stream(handle, begin, ...)
    local number, reason = begin(handle and tonumber(handle.slot__) or 0, ...)
    if number == nil then
        return nil, reason
    end
    return handle or ffi.gc(ffi.new('struct byte_stream', number), free_slot)
end

function internal.byte_stream_free(handle)
    ffi.gc(handle, nil)
    free_slot(handle)
end

local function checked(value, reason)
    if value == nil then
        error(internal.values.make_error(0, 'CryptoError', reason))
    end
    return value
end

local function begun(...)
    return checked(internal.byte_stream(...))
end

local function result_of(handle)
    return checked(internal.stream_result(tonumber(handle.slot__)))
end

local function update_of(handle, input)
    return checked(internal.stream_update(tonumber(handle.slot__), input))
end

-- An object that was freed has no name for what it is, and takes nothing.
local function release(self)
    internal.byte_stream_free(self.ctx)
    self.ctx = nil
    self.is_initialized, self.is_freed = false, true
end

-- Digests, with a key and without --------------------------------------------------------------------------------------
local NAMES = { 'md4', 'md5', 'ripemd160', 'sha1', 'sha224', 'sha256', 'sha384', 'sha512' }

-- Methods of the objects of one family.
local function hash_methods(family, takes_key)
    local methods = {}

    function methods.init(self, key)
        if self.is_freed then
            error(family .. " context isn't usable", 0)
        end
        local text
        if takes_key then
            -- A key is anything that a string is made of.
            text = key:len() and key
        end
        self.ctx = begun(self.ctx, internal.crypto_hash, self.name, text)
        self.is_initialized = true
    end

    function methods.update(self, input)
        if not self.is_initialized then
            error(family .. ' not initialized', 0)
        end
        if input:len() > 0 then
            update_of(self.ctx, input)
        end
    end

    function methods.result(self)
        if not self.is_initialized then
            error(family .. ' not initialized', 0)
        end
        self.is_initialized = false
        return result_of(self.ctx)
    end

    methods.free = release
    return methods
end

local digest_metatable = { __index = hash_methods('Digest', false) }
local hmac_metatable = { __index = hash_methods('HMAC', true) }

local function new_hash(metatable, name, key)
    local object = setmetatable({ name = name, is_initialized = false }, metatable)
    object:init(key)
    return object
end

local function hash_at_once(object, text)
    object:update(text)
    local output = object:result()
    object:free()
    return output
end

local function new_hmac(name, key)
    if key == nil then
        error('Key should be specified for HMAC operations', 0)
    end
    return new_hash(hmac_metatable, name, key)
end

local digests, hmacs = {}, {}
for _, name in ipairs(NAMES) do
    digests[name] = setmetatable({
        new = function() return new_hash(digest_metatable, name) end,
    }, {
        __call = function(_, text)
            if type(text) ~= 'string' then
                error(('Usage: digest.%s(string)'):format(name))
            end
            return hash_at_once(new_hash(digest_metatable, name), text)
        end,
    })
    hmacs[name] = setmetatable({
        new = function(key) return new_hmac(name, key) end,
    }, {
        __call = function(_, key, text)
            if type(text) ~= 'string' then
                error(('Usage: hmac.%s(key, string)'):format(name))
            end
            return hash_at_once(new_hmac(name, key), text)
        end,
    })
    hmacs[name .. '_hex'] = function(key, text)
        if type(text) ~= 'string' then
            error(('Usage: hmac.%s_hex(key, string)'):format(name))
        end
        return hmacs[name](key, text):hex()
    end
end

-- Ciphers ---------------------------------------------------------------------------------------------------------------
local ALGORITHMS = { none = 0, aes128 = 1, aes192 = 2, aes256 = 3, des = 4 }
local MODES = { ecb = 0, cbc = 1, cfb = 2, ofb = 3 }

local cipher_methods = { free = function(self)
    release(self)
    self.key, self.iv = nil, nil
end }
local cipher_metatable = { __index = cipher_methods }

-- Key and first block may come one after the other; either stays what it was where it is not given.
function cipher_methods.init(self, key, iv)
    if self.is_freed then
        error("Cipher context isn't usable", 0)
    end
    self.key = key or self.key
    self.iv = iv or self.iv
    if self.key and self.iv and self.key:len() and self.iv:len() then
        self.ctx = begun(self.ctx, internal.crypto_cipher, self.algorithm, self.mode, self.encrypts, self.key, self.iv)
        self.is_initialized = true
    end
end

function cipher_methods.update(self, input)
    if not self.is_initialized then
        error('Cipher not initialized', 0)
    elseif type(input) ~= 'string' then
        error('Usage: cipher:update(string)')
    end
    return update_of(self.ctx, input)
end

function cipher_methods.result(self)
    if not self.is_initialized then
        error('Cipher not initialized', 0)
    end
    local output = result_of(self.ctx)
    self.is_initialized = false
    return output
end

local function new_cipher(algorithm, mode, encrypts, key, iv)
    local object = setmetatable({
        algorithm = algorithm, mode = mode, encrypts = encrypts, is_initialized = false,
    }, cipher_metatable)
    object:init(key, iv)
    return object
end

local function direction(algorithm, mode, encrypts)
    return setmetatable({
        new = function(key, iv) return new_cipher(algorithm, mode, encrypts, key, iv) end,
    }, {
        __call = function(_, text, key, iv)
            local object = new_cipher(algorithm, mode, encrypts, key, iv)
            local output = object:update(text) .. object:result()
            object:free()
            return output
        end,
    })
end

local ciphers = {}
for algorithm in pairs(ALGORITHMS) do
    ciphers[algorithm] = setmetatable({}, { __index = function(_, mode)
        error('Cipher mode ' .. mode .. ' is not supported')
    end })
    for mode in pairs(MODES) do
        ciphers[algorithm][mode] = {
            encrypt = direction(algorithm, mode, true), decrypt = direction(algorithm, mode, false),
        }
    end
end

local function refuse_unknown(what)
    return { __index = function(_, name)
        error(('%s method "%s" is not supported'):format(what, name), 2)
    end }
end

local parts = {
    digest = setmetatable(digests, refuse_unknown('Digest')),
    hmac = setmetatable(hmacs, refuse_unknown('HMAC')),
    cipher = setmetatable(ciphers, refuse_unknown('Cipher')),
}
package.loaded.crypto = setmetatable({ cipher_algo = ALGORITHMS, cipher_mode = MODES }, {
    __index = parts,
    __serialize = function() return parts end,
})

-- What the module digest has of these.
digest_module.aes256cbc = {
    encrypt = function(text, key, iv) return ciphers.aes256.cbc.encrypt(text, key, iv) end,
    decrypt = function(text, key, iv) return ciphers.aes256.cbc.decrypt(text, key, iv) end,
}
function digest_module.md4(text)
    if type(text) ~= 'string' then
        error('Usage: digest.md4(string)', 2)
    end
    return digests.md4(text)
end
function digest_module.md4_hex(text)
    if type(text) ~= 'string' then
        error('Usage: digest.md4_hex(string)', 2)
    end
    return digests.md4(text):hex()
end
