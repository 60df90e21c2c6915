//! What `box.cfg` takes that is about addresses of the server, asked over a connection.
#![allow(clippy::unwrap_used, reason = "a test")]

use lycosa_tests::{Rig, printed};

const SCRIPT: &str = "box.schema.user.grant('guest', 'super', nil, nil, { if_not_exists = true })";

#[test]
fn a_server_may_be_told_to_replicate_itself_and_nobody_else() {
    let mut rig = Rig::start(SCRIPT, &[]);
    let mut answer = |replicas: &str| {
        let own = "local own = tostring(box.info.listen) local port = own:match(':(%d+)$')";
        rig.eval(&format!("{own} box.cfg{{replication = {replicas}}}")).code()
    };
    for replicas in ["{}", "own", "{own}", "{'user:secret@' .. own}", "{own .. '?transport=plain'}", "{{uri = own}}"] {
        assert_eq!(answer(replicas), 0, "{replicas}");
    }
    for replicas in ["'x:1'", "{own, 'x:1'}", "{'x:' .. port}", "{{uri = 'x:1'}}", "{{}}", "1", "{box.NULL, 'y'}"] {
        assert_eq!(answer(replicas), 5, "{replicas}");
    }
}

#[test]
fn before_box_cfg_the_process_can_be_asked_about_itself() {
    let script = "print(box.info.status, box.info.ro, box.info().pid == require('tarantool').pid(), box.info.nothing)
        print(pcall(box.ctl.wait_ro, 1), (pcall(box.ctl.wait_rw, 0.01)), box.ctl.is_recovery_finished())
        print(tostring(select(2, pcall(function() return box.space end))):match('Please.*'))
        box.cfg{ log_level = 2 }
        print(box.info.status, box.info.ro, box.info.lsn)
        os.exit()";
    let expected = "unconfigured\ttrue\ttrue\tnil\n\
                    true\tfalse\tfalse\n\
                    Please call box.cfg{} first\n\
                    running\tfalse\t0\n";
    assert_eq!(printed(script), expected);
}
