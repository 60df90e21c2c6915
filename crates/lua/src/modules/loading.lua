-- Finding Lua code, running texts, and what tells where code is: additions to `package`, `debug` and the globals.
local internal = ...

function dostring(text, ...)
    local chunk, reason = loadstring(text)
    if chunk == nil then
        error(reason, 2)
    end
    return chunk(...)
end

-- The file of the caller, or of the function `level` levels up; nil if that is no file.
function debug.sourcefile(level)
    local info = debug.getinfo(level or 2, 'S')
    local source = info and info.source
    return source and source:match('^@(.*)') or nil
end

-- The directory of that file.
function debug.sourcedir(level)
    local file = debug.sourcefile(level and level + 1 or 3)
    return file and file:match('(.*)/') or '.'
end

setmetatable(debug, {
    __index = function(_, name)
        local info = (name == '__file__' or name == '__dir__') and debug.getinfo(2, 'S')
        local file = info and info.source:match('^@(.*)')
        if name == '__dir__' then
            return file and file:match('(.*)/') or '.'
        end
        return file or nil
    end,
})

local search_root

local function root()
    return search_root or require('fio').cwd()
end

-- Where modules of the program itself and its rocks are, by the kind of file.
local function templates(suffixes, rocks)
    local list = {}
    for _, place in ipairs({ '', rocks }) do
        for _, suffix in ipairs(suffixes) do
            list[#list + 1] = root() .. '/' .. place .. suffix
        end
    end
    return table.concat(list, ';')
end

-- The file that `require` would load for a name; nil if there is none.
function package.search(name)
    if not name then
        return 'empty name of module'
    end
    return package.searchpath(name, templates({ '?.lua', '?/init.lua' }, '.rocks/share/tarantool/'))
        or package.searchpath(name, templates({ '?.so' }, '.rocks/lib/tarantool/'))
        or package.searchpath(name, package.path) or package.searchpath(name, package.cpath) or nil
end

function package.searchroot()
    return root()
end

-- `require` looks there before anywhere else. Without a path: where the caller's file is; box.NULL: the working directory again.
function package.setsearchroot(path)
    if not path then
        path = debug.sourcedir(3)
    elseif path == box.NULL then
        path = nil
    else
        assert(type(path) == 'string', 'Search root must be a string')
    end
    search_root = path and require('fio').abspath(path)
end

table.insert(package.loaders, 2, function(name)
    if search_root == nil then
        return nil
    end
    local file = package.searchpath(name, templates({ '?.lua', '?/init.lua' }, '.rocks/share/tarantool/'))
    return file and assert(loadfile(file)) or nil
end)

local function callable(lines, call)
    return setmetatable(lines, { __call = call })
end

help = callable({
    'box.cfg{} starts the database; box.space, box.schema, box.session, box.info and box.stat are its parts.',
    "fiber, fio, json, msgpack, yaml, decimal, uuid, digest, uri, clock, log and fun are modules: require('fiber').",
    'In a console, \\help lists its own commands.',
    'tutorial() leads through rows, indexes, procedures, fibers and rights.',
}, function(self) return self end)

tutorial = callable({
    'The tutorial is the page docs/tutorial.md: rows, indexes, procedures, fibers and rights, in half an hour.',
}, function(self) return table.concat(self, '\n') end)
package.loaded.help = { help = help, tutorial = tutorial }
