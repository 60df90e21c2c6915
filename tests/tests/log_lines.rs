//! What the log of events says, and how.

use lycosa_tests::{Rig, Server};
use std::time::Duration;

/// A line that is written is read by then.
const SAID_MAX: Duration = Duration::from_secs(30);

const SCRIPT: &str = r#"
local log = require('log')
log.info('a line %d', 1)
log.log_format('json')
log.warn('another "line"')
log.log_format('plain')
local wrong = {}
for _, name in ipairs({ 'swim', 'metrics' }) do
    for _ = 1, 2 do
        local fine, reason = pcall(require, name)
        if fine or reason.code ~= 5 or not reason.message:find('does not support') then
            table.insert(wrong, name)
        end
    end
end
local fine, reason = pcall(function() return box.feedback.save('x') end)
if fine or reason.code ~= 5 then
    table.insert(wrong, 'feedback')
end
log.info('wrong: %s', #wrong == 0 and 'nothing' or table.concat(wrong, ' '))
box.schema.user.grant('guest', 'execute', 'universe')
"#;

/// The part of a log that follows a text.
fn line_with<'a>(log: &'a str, text: &str) -> &'a str {
    log.lines().find(|line| line.contains(text)).unwrap_or_else(|| panic!("{text} is not in\n{log}"))
}

#[test]
fn a_line_says_when_who_and_where() {
    let mut rig = Rig::start(SCRIPT, &["--too-long-threshold", "0.05"]);
    let Rig { server, client, .. } = &mut rig;
    server.wait(client, SAID_MAX, |server| server.log().contains("ready"));
    // Rights of guest are there, so the start does not say that there are none.
    assert!(!rig.server.log().contains("guest may do nothing"), "{}", rig.server.log());
    let plain = rig.server.log();
    let line = line_with(&plain, "a line 1");
    let (head, _) = line.trim().split_once(" I> a line 1").unwrap_or_else(|| panic!("{line}"));
    let words: Vec<&str> = head.split(' ').collect();
    assert_eq!(words.len(), 5, "{line}");
    assert_eq!((words[0].len(), words[1].len()), ("2026-11-22".len(), "11:11:28.052".len()), "{line}");
    assert!(words[2].starts_with('[') && words[3].starts_with("main/") && words[4].ends_with(".lua:3"), "{line}");
    let json = line_with(&plain, "another");
    assert!(json.contains(r#""message":"another \"line\"""#) && json.contains(r#""level":"WARN""#), "{json}");
    line_with(&plain, "wrong: nothing");
    assert!(line_with(&plain, "Lycosa 0").contains("directory "), "{plain}");
    rig.eval(
        "require('fiber').sleep(0.03) local begun = os.clock() while os.clock() - begun < 0.03 do end return 1, 'slow'",
    );
    let Rig { server, client, .. } = &mut rig;
    assert!(
        server.wait(client, SAID_MAX, |server| server.log().contains("too long EVAL of 'require")),
        "{}",
        server.log()
    );
    let slow = server.log();
    let line = line_with(&slow, "too long EVAL");
    assert!(line.contains("running and") && line.contains(" W> "), "{line}");
}

#[test]
fn a_fresh_server_says_that_guest_may_do_nothing() {
    let server = Server::start();
    let mut client = server.connect();
    server.wait(&mut client, SAID_MAX, |server| server.log().contains("ready"));
    assert!(server.log().contains("guest may do nothing until granted"), "{}", server.log());
}
