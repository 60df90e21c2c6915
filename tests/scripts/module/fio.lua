-- fio: files and directories below the working directory

fio = require('fio')

f = fio.open('a.txt', {'O_CREAT', 'O_WRONLY', 'O_TRUNC'}, tonumber('644', 8))

f:write('hello ')

f:write('world')

f:pwrite('J', 0)

f:fsync()

f:close()

f:write('x')

f = fio.open('a.txt', 'O_RDONLY')

f:read(5)

f:read(100)

f:read(5)

f:pread(3, 2)

f:seek(0)

f:read()

f:seek(-3, 'SEEK_END')

f:read()

f:stat().size

f:write('x')

f:close()

f = fio.open('a.txt', {'O_RDWR', 'O_APPEND'})

f:write('!')

f:truncate(3)

f:close()

fio.stat('a.txt').size

fio.stat('a.txt'):is_reg()

fio.stat('a.txt'):is_dir()

string.format('%o', fio.stat('a.txt').mode)

fio.open('none.txt', {'O_RDONLY'})

fio.open('none/a.txt', {'O_CREAT'})

fio.open('x', 'O_NONSENSE')

fio.open()

fio.stat('none')

fio.mkdir('d')

fio.mkdir('d')

fio.mkdir('d/e/f')

fio.mktree('d/e/f')

fio.path.exists('d/e/f')

fio.path.is_dir('d')

fio.path.is_file('d')

fio.path.is_file('a.txt')

fio.path.is_link('a.txt')

fio.path.exists('none')

fio.rename('a.txt', 'd/b.txt')

fio.rename('a.txt', 'c.txt')

fio.listdir('d')[1] ~= nil

l = fio.listdir('d') table.sort(l) return l

fio.listdir('none')

fio.copyfile('d/b.txt', 'd/c.txt')

fio.stat('d/c.txt').size

fio.symlink('b.txt', 'd/link')

fio.readlink('d/link')

fio.path.is_link('d/link')

fio.lstat('d/link'):is_link()

fio.link('d/b.txt', 'd/hard')

fio.stat('d/hard').nlink

fio.chmod('d/b.txt', tonumber('600', 8))

string.format('%o', fio.stat('d/b.txt').mode)

fio.glob('d/*.txt')

fio.unlink('d/c.txt')

fio.unlink('d/c.txt')

fio.rmdir('d')

fio.rmtree('d')

fio.path.exists('d')

fio.rmdir('none')

fio.basename('/a/b.txt')

fio.basename('/a/b.txt', '.txt')

fio.dirname('/a/b.txt')

fio.dirname('b.txt')

fio.pathjoin('a', 'b', '/c')

fio.pathjoin('/a/', 'b/')

fio.pathjoin('a', '', 'b')

fio.abspath('/a/../b/./c')

fio.abspath('x') == fio.pathjoin(fio.cwd(), 'x')

fio.basename()

fio.path.lexists('none')

fio.tempdir():match('^/') ~= nil

old = fio.umask(tonumber('22', 8))

type(fio.umask(old))

fio.c.flag.O_RDONLY

fio.c.mode.S_IRUSR
