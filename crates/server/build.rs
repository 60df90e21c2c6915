//! Makes the binary show the functions that modules in C call, and no others.

use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    // The words are those of its linkers.
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system != "linux") {
        return;
    }
    let here = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR"));
    let names = here.join("../lua/exports.txt");
    println!("cargo:rerun-if-changed={}", names.display());
    println!("cargo:rerun-if-changed=build.rs");
    let text = fs::read_to_string(&names).expect("the list of exported functions is there");
    let names: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
    let out = std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    let list = Path::new(&out).join("exports.list");
    fs::write(&list, format!("{{ {}; }};\n", names.join("; "))).expect("the build directory can be written");
    println!("cargo:rustc-link-arg-bins=-Wl,--dynamic-list={}", list.display());
    // Nothing in the binary itself needs most of them: they are taken out of the libraries for the modules.
    for name in names {
        println!("cargo:rustc-link-arg-bins=-Wl,--undefined={name}");
    }
}
