-- module fio: times of files

fio = require('fio')

f = fio.open('times', {'O_CREAT', 'O_WRONLY'}, tonumber('644', 8)) f:close()

fio.utime('times', 100, 200), fio.stat('times').mtime

fio.utime('times', 300), fio.stat('times').mtime

fio.utime('times', 1.5, 2.25), fio.stat('times').mtime

fio.utime('times'), fio.stat('times').mtime > 1e9

fio.utime('nope', 1)

fio.utime()

fio.utime('times', 'x')

fio.utime('times', 1, 'x')
