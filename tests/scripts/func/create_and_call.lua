-- functions of box.schema.func: global ones by name, persistent ones by their text

function add(a, b) return a + b end

box.schema.func.create('add')

box.func.add:call{1, 2}

box.func.add:call({1, 2})

box.func.add:call{}

box.func.add:call(1, 2)

box.func.add:call()

box.func.add.name

box.func.add.language

box.func.add.setuid

box.func.add.is_deterministic

box.func.add.exports

box.func.add.body

box.func.add.routine_type

box.func.add.returns

box.func.add.param_list

box.schema.func.create('add')

box.schema.func.create('add', {if_not_exists = true})

box.schema.func.call('add', 3, 4)

box.schema.func.exists('add')

box.schema.func.exists('none')

-- a persistent function keeps its text

box.schema.func.create('double', {body = 'function(x) return x * 2 end'})

box.func.double:call{21}

box.func.double.body

double

box.func.double:call{'x'}

box.schema.func.create('many', {body = 'function(...) return select("#", ...), ... end'})

box.func.many:call{1, nil, 'a'}

box.func.many:call{1, box.NULL, {a = 1}}

box.schema.func.create('failing', {body = 'function() error("inside") end'})

box.func.failing:call()

box.schema.func.create('failing_box', {body = 'function() box.error(box.error.PROC_LUA, "reason") end'})

box.func.failing_box:call()

box.schema.func.create('pure', {body = 'function(t) return t[1] + t[2] end', is_deterministic = true, is_sandboxed = true})

box.func.pure:call{{3, 4}}

box.func.pure:call{box.tuple.new{5, 6}}

box.func.pure.is_deterministic

box.func.pure.is_sandboxed

box.schema.func.create('boxed', {body = 'function() return box ~= nil, math ~= nil, os ~= nil end', is_sandboxed = true})

box.func.boxed:call()

box.schema.func.create('count', {body = 'function() n = (n or 0) + 1 return n end'})

box.func.count:call()

box.func.count:call()

n

-- what is refused

box.schema.func.create('syntax', {body = 'function('})

box.schema.func.create('not_function', {body = '5'})

box.schema.func.create('statement', {body = 'return 5'})

box.schema.func.create()

box.schema.func.create('')

box.schema.func.create(5)

box.schema.func.create('x', {language = 'FORTRAN'})

box.schema.func.create('x', {colour = 'red'})

box.schema.func.create('x', {body = 5})

box.schema.func.create('x', {setuid = 'yes'})

box.schema.func.create('missing')

box.func.missing:call()

box.schema.func.create('a.b.c')

a = {b = {c = function(x) return 'path', x end}}

box.func['a.b.c']:call{1}

box.schema.func.create('obj:method')

obj = {method = function(self, x) return self == obj, x end}

box.func['obj:method']:call{1}

box.func.none

box.func.add:drop()

box.func.add

box.schema.func.drop('double')

box.schema.func.drop('double')

box.schema.func.drop('double', {if_exists = true})

box.schema.func.drop()

box.schema.func.reload('nothing')
