-- settings of the session are rows of a space, and fields of box.session.settings

s = box.space._session_settings

s:select()

s:select('sql', {iterator = 'GE', limit = 2})

s:select('sql_full_metadata', {iterator = 'LT'})

s:get('sql_default_engine')

s:get('nope')

s:update('sql_default_engine', {{'=', 2, 'vinyl'}})

s:get('sql_default_engine')

s:update('sql_default_engine', {{'=', 'value', 'nope'}})

s:update('sql_default_engine', {{'=', 2, 1}})

s:update('sql_full_metadata', {{'=', 2, 1}})

s:update('sql_full_metadata', {{'=', 2, true}})

s:update('sql_full_metadata', {{'=', 1, 'other'}})

s:update('nope', {{'=', 2, true}})

s:insert{'x', 1}

s:replace{'sql_full_metadata', true}

s:delete('sql_full_metadata')

s:upsert({'sql_full_metadata', true}, {})

box.session.settings.sql_full_metadata

box.session.settings.sql_full_metadata = false

box.session.settings.sql_full_metadata

box.session.settings.nope

box.session.settings.nope = 1
