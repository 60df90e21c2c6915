-- errno: names, numbers and texts

errno = require('errno')

errno.ENOENT

errno.EACCES

errno.EINTR

errno.EEXIST

errno.strerror(errno.ENOENT)

errno.strerror(0)

errno(errno.EPERM) return errno(), errno.strerror()

errno(errno.EPERM) return errno(0), errno()

errno.NONSENSE

_ = require('fio').open('none', 'O_RDONLY') return errno() == errno.ENOENT

errno('x')
