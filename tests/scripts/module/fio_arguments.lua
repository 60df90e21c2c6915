-- fio: numbers as names, wrong arguments, paths with empty parts, whole trees

fio = require('fio')

fio.rename('nothing', 1)

fio.rename(1, 'a')

fio.rename('a')

fio.link('nothing', 1)

fio.link()

fio.symlink('a')

fio.unlink(5)

fio.unlink()

fio.mkdir(true)

fio.mkdir()

fio.rmdir(1)

fio.rmdir()

fio.chdir(7)

fio.listdir(7)

fio.stat(7)

fio.stat()

fio.lstat(7)

fio.readlink(7)

fio.readlink()

fio.chmod(7, 1)

fio.chmod('nothing')

fio.glob(7)

fio.copyfile(7, 8)

fio.copyfile('a')

fio.copyfile('nothing', 'x')

fio.copytree('a')

fio.copytree('nothing', 'b')

fio.rmtree(7)

fio.mktree(true)

fio.chown('nothing', 0, 0)

fio.chown('nothing', 'nobody there', 0)

fio.chown('nothing', 0, 'nobody there')

fio.chown('nothing')

fio.truncate()

fio.truncate('nothing')

fio.sync()

fio.pathjoin()

fio.pathjoin('')

fio.pathjoin('', '')

fio.pathjoin('', 'a/b')

fio.pathjoin('', '', 'a')

fio.pathjoin('/', 'a')

fio.pathjoin('', '/a')

fio.pathjoin('a', '')

fio.pathjoin('a', '', 'b')

fio.pathjoin('a/', '/b')

fio.pathjoin('', 5)

fio.pathjoin(nil)

fio.pathjoin('', nil)

fio.pathjoin('a', nil, 'b')

fio.pathjoin('a', box.NULL)

fio.basename('a.b.c', 'a.b')

fio.basename('a.b.c', '.c')

fio.basename('a.b.c', '.b')

fio.basename('aXbc', '.b')

fio.basename('a1b', 1)

fio.basename('aba', 'a')

fio.basename('a(b', '(b')

fio.basename('/x/a.lua', '.lua')

fio.basename('abc', '')

fio.open('nothing', 'O_NOTHING')

fio.open('nothing', {'O_NOTHING'})

fio.open('nothing', {a = 'O_NOTHING'})

fio.open('nothing', true)

fio.open('nothing', {}, {'S_NOTHING'})

fio.open('nothing', {}, 'x')

fio.mktree('tree/in', tonumber('700', 8))

bit.band(fio.stat('tree/in').mode, 511)

f = fio.open('tree/in/f', {'O_CREAT', 'O_WRONLY'}, tonumber('644', 8))

f:write('abc')

f:close()

fio.truncate('tree/in/f', 2)

fio.stat('tree/in/f').size

fio.mkdir('beside')

fio.open('beside/stays', {'O_CREAT'}, tonumber('644', 8)):close()

fio.symlink('../beside', 'tree/link')

fio.copytree('tree', 'copy/of')

fio.stat('copy/of/in/f').size

fio.readlink('copy/of/link')

fio.copytree('tree/in/f', 'g')

(select(2, fio.copytree('tree', 'copy/of/in/f'))):match('[^/]+$')

(select(2, fio.mktree('copy/of/in/f/x'))):match('[^/]+$')

fio.truncate('copy/of/in/f')

fio.stat('copy/of/in/f').size

fio.chown('copy/of/in/f', fio.stat('copy/of/in/f').uid or 0, fio.stat('copy/of/in/f').gid or 0)

-- a link to a directory goes, what is in the directory stays

fio.rmtree('copy')

fio.path.exists('copy')

fio.path.exists('beside/stays')

(select(2, fio.rmtree('copy'))):match('[^/]+$')

(select(2, fio.rmtree('tree/in/f'))):match('[^/]+$')
