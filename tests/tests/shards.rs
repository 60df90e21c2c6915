//! Rows in buckets over two storages, as vshard has them: buckets move while clients write and a storage is killed; no row is lost.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// One instance of `tests/rocks/shards.lua`, in a directory of its own. It ends with its test.
struct Instance(Child);

impl Instance {
    fn start(dir: &Path, role: &str, names: &[&str]) -> (Instance, BufReader<impl Read + use<>>) {
        let own = dir.join(format!("{role}-{}", names[0]));
        std::fs::create_dir_all(&own).expect("the directory can be written");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("rocks/shards.lua");
        let mut command = Command::new(lycosa_tests::binary());
        command.arg(script).arg(role).args(names).current_dir(own).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the binary starts");
        let out = BufReader::new(child.stdout.take().expect("it is piped"));
        (Instance(child), out)
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // One that has ended already is no failure.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Reads lines until one is as wanted; false at the end.
fn wait_for(out: &mut impl BufRead, wanted: &str) -> bool {
    out.lines().map_while(Result::ok).any(|line| line == wanted)
}

#[test]
fn buckets_move_without_losing_a_row() {
    let dir = tempfile::tempdir().expect("a directory");
    let (_first, mut first_out) = Instance::start(dir.path(), "storage", &["a"]);
    let (second, mut second_out) = Instance::start(dir.path(), "storage", &["b"]);
    assert!(wait_for(&mut first_out, "ready") && wait_for(&mut second_out, "ready"));
    let (mut router, mut out) = Instance::start(dir.path(), "router", &["a", "b"]);
    assert!(wait_for(&mut out, "kill"), "the router came as far as the moves");
    drop(second);
    let (_second, mut second_out) = Instance::start(dir.path(), "storage", &["b"]);
    assert!(wait_for(&mut second_out, "ready"));
    let mut said = String::new();
    out.read_to_string(&mut said).expect("text");
    let status = router.0.wait().expect("it ends");
    assert!(status.success() && said.contains("lost 0, doubled 0, misplaced 0, failures 0"), "{status}: {said}");
}
