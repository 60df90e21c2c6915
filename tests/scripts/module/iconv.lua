-- module iconv: texts from one encoding to another

iconv = require('iconv')

function said(...) local _, why = pcall(...) return (why:gsub('^builtin/%w+.lua:%d+: ', '')) end

c = iconv.new('UTF-16BE', 'UTF-8')

c('aя'):hex()

c('')

said(c, '\xff')

said(c, 5)

said(c)

said(c, '\xd1')

c('b'):hex()

said(c, 'ab\xd1')

said(iconv.new, 'nosuch', 'UTF-8')

said(iconv.new)

said(iconv.new, 5, 6)

said(iconv.new('ASCII', 'UTF-8'), 'я')

iconv.new('ASCII//TRANSLIT', 'UTF-8')('e')

iconv.new('CP1251', 'UTF8')(('я'):rep(5000)) == ('\xff'):rep(5000)

iconv.new('UTF8', 'CP1251')(('\xff'):rep(5000)) == ('я'):rep(5000)

type(c)
