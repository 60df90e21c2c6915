-- module csv: rows from texts and objects, and back

csv, fio = require('csv'), require('fio')

function said(...) local _, why = pcall(...) return (why:gsub('^builtin/%w+.lua:%d+: ', '')) end

csv.load('a,b,c\n1,2,3\n')

csv.load('a,"b ""q"" x",c\r\n,,\n')

csv.load('a;b\n', {delimiter = ';'})

csv.load("a,'b,c'\n", {quote_char = "'"})

csv.load('a,b\nc,d\n', {skip_head_lines = 1})

csv.load('  a , b  ,"  c "\n')

csv.load('a b,  ,c')

csv.load('')

csv.load('\n\n')

csv.load('a\n\nb')

csv.load('a\rb\r\nc')

csv.load('a,"b\nc",d')

csv.load('"a"b,c\n')

csv.load('"a" b,c\n')

csv.load('""\n')

csv.load('a,\n')

csv.load(',')

csv.load('ok\n"abc')

csv.load('a,b"c,d\n')

csv.load(('x'):rep(20) .. ',b\n', {chunk_size = 3})

file = fio.open('./x.csv', {'O_CREAT', 'O_RDWR', 'O_TRUNC'}, tonumber('644', 8))

file:write('1,2\n"a\nb",c\n')

file:seek(0)

csv.load(file, {chunk_size = 2})

file:close()

rows = {} for number, row in csv.iterate('a,b\nc,d\n') do rows[#rows + 1] = {number, row} end

rows

rows = {} for number, row in csv.iterate('a,b\nc,d\n', {skip_head_lines = 1}) do rows[#rows + 1] = {number, row} end

rows

csv.dump({{'a', 'b,c', 'd"e', 'f\ng', ''}, {1, 2.5, true, 'x'}})

csv.dump({1, 2, 3})

csv.dump({{'a b', ' x'}}, {delimiter = ';', quote_char = "'"})

csv.dump({{"it's"}}, {quote_char = "'"})

csv.dump({{'a;b', 'c,d'}}, {delimiter = ';'})

csv.dump({})

csv.dump({{}})

csv.dump({{'\r'}})

csv.dump({{12345678901234ULL, -5LL}})

said(csv.dump, 5)

written = {} csv.dump({{1}, {2}}, {}, {write = function(_, text) written[#written + 1] = text end})

written

csv.load('""""\n"",x\n"a""",b\n"""a",b\na""b,c\n"""""",b\n"a"" ""b"\n"" ,y\n"a" "b"\na"" \n"x""\ny"\n')

csv.load('" ""\n')
