//! Doubts that bytes of a client of Redis' protocol are cut into the same commands whatever follows them, and that what a command is made of again is the
//! same command.
//!
//! The input: a byte, odd for a client that has to log in; then what the client sends.

/// One case.
pub fn run(input: &[u8]) {
    let Some((&first, bytes)) = input.split_first() else { return };
    let must_log_in = first % 2 == 1;
    let (commands, length) = protocol::redis::cut(bytes, must_log_in);
    assert!(length <= bytes.len());
    let mut again = Vec::new();
    for command in commands.iter().filter(|command| !command.is_empty()) {
        again.extend_from_slice(format!("*{}\r\n", command.len()).as_bytes());
        for part in command {
            again.extend_from_slice(format!("${}\r\n", part.len()).as_bytes());
            again.extend_from_slice(part);
            again.extend_from_slice(b"\r\n");
        }
    }
    let (same, whole) = protocol::redis::cut(&again, false);
    assert_eq!(whole, again.len());
    assert!(same.iter().eq(commands.iter().filter(|command| !command.is_empty())), "commands are what they were");
}
