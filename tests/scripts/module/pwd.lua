-- module pwd: users and groups of the machine

pwd = require('pwd')

function said(...) local _, why = pcall(...) return (why:gsub('^builtin/%w+.lua:%d+: ', '')) end

pwd.getpw('root')

pwd.getpw(0)

pwd.getpw('nosuchuser')

pwd.getpw(99999999)

pwd.getgr('root')

pwd.getgr(0)

pwd.getgr('nosuch')

said(pwd.getpw, {})

said(pwd.getgr, true)

type(pwd.getpw().name), type(pwd.getgr().id)

#pwd.getpwall() > 5, #pwd.getgrall() > 5

pwd.getpwall()[1]

pwd.getgrall()[1]
