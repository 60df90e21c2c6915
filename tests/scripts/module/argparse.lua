-- module internal.argparse: options and arguments of a command line

parse = require('internal.argparse').parse

parse({'a', 'b', '-x', '1', '--long', '2', '--eq=3', '-abc'})

parse({'-a', 'b', '-c', '--ddd', 'e', '--fff'})

parse({'--name', '5', '--name', '6'}, {{'name', 'number+'}})

parse({'--name=5', '--name=6'}, {{'name', 'number'}})

parse({'--name=5', '--name', '--name=6'})

parse({'--name=5', '--name=', '--name'}, {'name'})

parse({'--name', 'x'}, {{'name', 'number'}})

parse({'--name', '0x10'}, {{'name', 'number'}})

parse({'--name'}, {{'name', 'number'}})

parse({'--name=1,2'}, {{'name', 'number+'}})

parse({'--name', '-5'}, {{'name', 'number'}})

parse({'--text=x', '--text', 'y'}, {{'text', 'string+'}})

parse({'--text='}, {{'text', 'string'}})

parse({'--text'}, {{'text', 'string'}})

parse({'--text', ''})

parse({''})

-- Flags take no values.

parse({'--flag', 'x', '--other', 'y', 'z'}, {{'flag', 'boolean'}, 'other'})

parse({'a', '--flag', 'x', 'b'}, {{'flag', 'boolean+'}})

parse({'--flag=true'}, {{'flag', 'boolean'}})

parse({'-f', '-f'})

parse({'-f', '-f'}, {{'f', 'boolean'}})

parse({'-f', 'x'}, {{'f', 'string'}})

-- Names.

parse({'-u', '--none', '-u'}, {'name'})

parse({'-uv', 'x'}, {{'u', 'boolean'}})

parse({'--a-b_c=x', '--_ab'})

parse({'-'})

(function() local r = {} for _, bad in ipairs({'--', '--=x', '--n', '--n=5', '--5ab', '-5', '-n5', '-l=5'}) do table.insert(r, (select(2, pcall(parse, {'x', bad})):gsub('^.-: ', ''))) end return r end)()

parse({'--name=1'}, {{'name', 'foo'}})

parse({}, {5})
