-- fun: nth gives all values of its step; what is no iterator

fun = require('fun')

fun.iter('abc'):enumerate():nth(2)

fun.iter('abc'):zip({1, 2, 3}):nth(2)

fun.range(3, 0, -1):tail():enumerate():nth(2)

fun.iter({a = 1}):nth(1)

fun.iter({5, 6}):nth(2)

fun.iter({5, 6}):nth(0)

fun.iter({5, 6}):enumerate():nth(5)

fun.iter(nil)

fun.iter(box.NULL)

fun.iter(5)

fun.iter(true)

errno = require('errno')

errno.strerror(print)

errno.strerror({})

errno.strerror('x')

errno.strerror(true)

errno.strerror(2)

errno.strerror('2')

errno.strerror(2LL)

errno.strerror(1.5)
