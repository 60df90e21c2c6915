-- Prints those of the engines it is asked for that this server has. Called as
-- `SERVER engines.lua ENGINE...` in an empty directory.

box.cfg{log = 'server.log', log_level = 1}

for _, engine in ipairs(arg) do
    if pcall(box.schema.space.create, 'in_' .. engine, {engine = engine}) then
        print(engine)
    end
end
os.exit(0)
