//! Golden scripts: Lycosa answers as the real Tarantool did, but for the differences that are kept beside the scripts.
//!
//! The scripts, their answers and how to renew them: `tests/scripts/README.md`.

use std::path::Path;
use std::process::Command;

#[test]
fn golden_scripts_are_answered_as_recorded() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/record.py");
    let output = Command::new("python3")
        .arg(script)
        .args(["--check", "--known", "--jobs", "2", "--server"])
        .arg(lycosa_tests::binary())
        .output()
        .expect("python3 runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
}
