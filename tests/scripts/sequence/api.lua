-- sequences: next, current, set, reset, bounds, cycles

q = box.schema.sequence.create('q')

q.name

q.id

q.start

q.min

q.max

q.step

q.cycle

q.cache

q:current()

q:next()

q:next()

q:current()

q:set(10)

q:current()

q:next()

q:reset()

q:next()

box.sequence.q == q

box.sequence.q:next()

q:set('x')

q:set()

q:set(-5)

q:set(9223372036854775807LL)

q:next()

-- options

q = box.schema.sequence.create('down', {start = 3, step = -2, min = -2, max = 5, cycle = true})

q:next()

q:next()

q:next()

q:next()

q:next()

q:set(6)

q:set(-3)

q:set(5)

q:next()

q:alter{cycle = false, step = 1}

q:next()

q:next()

q:next()

q.cycle

q.step

q:alter{max = 100}

q:next()

q:next()

q:alter{colour = 'red'}

q:alter()

q:alter{name = 'renamed'}

box.sequence.renamed

box.sequence.down

-- what is refused

box.schema.sequence.create()

box.schema.sequence.create('q')

box.schema.sequence.create('q', {if_not_exists = true}) ~= nil

box.schema.sequence.create('bad', {step = 0})

box.schema.sequence.create('bad', {min = 10, max = 1})

box.schema.sequence.create('bad', {start = 100, max = 10})

box.schema.sequence.create('bad', {step = 'x'})

box.schema.sequence.create('bad', {colour = 'red'})

box.schema.sequence.create('', {})

box.schema.sequence.drop('none')

box.schema.sequence.drop('none', {if_exists = true})

box.schema.sequence.drop('q')

box.sequence.q

q:drop()

q:next()

q:drop()

box.space._sequence:select()

box.space._sequence_data:select()
