-- Running texts, finding files, and what else is there to be found.
dostring('return 1, 2')

dostring('return ...', 5, 6)

dostring('error("x")')

dostring('zz zz')

dostring(5)

require('fun').operator.neq(1, 2), require('fun').op.neq(1, 1)

require('fun').range(-1):nth(2)

type(debug.sourcefile), debug.sourcedir(1)

package.search('fiber'), package.search('nothing')

package.search()

type(package.searchroot()), type(package.setsearchroot)

type(help), type(tutorial), type(help()), type(tutorial())

box.ctl.clear_synchro_queue()

type(box.schema.upgrade), type(box.schema.space_mt), type(box.schema.index_mt), type(box.schema.memtx_index_mt), type(box.schema.vinyl_index_mt)

box.schema.SYSTEM_USER_ID_MAX, box.schema.SEQUENCE_ID, box.schema.SPACE_SEQUENCE_ID, box.schema.VCOLLATION_ID, box.schema.SESSION_SETTINGS_ID

-- What is added to the methods of all spaces they all have.
s = box.schema.space.create('s')

function box.schema.space_mt.twice(space) return space.name .. space.name end

s:twice()

box.schema.space.bless(s) return s:len()

-- Options of box.cfg out of their bounds.
box.cfg{net_msg_max = -1}

box.cfg{net_msg_max = 1}

box.cfg{checkpoint_count = 0}

box.cfg{replication_timeout = 0}

box.cfg{readahead = -1}

box.cfg{log_format = 'x'}

box.cfg{log_format = {}}

box.cfg{log_level = {}}

box.cfg{vinyl_memory = -1}

box.cfg{memtx_memory = -1}

-- Arguments of functions of fibers and files.
fiber, fio = require('fiber'), require('fio')

fiber.find('')

fiber.find({})

fiber.cancel(nil)

box.session.peer({})

fio.basename('a/'), fio.basename('//a//b/'), fio.basename('/'), fio.basename('a/b.lua', '.lua')

fio.rename('nothing', {})

fio.open('nothing', true)
