-- pcall hands errors of box over as objects and Lua errors as values

s = box.schema.space.create('t')

_ = s:create_index('primary')

_ = s:insert{1}

pcall(s.insert, s, {1})

ok, e = pcall(s.insert, s, {1})

e.code == box.error.TUPLE_FOUND

e.type

e.message

tostring(e) == e.message

string.format('%s', e) == e.message

pcall(error, 'text')

pcall(error)

pcall(error, nil)

pcall(error, {code = 1})

pcall(error, 'text', 0)

pcall(function() error('text', 0) end)

pcall(function() local x = nil; return x.y end)

pcall(function() return 1 + {} end)

pcall(function() return #5 end)

pcall(function() undefined_function() end)

pcall(box.error, box.error.PROC_LUA, 'r')

xpcall(function() error('text', 0) end, function(m) return 'handled ' .. m end)

xpcall(s.insert, function(e) return e.code end, s, {1})

error({1, 2})

error(setmetatable({}, {__tostring = function() return 'metatable' end}))

assert(false)

assert(nil, 'message')

assert(nil, e)

assert(1, 2)

select(2, pcall(s.get, s, 'x')).message

(function() local ok, e = pcall(s.get, s, 'x') return e.code, e.type end)()

tonumber('x')

tonumber('0x10')

tonumber('1e3')

tonumber('10', 2)

tonumber64('18446744073709551615')

tonumber64('123')

tonumber64('-5')

tonumber64('x')

tonumber64(5)

tonumber64('ff', 16)
