-- names of engines that are none, and which fault of several is named

box.schema.space.create('e', {engine = ''})

box.schema.space.create('e', {engine = '\1'})

box.schema.space.create('e', {engine = 'a\tb'})

box.schema.space.create('e', {engine = ('x'):rep(16)})

box.schema.space.create('e', {engine = ('x'):rep(17)})

box.schema.space.create('e', {engine = 'nothing'})

box.schema.space.create('\1', {engine = ''})

box.schema.space.create('e', {engine = '\1', field_count = 1, format = {{'a'}, {'b'}}})

box.schema.space.create('e', {engine = '\1', format = {{'a', 'nothing'}}})

box.schema.space.create('e', {engine = ('x'):rep(17), format = {{'a', 'nothing'}}})
