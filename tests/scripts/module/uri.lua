-- uri: splitting and joining addresses

uri = require('uri')

uri.parse('host:3301')

uri.parse('localhost')

uri.parse('3301')

uri.parse('127.0.0.1:3301')

uri.parse('[::1]:3301')

uri.parse('user:secret@host:3301')

uri.parse('user@host:3301')

uri.parse('http://user:secret@host.org:80/path/to?query=1#fragment')

uri.parse('unix/:/tmp/socket')

uri.parse('/tmp/socket')

uri.parse('')

uri.parse(':')

uri.parse('host:port')

uri.format{host = 'host', service = '3301'}

uri.format{scheme = 'http', host = 'h', service = '80', path = '/p', query = 'q', fragment = 'f'}

uri.format{login = 'user', password = 'secret', host = 'h'}

uri.format({login = 'user', password = 'secret', host = 'h'}, true)

uri.format{}

uri.parse()

uri.parse(5)
