-- iconv: texts from one encoding to another, as the C library of the machine knows them.
local ffi = require('ffi')
local errno = require('errno')

ffi.cdef[[
struct lycosa_iconv { void *handle; };
void *lycosa_iconv_open(const char *to, const char *from) __asm__("iconv_open");
int lycosa_iconv_close(void *handle) __asm__("iconv_close");
size_t lycosa_iconv(void *handle, const char **in, size_t *in_left, char **out, size_t *out_left) __asm__("iconv");]]

local C = ffi.C

local BUFFER_BYTES = 4096
local FAILED = ffi.cast('size_t', -1)
local buffer = ffi.new('char[?]', BUFFER_BYTES)
local in_pointer, in_left = ffi.new('const char *[1]'), ffi.new('size_t[1]')
local out_pointer, out_left = ffi.new('char *[1]'), ffi.new('size_t[1]')

local converter_type = ffi.metatype('struct lycosa_iconv', {
    __gc = function(self) C.lycosa_iconv_close(self.handle) end,
    __call = function(self, data)
        local size = data:len()
        in_pointer[0], in_left[0] = data, size
        local pieces = {}
        while in_left[0] > 0 do
            out_pointer[0], out_left[0] = buffer, BUFFER_BYTES
            local result = C.lycosa_iconv(self.handle, in_pointer, in_left, out_pointer, out_left)
            local code = errno()
            pieces[#pieces + 1] = ffi.string(buffer, BUFFER_BYTES - tonumber(out_left[0]))
            if result == FAILED and code ~= errno.E2BIG then
                -- The next text begins anew.
                C.lycosa_iconv(self.handle, nil, nil, nil, nil)
                if code == errno.EINVAL then
                    error('Invalid multibyte sequence')
                elseif code == errno.EILSEQ then
                    error('Incomplete multibyte sequence')
                end
                error('Unknown conversion error: ' .. errno.strerror(code))
            end
        end
        return table.concat(pieces)
    end,
})

package.loaded.iconv = {
    new = function(to, from)
        if type(to) ~= 'string' or type(from) ~= 'string' then
            error('Usage: iconv.new("CP1251", "KOI8-R")')
        end
        local handle = C.lycosa_iconv_open(to, from)
        if ffi.cast('intptr_t', handle) == -1 then
            error('iconv: ' .. errno.strerror(errno()))
        end
        return converter_type(handle)
    end,
}
