-- compat: where versions of Tarantool differ, which of the two ways is gone. Options have the names and words of 3.x; an option whose other way
-- is not there says so instead of promising it.
local internal = ...

-- What other modules look at: true where the new way is gone.
local tweaks = {}
internal.tweaks = tweaks

local function always(way, brief)
    return { default = way, only = way, brief = brief }
end

local function choice(way, tweak, brief)
    return { default = way, brief = brief, action = function(is_new) tweaks[tweak] = is_new end }
end

-- Of what is not here either way does.
local function either(way, brief)
    return { default = way, brief = brief, action = function() end }
end

local options = {
    json_escape_forward_slash = choice('old', 'json_plain_slash',
        "Whether json.encode() puts a backslash before '/': the old way does, the new one does not."),
    yaml_pretty_multiline = always('old',
        'Whether every text of several lines is printed as a block. Here it is the old way: those with an empty line are.'),
    fiber_channel_close_mode = choice('old', 'channel_closes_gently',
        'Whether what is in a channel can still be read after channel:close(): the new way keeps it, the old one drops it.'),
    sql_priv = either('new', 'Whether SQL needs a right. There is no SQL here.'),
    sql_seq_scan_default = either('old', 'Whether SQL may scan whole spaces unasked. There is no SQL here.'),
    box_info_cluster_meaning = choice('old', 'cluster_is_whole',
        'Whether box.info.cluster is about the replica set (old) or about the whole cluster (new).'),
    binary_data_decoding = {
        default = 'old',
        brief = 'Whether binary data become strings (old) or objects of the module varbinary (new).',
        action = function(is_new) internal.set_decodes_varbinary(is_new) end,
    },
    box_tuple_new_vararg = choice('old', 'tuple_new_takes_options',
        'Whether box.tuple.new(a, b) makes a tuple of both (old), or b are options of the tuple a (new).'),
    box_session_push_deprecation = choice('old', 'session_push_is_gone',
        'Whether box.session.push() raises an error (new).'),
    c_func_iproto_multireturn = either('new', 'How results of functions in C are packed. There are none here.'),
    box_tuple_extension = always('old', 'Whether tuples of calls go over the network with their formats. Here they never do.'),
    box_space_max = always('old', 'The largest number of a space: 2147483647 (old).'),
    box_error_unpack_type_and_code = choice('old', 'error_unpacks_less',
        'Whether error:unpack() leaves out base_type, custom_type and a code of 0 (new).'),
    box_error_serialize_verbose = always('old', 'Whether errors are printed with all their fields. Here it is the message.'),
    box_consider_system_spaces_synchronous = either('old',
        'Whether system spaces are synchronous once the queue has an owner. There is no replication here.'),
    wal_cleanup_delay_deprecation = always('old', 'Whether the option wal_cleanup_delay raises an error.'),
    replication_synchro_timeout = either('old', 'What replication_synchro_timeout does. There is no replication here.'),
    box_recovery_triggers_deprecation = always('old', 'Whether triggers run during recovery.'),
}

local order = {}
for name, option in pairs(options) do
    order[#order + 1] = name
    option.current = option.default
end
table.sort(order)

local function check(name, option)
    if type(name) ~= 'string' then
        error(('Option name must be a string (%s provided)'):format(type(name)), 3)
    end
    for field, kinds in pairs({ default = 'string', brief = 'string', obsolete = 'string/nil', action = 'function/nil',
        run_action_now = 'boolean/nil' }) do
        if not kinds:find(type(option[field]), 1, true) then
            error(('Invalid option table for %s, bad %s (%s is expected)'):format(name, field, kinds), 3)
        end
    end
    if option.default ~= 'new' and option.default ~= 'old' then
        error(("Invalid option table for %s, bad default ('new'/'old' is expected)"):format(name), 3)
    elseif not option.obsolete and option.action == nil then
        error(('Invalid option table for %s, bad action (function is expected)'):format(name), 3)
    elseif option.obsolete and option.default == 'old' then
        error(('Obsolete option %s default is wrong.'):format(name), 3)
    end
end

local function set(name, value)
    local option = options[name]
    if option == nil then
        error(('Invalid option %s'):format(tostring(name)), 3)
    elseif value ~= 'new' and value ~= 'old' and value ~= 'default' then
        error(('Invalid argument %s in option %s'):format(tostring(value), name), 3)
    end
    local way = value == 'default' and option.default or value
    if option.obsolete and way == 'old' or option.only and way ~= option.only then
        error(('Chosen option %s is no longer available'):format(name), 3)
    end
    if way ~= option.current and option.action then
        option.action(way == 'new')
    end
    option.current, option.is_chosen = way, value ~= 'default'
end

local function describe(name)
    local option = options[name]
    return {
        current = option.is_chosen and option.current or 'default', default = option.default, brief = option.brief,
        obsolete = option.obsolete,
    }
end

local compat = {}

function compat.help()
    return [[
compat.<option>                what an option is about and how it is set
compat.<option> = 'old'        sets it to 'old', 'new' or 'default'
compat{<option> = 'new', ...}  sets several
compat.dump([mode])            Lua code that sets all options as they are; mode is 'new', 'old', 'current' or 'default'
compat.add_option{...}         an option of the program's own: name, default, brief, action
]]
end

function compat.dump(mode)
    if mode ~= nil and mode ~= 'new' and mode ~= 'old' and mode ~= 'current' and mode ~= 'default' then
        error(('Usage: compat.dump([mode]) with a mode of new, old, current or default, not %s'):format(tostring(mode)), 2)
    end
    local lines = {}
    for _, name in ipairs(order) do
        local option = options[name]
        local way = mode
        if mode == nil then
            way = option.is_chosen and option.current or 'default'
        elseif mode == 'current' then
            way = option.current
        end
        if not option.obsolete then
            lines[#lines + 1] = ("    %s = '%s',"):format(name, way)
        end
    end
    return ("require('compat')({\n%s\n})"):format(table.concat(lines, '\n'))
end

function compat.add_option(option)
    if type(option) ~= 'table' then
        error('Wrong option description, table is expected', 2)
    end
    check(option.name, option)
    if options[option.name] == nil then
        order[#order + 1] = option.name
        table.sort(order)
    end
    options[option.name] = {
        default = option.default, current = option.default, brief = option.brief, obsolete = option.obsolete,
        action = option.action,
    }
    if option.run_action_now and option.action then
        option.action(option.default == 'new')
    end
end

function compat.preload() end
function compat.postload() end
function compat._options() return options end

package.loaded.compat = setmetatable(compat, {
    __index = function(_, name)
        if options[name] == nil then
            error(('Invalid option %s'):format(tostring(name)), 2)
        end
        return describe(name)
    end,
    __newindex = function(_, name, value) set(name, value) end,
    __call = function(_, list)
        if type(list) ~= 'table' then
            error(('Invalid argument for compat: %s'):format(tostring(list)), 2)
        end
        -- None is set if one is wrong.
        for name, value in pairs(list) do
            if options[name] == nil then
                error(('Invalid option %s'):format(tostring(name)), 2)
            elseif value ~= 'new' and value ~= 'old' and value ~= 'default' then
                error(('Invalid argument %s in option %s'):format(tostring(value), name), 2)
            end
        end
        for name, value in pairs(list) do
            set(name, value)
        end
    end,
    __serialize = function()
        local list = {}
        for _, name in ipairs(order) do
            local option = options[name]
            list[#list + 1] = { [name] = option.is_chosen and option.current or ('default (%s)'):format(option.current) }
        end
        return list
    end,
    __autocomplete = function() return options end,
})
