//! Stored functions in C: what they are given and give, their errors and rights, and libraries that are replaced under them.
//!
//! The libraries are made of `stored_functions.c` by the machine's C compiler. STORED_FUNCTIONS_SERVER=/usr/bin/tarantool runs the script there; that a reload that
//! fails leaves everything as it was is written into the script, since 2.6 jumps into the library that is gone then.
#![allow(clippy::unwrap_used, reason = "a test")]

use lycosa_tests::{binary, root};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// From both servers.
const ANSWERS: &str = r#"echo: {{1, two, {3}}}
echo: {{}}
nothing: {}
version: {1}
fails: ClientError	102	unknown error
fails_with_words: ClientError	9000	words and 5
fails_late: ClientError	9000	late
writes: {{1, 10}, {2, 20}, {2, 25}, {3, 35}, {2, 25}, 7}
sum: {60}
rolls_back: ClientError	3	Duplicate key exists in unique index 'pk' in space 't'
commits: {60}
leaves_a_transaction: ClientError	30	Transaction is active at return from function
sum: {61}
writes: {{1, 10}, {2, 20}, {2, 25}, {3, 45}, {2, 25}, 7}
absent: ClientError	99	Failed to dynamically load function 'absent': stored.so: undefined symbol: absent
stored.echo	C	false	false	nil
echo from Lua: {1, two, {3}}
echo from Lua: {}
echo from Lua: Use func:call(table)
absent from Lua: ClientError	99	Failed to dynamically load function 'absent': stored.so: undefined symbol: absent
fails_with_words from Lua: ClientError	9000	words and 5
{1, 2}
writes_by_number from Lua: [80, 1]
true
echo from Lua: {in a transaction}
commits from Lua: ClientError	79	Operation is not permitted when there is an active transaction 
true
AccessDeniedError	42	Execute access to function 'stored.echo' is denied for user 'u'
AccessDeniedError	42	Execute access to function 'stored.absent' is denied for user 'u'
{{5}}
AccessDeniedError	42	Write access to space 't' is denied for user 'u'
{{80, 1}}
fails_after_a_while: fails_with_words: ClientError	9000	words and 5
ClientError	9000	my own words
none: ClientError	138	Failed to dynamically load module 'none': module not found
none.f: ClientError	138	Failed to dynamically load module 'none': module not found
stored: ClientError	99	Failed to dynamically load function 'stored': stored.so: undefined symbol: stored
echo: ClientError	138	Failed to dynamically load module 'echo': module not found
a.b.c: ClientError	138	Failed to dynamically load module 'a.b': module not found
stored.: ClientError	99	Failed to dynamically load function '': stored.so: undefined symbol: 
.echo: ClientError	138	Failed to dynamically load module '': module not found
dir.stored.echo: {{}}
broken.f: ClientError	138	Failed to dynamically load module 'broken': broken.so: file too short
ClientError	50	Failed to create function 'x': body and is_sandboxed options are not compatible with C language
ClientError	50	Failed to create function 'x': body and is_sandboxed options are not compatible with C language
ClientError	100	Unsupported language 'PERL' specified for function 'x'
reload stored: 
reload none: ClientError	165	Module 'none' does not exist
reload stored.version: ClientError	165	Module 'stored.version' does not exist
reload absent: ClientError	165	Module 'absent' does not exist
version: {1}
version_after_a_while: reload stored: 
version: {2}
{1}
reload stored: ClientError	99	Failed to dynamically load function 'nothing': stored.so: undefined symbol: nothing
version: {2}
nothing: {}
reload stored: 
version: {3}
reload stored: ClientError	138	Failed to dynamically load module 'stored': module not found
version: {3}
reload stored: AccessDeniedError	42	Usage access to universe '' is denied for user 'u'
reload none: AccessDeniedError	42	Usage access to universe '' is denied for user 'u'
reload stored: ClientError	165	Module 'stored' does not exist
reload stored: ClientError	165	Module 'stored' does not exist
version: {2}
"#;

/// From Lycosa alone.
const OWN_ANSWERS: &str = "malformed: ClientError\t20\tInvalid MsgPack - a value of a module in C\n\
version: {2}\n\
reload stored: ClientError\t138\tFailed to dynamically load module 'stored': stored.so: file too short\n\
version: {2}\n\
";

fn build(version: u32, path: &Path) {
    let mut compiler = Command::new(std::env::var("CC").unwrap_or_else(|_| "cc".to_string()));
    compiler.args([
        "-shared",
        "-fPIC",
        "-fvisibility=hidden",
        "-Wall",
        "-Wextra",
        "-Werror",
        &format!("-DVERSION={version}"),
        "-o",
    ]);
    assert!(compiler.arg(path).arg(root().join("tests/tests/stored_functions.c")).status().unwrap().success());
}

#[test]
fn stored_functions_in_c_are_called_refused_and_loaded_anew() {
    let dir = TempDir::new().unwrap();
    let path = |name: &str| dir.path().join(name);
    fs::create_dir_all(path("lib/dir")).unwrap();
    for version in 1..=3 {
        build(version, &path(&format!("{version}.so")));
    }
    for copy in ["lib/stored.so", "lib/dir/stored.so"] {
        fs::copy(path("1.so"), path(copy)).unwrap();
    }
    for broken in ["broken.so", "lib/broken.so"] {
        fs::write(path(broken), "no library").unwrap();
    }
    fs::write(path("app.lua"), include_str!("stored_functions.lua")).unwrap();
    let server = std::env::var_os("STORED_FUNCTIONS_SERVER");
    let wanted = if server.is_some() { ANSWERS.to_string() } else { format!("{ANSWERS}{OWN_ANSWERS}") };
    let mut run = Command::new(server.map_or_else(binary, Into::into));
    let done = run.arg("app.lua").current_dir(dir.path()).stdin(Stdio::null()).output().unwrap();
    let (said, logged) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert_eq!(said, wanted, "{logged}");
    assert!(done.status.success(), "{logged}");
}
