-- Zero bytes in the arguments of errors end what C sees of a text: that argument, or all of a text that Lua has made.
s = box.schema.space.create('s')

p = s:create_index('p')

p:select({}, 'a\0b')

p:select({}, {iterator = 'a\0b'})

box.schema.space.create('a\0b')

box.schema.func.create('f', {language = 'a\0b'})

box.schema.user.info('a\0b')

box.error.new(54, 'a\0b').message

box.error.new(54, '\255').message

box.error.new(1e308, 'x').code

box.error.new(2^32, 'x').code
