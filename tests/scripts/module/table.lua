-- table: copy and deepcopy, and what strict does not hinder

t = {1, {2, 3}, a = {b = {c = 1}}}

d = table.deepcopy(t)

d

d ~= t and d[2] ~= t[2] and d.a.b ~= t.a.b

c = table.copy(t)

c

c ~= t and c[2] ~= t[2]

c = table.copy(t, true)

c ~= t and c[2] == t[2]

table.deepcopy(5)

table.deepcopy(nil)

table.deepcopy('text')

r = {} r.self = r

d = table.deepcopy(r)

d.self == d and d ~= r

m = setmetatable({1}, {__index = function() return 'default' end})

table.deepcopy(m).anything

getmetatable(table.deepcopy(m)) == getmetatable(m)

table.copy({}, false)

k = {}

next(table.deepcopy{[k] = 1}) ~= k

table.concat({1, 'a', 2.5}, '-')

table.sort

x = {3, 1, 2} table.sort(x) return x

x = {3, 1, 2} table.sort(x, function(a, b) return a > b end) return x

x = {1, 2} table.insert(x, 1, 0) table.remove(x) return x

unpack{1, 2, nil, 4}

unpack({1, 2, 3}, 2)

select(-1, 1, 2, 3)

table.maxn{1, nil, 3}

require('table.new')(4, 4)

require('table.clear') ~= nil

x = {1, a = 2} require('table.clear')(x) return x

#table.pack and 'pack' or 'none'
