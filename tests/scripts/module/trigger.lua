-- module internal.trigger: lists of functions that run one after the other

trigger = require('internal.trigger')

t = trigger.new('name')

log = {}

a, b, c = function(x) table.insert(log, 'a' .. tostring(x)) end, function(x) table.insert(log, 'b' .. tostring(x)) end, function() table.insert(log, 'c') end

t(a) == a, t(b) == b, #t()

t:run(5), log

t(nil, a), #t()

log = {} t:run() return log

t(c, b) == c, #t(), t()[1] == c

t(nil, b)

t(5)

t(a, 5)

t(function() error('x') end) ~= nil

log = {} t:run() return log

log
