//! What `box.cfg` takes that is about addresses of the server, asked over a connection.
#![allow(clippy::unwrap_used, reason = "a test")]

use lycosa_tests::Rig;

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
