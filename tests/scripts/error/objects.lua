-- error objects: making, raising, catching, reading

e = box.error.new(box.error.PROC_LUA, 'because')

type(e)

e

e.code

e.type

e.message

e.errno

e.none

e.prev

tostring(e)

type(e.trace)

#e.trace

sorted = function(t) local out = {} for k in pairs(t) do table.insert(out, k) end table.sort(out) return out end

sorted(e:unpack())

e:unpack().code

e:unpack().type

e:unpack().message

e:unpack().base_type

sorted(e.trace[1])

e:raise()

error(e)

pcall(error, e)

select(2, pcall(error, e)) == e

box.error(e)

box.error(box.error.NO_SUCH_SPACE, 'stock')

box.error(box.error.TUPLE_FOUND, 'primary', 'stock')

box.error(box.error.ACCESS_DENIED, 'Read', 'space', 'stock', 'ann')

box.error(box.error.NO_SUCH_SPACE)

box.error{code = 1234, reason = 'my reason'}

box.error{code = box.error.PROC_LUA, reason = 'my reason'}

box.error{reason = 'no code'}

box.error{code = 555}

box.error{code = 0, reason = 'zero', type = 'MyType'}

box.error(99999)

box.error('text')

box.error(nil)

box.error{}

box.error.new('text')

box.error.new()

box.error.new{code = 1, reason = 'r'}

box.error.new{code = 1, reason = 'r'}.type

box.error.new(box.error.UNKNOWN).message

box.error.new(box.error.NO_SUCH_SPACE, 'x').message

box.error.new(box.error.NO_SUCH_SPACE, 'x', 'y').message

box.error.new{type = 'Custom', reason = 'custom reason'}

-- the last error

box.error.clear()

box.error.last()

pcall(box.error, box.error.PROC_LUA, 'kept')

box.error.last()

box.error.last().message

box.error.clear()

box.error.last()

_ = pcall(function() box.space._space:insert{} end)

box.error.last().message

box.error.set(e)

box.error.last() == e

-- causes

cause = box.error.new(box.error.PROC_LUA, 'cause')

effect = box.error.new(box.error.PROC_LUA, 'effect')

effect:set_prev(cause)

effect.prev == cause

effect.prev.message

effect.prev.prev

effect:unpack().prev.message

cause:set_prev(effect)

effect:set_prev(nil)

effect.prev

effect:set_prev('text')

e == e

e == box.error.new(box.error.PROC_LUA, 'because')

e.message = 'x'
