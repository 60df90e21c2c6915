-- uuid: making from text and bytes, printing, comparing

uuid = require('uuid')

u = uuid.fromstr('3bf10b49-2c3a-4f2f-8a8e-0123456789ab')

u

type(u)

tostring(u)

u:str()

#u:str()

u:bin():hex()

u:bin('b'):hex()

u:bin('l'):hex()

u:bin('n'):hex()

u:isnil()

uuid.NULL

uuid.NULL:isnil()

u == uuid.fromstr('3BF10B49-2C3A-4F2F-8A8E-0123456789AB')

u == uuid.NULL

u ~= uuid.NULL

u == u:str()

u == nil

uuid.frombin(u:bin()) == u

uuid.frombin(u:bin('b'), 'b') == u

uuid.frombin(u:bin('n'), 'n') == u

uuid.fromstr('x')

uuid.fromstr('3bf10b49-2c3a-4f2f-8a8e-0123456789')

uuid.fromstr('3bf10b492c3a4f2f8a8e0123456789ab')

uuid.fromstr()

uuid.fromstr(5)

uuid.frombin('short')

uuid.frombin()

#uuid.str()

#uuid.bin()

uuid.new():isnil()

uuid() ~= uuid()

uuid.new():str():match('^%x+%-%x+%-4%x+%-[89ab]%x+%-%x+$') ~= nil

u.str()

u < uuid.NULL

u:none()
