//! Random statements that were put to the real Tarantool: Lycosa answers nearly all of them as it did. See `tests/differential`.

use std::path::Path;
use std::process::Command;

/// Percent of the kept answers that may differ: each has its cause in COMPATIBILITY.md or is a debt.
const ALLOWED: &str = "3";

#[test]
fn kept_random_statements_are_answered_as_by_tarantool() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("differential");
    let output = Command::new("python3")
        .arg("-B")
        .arg(folder.join("run.py"))
        .args(["--jobs", "2", "--allowed", ALLOWED, "--replay"])
        .arg(folder.join("sample.json"))
        .arg("--lycosa")
        .arg(lycosa_tests::binary())
        .output()
        .expect("python3 runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
}
