-- module popen: programs, their streams and their end

popen, fiber, fio = require('popen'), require('fiber'), require('fio')

popen.opts, popen.state, popen.stream

popen.signal.SIGTERM, popen.signal.SIGKILL, popen.signal.SIGUSR1, popen.signal.SIGIO, popen.signal.nosuch

function info(ph) local result = ph:info() result.pid = nil return result end

-- a shell

ph = popen.shell('echo hi; echo err >&2; exit 3', 'rR')

info(ph)

ph:read()

ph:read()

ph:read({stderr = true})

ph:wait()

info(ph)

ph.pid, ph.nosuch

ph:close()

ph:close()

pcall(ph.read, ph)

pcall(ph.info, ph)

pcall(ph.wait, ph)

pcall(function() return ph.pid end)

-- both directions

ph = popen.new({'/bin/cat'}, {stdin = popen.opts.PIPE, stdout = popen.opts.PIPE})

ph.status, ph.stdin, ph.stdout, ph.stderr, ph.command, type(ph.pid), type(ph)

ph.opts

ph:write('hello')

ph:read()

ph:read({timeout = 0.01})

pcall(ph.read, ph, {timeout = -1})

pcall(ph.read, ph, {timeout = 'x'})

pcall(ph.read, ph, {stderr = true})

pcall(ph.read, ph, {stdout = true, stderr = true})

pcall(ph.read, ph, {stdout = 5})

pcall(ph.read, ph, 5)

pcall(ph.read)

pcall(ph.write, ph)

pcall(ph.write, ph, 5)

pcall(ph.write, ph, 'x', 5)

ph:write(('x'):rep(1000000), {timeout = 0.1})

#ph:read()

total = 0 repeat local piece = ph:read({timeout = 0.3}) total = total + #(piece or '') until piece == nil

total > 60000

ph:shutdown({stdin = true})

ph.stdin, ph.stdout

pcall(ph.write, ph, 'x')

ph:read()

ph:shutdown({stdin = true})

pcall(ph.shutdown, ph)

pcall(ph.shutdown, ph, {})

pcall(ph.shutdown, ph, {stderr = true})

ph:shutdown({stdout = true})

pcall(ph.read, ph)

ph:wait()

ph:signal(9)

ph:terminate()

ph:kill()

ph:close()

-- much through a filter, from two fibers

ph = popen.shell('cat | wc -c', 'rw')

f = fiber.create(function() for i = 1, 100 do ph:write(('y'):rep(30000)) end ph:shutdown({stdin = true}) end)

tonumber((ph:read()))

ph:wait()

ph:close()

-- signals

ph = popen.new({'/bin/sleep', '100'})

ph.status, ph.stdin

ph:signal(0)

pcall(ph.signal, ph)

pcall(ph.signal, ph, 'x')

ph:terminate()

ph:wait()

ph.status

ph:close()

ph = popen.shell('kill -9 $$')

ph:wait()

info(ph)

ph:close()

ph = popen.shell('sleep 100 & sleep 100')

ph:kill()

ph:wait()

ph:close()

-- wrong arguments

pcall(popen.new)

pcall(popen.new, 5)

pcall(popen.new, {1})

pcall(popen.new, {'x', 5})

pcall(popen.new, {'/bin/true'}, 5)

pcall(popen.new, {'/bin/true'}, {stdin = 5})

pcall(popen.new, {'/bin/true'}, {stdin = 'x'})

pcall(popen.new, {'/bin/true'}, {env = 5})

pcall(popen.new, {'/bin/true'}, {env = {1}})

pcall(popen.new, {'/bin/true'}, {env = {a = 1}})

pcall(popen.new, {'/bin/true'}, {shell = 5})

pcall(popen.new, {'/bin/true'}, {group_signal = true})

pcall(popen.shell)

pcall(popen.shell, 5)

pcall(popen.shell, 'true', 5)

pcall(popen.shell, 'true', 'q')

-- files that are no programs end with the system's number

popen.new({'/no/such'}):wait()

popen.new({'echo'}):wait()

popen.new({'/etc/passwd'}):wait()

-- environment, options, the line for people

ph = popen.new({'echo $FOO "[$HOME]"'}, {stdout = 'pipe', shell = true, env = {FOO = 'bar'}})

ph:read()

ph:wait()

ph:close()

ph = popen.new({'true'}, {shell = true, setsid = true, group_signal = true, close_fds = false, restore_signals = false, keep_child = true, stderr = 'close', stdout = 'devnull', stdin = 'inherit'})

info(ph)

ph:wait()

ph:close()

ph = popen.new({'/bin/true', "it's", 'a b', '', '$x', 'a;b', 'q"'})

ph.command

ph:wait()

ph:close()

-- what is open here is not open there

file = fio.open('./kept', {'O_RDWR', 'O_CREAT'}, tonumber('644', 8))

ph = popen.shell('ls -l /proc/self/fd | grep -c kept', 'r')

ph:read()

ph:close()

file:close()

-- one who waits is told, and may be cancelled

ph = popen.shell('sleep 0.2; echo late', 'r')

began = fiber.clock()

ph:read(), fiber.clock() - began > 0.15

ph:close()

ph = popen.new({'/bin/sleep', '100'})

outcome = nil f = fiber.create(function() outcome = {pcall(ph.wait, ph)} end) fiber.sleep(0.05) f:cancel() fiber.sleep(0.05)

outcome

ph:close()

-- nothing is left behind

function open() collectgarbage() collectgarbage() fiber.sleep(0.02) return #fio.listdir('/proc/self/fd') end

before = open()

for i = 1, 20 do popen.shell('sleep 100', 'rwR') end

function settled() for i = 1, 200 do if open() <= before then return true end fiber.sleep(0.02) end return open() - before end

settled()
