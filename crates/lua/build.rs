//! Builds the vendored LuaJIT, some of its files with changes of ours, and a shim over its private headers.
#![expect(unsafe_code, reason = "the environment of a build script is set before anything else runs")]

use std::path::{Path, PathBuf};
use std::{env, fs};

/// A change of one of LuaJIT's files: the text that is replaced must be there.
struct Change {
    file: &'static str,
    from: &'static str,
    to: &'static str,
}

/// Re-check each at every update of LuaJIT; what does not fit any more ends the build.
const CHANGES: &[Change] = &[
    // %f with digits that the number's own buffer does not hold went round it: '%.3f' of 1e-200 gave other digits.
    Change {
        file: "lj_strfmt_num.c",
        from: "/* Must not limit precision here or nd_round cannot round to even.\n      ** stop1 = 63 - (int32_t)STRFMT_PREC(sf) / 9;\n      */",
        to: "stop1 = 63 - (int32_t)STRFMT_PREC(sf) / 9;",
    },
    // Halves are rounded up, as in Tarantool's LuaJIT: '%.0f' of 2.5 is 3.
    Change {
        file: "lj_strfmt_num.c",
        from: "\tndhi = nd_round(nd, ndlo, ndhi, nde - prec - 1);",
        to: "\tndhi = nd_add_m10e(nd, ndhi, 5, nde - prec - 1);",
    },
    Change {
        file: "lj_strfmt_num.c",
        from: "\tndhi = nd_round(nd, ndlo, ndhi, 0 - prec - 1);",
        to: "\tndhi = nd_add_m10e(nd, ndhi, 5, 0 - prec - 1);",
    },
    // A pattern that tries everything ends when the code is to be ended.
    Change {
        file: "lib_string.c",
        from: "static const char *match(MatchState *ms, const char *s, const char *p)\n{\n",
        to: "extern volatile int lycosa_is_stopping;\n\nstatic const char *match(MatchState *ms, const char *s, const char *p)\n{\n  \
             if (lycosa_is_stopping) lj_err_callermsg(ms->L, \"fiber slice is exceeded: the code ran too long without waiting\");\n",
    },
    // A plain search takes time in the sum of both lengths, not in their product.
    Change {
        file: "lj_str.c",
        from: "      int c = *(const uint8_t *)p++;\n",
        to: "      extern void *memmem(const void *, size_t, const void *, size_t);\n      if (plen > 16) return (const char *)memmem(s, slen, p, plen);\n      int c = *(const uint8_t *)p++;\n",
    },
    // Scripts of Redis' commands (chunks `user_script`, `user_function`) have no tail calls: their errors name the line that called.
    Change {
        file: "lj_parse.c",
        from: "\tif (bc_op(*ip) == BC_VARG) goto notailcall;",
        to: "\tif (bc_op(*ip) == BC_VARG || (ls->chunkarg && !strncmp(ls->chunkarg, \"@user_\", 6))) goto notailcall;",
    },
    // Finalizers can be ended, too: hooks stay active in them.
    Change {
        file: "lj_gc.c",
        from: "  hook_entergc(g);  /* Disable hooks and new traces during __gc. */",
        to: "  g->hookmask = (g->hookmask | HOOK_GC) & ~HOOK_PROFILE;  /* No new traces during __gc; hooks end what runs too long. */",
    },
];

fn main() {
    // Loops in compiled code look at hooks, so that an endless one can be ended. luajit-src has no switch for it, but it
    // hands the C compiler's environment flags on.
    let flags = env::var("CFLAGS").unwrap_or_default();
    // SAFETY: a build script has one thread here.
    unsafe { env::set_var("CFLAGS", format!("{flags} -DLUAJIT_ENABLE_CHECKHOOK")) };
    let artifacts = luajit_src::Build::new().debug(false).build();
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let sources = out.join("luajit-build/src");
    let mut shim = cc::Build::new();
    // The shim holds lj_cdata.c with a change: LuaJIT's own object file must not be found beside it. So do the files that are changed.
    let mut replaced = vec![PathBuf::from("lj_cdata.o")];
    for path in changed_files(&sources, &out) {
        replaced.push(PathBuf::from(path.with_extension("o").file_name().expect("a source has a name")));
        shim.file(path);
    }
    let objects = shim
        .file("src/shim.c")
        .file("src/module_api.c")
        .include(sources)
        .warnings(false)
        .opt_level(2)
        .flag_if_supported("-fexceptions")
        .compile_intermediates();
    // Into the archive itself: each half needs the other, and linkers go through archives once.
    let library = artifacts.lib_dir().join("libluajit.a");
    let archiver = |verb: &str, files: &[PathBuf]| {
        let status = shim.get_archiver().arg(verb).arg(&library).args(files).status();
        assert!(status.is_ok_and(|status| status.success()), "{files:?} cannot be replaced in LuaJIT's archive");
    };
    archiver("d", &replaced);
    archiver("rs", &objects);
    artifacts.print_cargo_metadata();
    println!("cargo:rerun-if-changed=src/shim.c");
    println!("cargo:rerun-if-changed=src/module_api.c");
    println!("cargo:rerun-if-changed=build.rs");
}

/// Writes the changed files beside the build and returns their paths.
fn changed_files(sources: &Path, out: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = Vec::new();
    for change in CHANGES {
        let path = out.join(change.file);
        if !paths.contains(&path) {
            fs::copy(sources.join(change.file), &path).expect("LuaJIT's sources are in the build directory");
            paths.push(path.clone());
        }
        let text = fs::read_to_string(&path).expect("LuaJIT's sources are text");
        assert_eq!(text.matches(change.from).count(), 1, "a change of {} does not fit:\n{}", change.file, change.from);
        fs::write(&path, text.replace(change.from, change.to)).expect("the build directory can be written");
    }
    paths
}
