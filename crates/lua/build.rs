//! Builds the vendored LuaJIT and a shim over its private headers.
#![expect(unsafe_code, reason = "the environment of a build script is set before anything else runs")]

use std::env;
use std::path::PathBuf;

fn main() {
    // Loops in compiled code look at hooks, so that an endless one can be ended. luajit-src has no switch for it, but it
    // hands the C compiler's environment flags on.
    let flags = env::var("CFLAGS").unwrap_or_default();
    // SAFETY: a build script has one thread here.
    unsafe { env::set_var("CFLAGS", format!("{flags} -DLUAJIT_ENABLE_CHECKHOOK")) };
    let artifacts = luajit_src::Build::new().debug(false).build();
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let mut shim = cc::Build::new();
    // The shim holds lj_cdata.c with a change: LuaJIT's own object file must not be found beside it.
    let library = artifacts.lib_dir().join("libluajit.a");
    let status = shim.get_archiver().arg("d").arg(library).arg("lj_cdata.o").status();
    assert!(status.is_ok_and(|status| status.success()), "lj_cdata.o cannot be taken out of LuaJIT's archive");
    shim.file("src/shim.c")
        .include(out.join("luajit-build/src"))
        .warnings(false)
        .opt_level(2)
        .flag_if_supported("-fexceptions")
        .compile("ljshim");
    artifacts.print_cargo_metadata();
    println!("cargo:rerun-if-changed=src/shim.c");
    println!("cargo:rerun-if-changed=build.rs");
}
