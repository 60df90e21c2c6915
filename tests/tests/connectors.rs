//! Real connectors against the real binary: the programs of `tests/clients`, which pass against Tarantool, Redis and memcached too.

use lycosa_tests::{binary, root};
use std::process::{Command, Stdio};

/// Runs `run.py` with one connector.
fn run(connector: &str) {
    run_script("tests/clients/run.py", connector);
}

/// Runs a script with one of its programs. A machine without Python or the package passes it over and says so.
fn run_script(script: &str, connector: &str) {
    let mut command = Command::new("python3");
    command.arg(root().join(script)).args(["--only", connector, "--server"]).arg(binary());
    if std::env::var_os("LYCOSA_CLIENTS_DIR").is_none() {
        // Beside this test, so that the packages stay from run to run.
        let test = std::env::current_exe().expect("a running test has a path");
        let target = test.ancestors().nth(3).expect("tests run in TARGET/PROFILE/deps");
        command.env("LYCOSA_CLIENTS_DIR", target.join("clients"));
    }
    match command.stdin(Stdio::null()).output() {
        Err(error) => println!("SKIPPED: python3 cannot be started: {error}"),
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout);
            print!("{text}");
            assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
        }
    }
}

#[test]
fn tarantool_python_works() {
    run("tarantool-python");
}

#[test]
fn asynctnt_works() {
    run("asynctnt");
}

#[test]
fn go_tarantool_works() {
    run("go-tarantool");
}

#[test]
fn node_tarantool_driver_works() {
    run("tarantool-driver");
}

#[test]
fn cartridge_driver_works() {
    run("cartridge-driver");
}

/// Runs the programs of one kind against the doors of other protocols.
fn run_doors(kind: &str) {
    run_script("tests/clients/doors.py", kind);
}

#[test]
fn redis_py_and_rq_work() {
    run_doors("python");
}

#[test]
fn ioredis_works() {
    run_doors("ioredis");
}

#[test]
fn memjs_works() {
    run_doors("memjs");
}

#[test]
fn go_redis_and_gomemcache_work() {
    run_doors("go");
}

#[test]
fn jedis_and_spymemcached_work() {
    run_doors("java");
}

#[test]
fn php_redis_works() {
    run_doors("php");
}

#[test]
fn psycopg_works() {
    run_doors("psycopg");
}

#[test]
fn pymysql_and_mysql_connector_work() {
    run_doors("pymysql");
}
