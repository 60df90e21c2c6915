-- module socket: sockets that nobody refers to are closed, those of vanished clients too

socket, fiber, fio, net = require('socket'), require('fiber'), require('fio'), require('net.box')

function open() collectgarbage() collectgarbage() fiber.sleep(0.02) return #fio.listdir('/proc/self/fd') end

server = socket.tcp_server('unix/', './s.sock', function(client) client:read('\n') end)

fiber.sleep(0.01)

before = open()

list = {} for i = 1, 100 do list[i] = socket.tcp_connect('unix/', './s.sock') list[i]:write('half a line') if i % 20 == 0 then fiber.sleep(0.01) end end

open() - before >= 200

list = nil

function settled() for i = 1, 100 do if open() == before then return true end fiber.sleep(0.02) end return open() - before end

settled()

server:close()

before = before - 1

console = require('console').listen('unix/:./c.sock')

before = open()

list = {} for i = 1, 50 do list[i] = socket.tcp_connect('unix/', './c.sock') list[i]:write('1 +') if i % 20 == 0 then fiber.sleep(0.01) end end

list = nil

settled()
