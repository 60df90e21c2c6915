//! The Lua sources, in the order they run.

/// Name and source. A name that `require` finds is set by the module itself.
pub(crate) const MODULES: &[(&str, &str)] = &[
    ("prelude", include_str!("modules/prelude.lua")),
    ("strings", include_str!("modules/strings.lua")),
    ("error", include_str!("modules/error.lua")),
    ("text", include_str!("modules/text.lua")),
    ("tuple", include_str!("modules/tuple.lua")),
    ("clock", include_str!("modules/clock.lua")),
    ("errno", include_str!("modules/errno.lua")),
    ("uuid", include_str!("modules/uuid.lua")),
    ("digest", include_str!("modules/digest.lua")),
    ("tarantool", include_str!("modules/tarantool.lua")),
    ("log", include_str!("modules/log.lua")),
    ("uri", include_str!("modules/uri.lua")),
    ("decimal", include_str!("modules/decimal.lua")),
    ("fun", include_str!("modules/fun.lua")),
    ("fiber", include_str!("modules/fiber.lua")),
    ("fio", include_str!("modules/fio.lua")),
    ("loading", include_str!("modules/loading.lua")),
    ("space", include_str!("modules/space.lua")),
    ("schema", include_str!("modules/schema.lua")),
    ("access", include_str!("modules/access.lua")),
    ("box", include_str!("modules/box.lua")),
    ("console", include_str!("modules/console.lua")),
];
