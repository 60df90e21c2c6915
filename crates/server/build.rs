//! Lua's C functions are left visible in the binary: modules with a half in C find them there when they are loaded.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let target = std::env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    if target == "linux" {
        for names in ["lua_*", "luaL_*", "luaopen_*", "luaJIT_*"] {
            println!("cargo:rustc-link-arg-bins=-Wl,--export-dynamic-symbol={names}");
        }
    }
}
