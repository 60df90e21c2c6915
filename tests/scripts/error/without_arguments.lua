-- Errors whose text has no holes need no arguments

box.error.new(box.error.TIMEOUT)

box.error.new(box.error.UNKNOWN)

box.error.new(box.error.TIMEOUT).code

box.error.new(box.error.NO_SUCH_USER)

box.error.new(box.error.ILLEGAL_PARAMS)

box.error(box.error.TIMEOUT)

box.error(box.error.NO_SUCH_USER)

box.error.new(box.error.TIMEOUT, 'more')

box.error.new(77.5)

box.error.new(1e300)

box.error.new(-1)
