//! Modules in C: what `require` loads finds the functions that the binary exports.
//!
//! The module is `module_in_c.c`, built here by the machine's C compiler. But for `refused`, Tarantool 2.6 gives the same answers: MODULES_IN_C_SERVER=/usr/bin/tarantool
//! runs it there.
#![allow(clippy::unwrap_used, reason = "a test")]

use lycosa_tests::{binary, root};
use std::fs;
use std::process::{Command, Stdio};
use tempfile::TempDir;

const SCRIPT: &str = "
box.cfg{ wal_mode = 'none', log_level = 4 }
package.cpath = './?.so;' .. package.cpath
local m = require('module_in_c')
local function show(...)
    local shown = {}
    for at = 1, select('#', ...) do shown[at] = tostring((select(at, ...))) end
    print(table.concat(shown, ' '))
end
box.schema.space.create('s'):create_index('pk')
show(m.has_state)
show(m.fill('s', 5))
show(pcall(m.fill, 's', 5))
show(pcall(m.fill, 'none', 5))
show(m.sum('s'))
show(m.move('s', 0))
show(m.move('s', 1))
show(m.tuples(box.tuple.new({ 1, 'two', { 3 } })))
show(pcall(m.tuples, 5))
local function cdata(number)
    local unsigned, signed, point, is_right = m.cdata(number)
    show(unsigned, signed, point.x, point.y, is_right)
end
cdata(5)
cdata(123456789012345678ULL)
show(pcall(m.cdata, 'x'))
show(m.call(function(x) return x + 1 end, 1))
show(m.call(function() box.error(box.error.TIMEOUT) end))
show(m.call(5))
show(m.fibers())
collectgarbage()
m.say('said')
if box.info.version:match('lycosa') then show(m.refused()) end
-- Rights are those of the user.
box.session.su('guest')
show(pcall(m.fill, 's', 5))
box.session.su('admin')
box.schema.user.grant('guest', 'read', 'space', 's')
box.session.su('guest')
show(pcall(m.fill, 's', 5))
box.session.su('admin')
os.exit()
";

const ANSWERS: &str = "\
true
5 3
false Duplicate key exists in unique index 'pk' in space 's'
false no space none for the module
30 4 5
[1, 2]
[1, 99]
[1, 'two', [3]] true
false Invalid argument #1 (box.tuple expected, got number)
5 -5 3 4 true
123456789012345678ULL -123456789012345678LL 3 4 true
false expected uint64_t as 1 argument
2
ClientError 78 Timeout exceeded

21 120 42 -7 -1 0 0 2
9
false no space s for the module
false Write access to space 's' is denied for user 'guest'
";

#[test]
fn a_module_in_c_reads_and_writes_rows_runs_fibers_and_makes_cdata() {
    let dir = TempDir::new().unwrap();
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_string());
    let mut build = Command::new(compiler);
    build.args(["-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-o"]).arg(dir.path().join("module_in_c.so"));
    assert!(build.arg(root().join("tests/tests/module_in_c.c")).status().unwrap().success());
    fs::write(dir.path().join("app.lua"), SCRIPT).unwrap();
    let mut run = Command::new(std::env::var_os("MODULES_IN_C_SERVER").map_or_else(binary, Into::into));
    let done = run.arg("app.lua").current_dir(dir.path()).stdin(Stdio::null()).output().unwrap();
    let (said, logged) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert_eq!(said, ANSWERS, "{logged}");
    assert!(done.status.success() && logged.contains("said 42"), "{logged}");
}

#[test]
fn exactly_the_listed_functions_are_exported() {
    let Ok(done) = Command::new("nm").args(["-D", "--defined-only"]).arg(binary()).output() else { return };
    let mut found: Vec<String> = String::from_utf8_lossy(&done.stdout)
        .lines()
        .filter_map(|line| line.split_whitespace().nth(2).map(str::to_string))
        .collect();
    found.sort();
    let mut listed: Vec<String> =
        fs::read_to_string(root().join("crates/lua/exports.txt")).unwrap().lines().map(str::to_string).collect();
    listed.sort();
    assert_eq!(found, listed);
}
