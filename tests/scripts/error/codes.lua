-- the numbers of the error codes

codes = {}

for name, code in pairs(box.error) do if type(code) == 'number' then codes[name] = code end end

codes

count = 0

for name, code in pairs(codes) do count = count + 1 end

count

box.error.UNKNOWN

box.error.TUPLE_FOUND

box.error.NO_SUCH_PROC

box.error.NOTHING
