//! The terminal of the process, and the time of day where it stands.
#![expect(unsafe_code, reason = "termios(3), tcgetpgrp(3) and localtime_r(3)")]

use std::io;

const STANDARD_INPUT: i32 = 0;

/// True if standard input is a terminal that this process may read from: it is in the terminal's foreground process group. One in the
/// background would be stopped by the kernel as soon as it reads or changes the terminal.
pub fn is_foreground() -> bool {
    // SAFETY: no pointers are involved; a descriptor that is no terminal gives -1, which is no process group.
    unsafe { libc::tcgetpgrp(STANDARD_INPUT) == libc::getpgrp() }
}

/// Reads a line from the terminal without showing it. Waits for it. Errors: standard input is no terminal, or has ended.
pub fn read_hidden_line() -> io::Result<String> {
    // SAFETY: the structure is zeroed, which is valid, and filled by tcgetattr before it is used.
    let before = unsafe {
        let mut settings: libc::termios = std::mem::zeroed();
        if libc::tcgetattr(STANDARD_INPUT, &raw mut settings) != 0 {
            return Err(io::Error::last_os_error());
        }
        settings
    };
    let mut hidden = before;
    hidden.c_lflag &= !libc::ECHO;
    // What was typed already stays: TCSANOW throws nothing away.
    // SAFETY: the structure was filled by tcgetattr.
    unsafe { libc::tcsetattr(STANDARD_INPUT, libc::TCSANOW, &raw const hidden) };
    let mut line = String::new();
    let outcome = io::stdin().read_line(&mut line);
    // SAFETY: as above.
    unsafe { libc::tcsetattr(STANDARD_INPUT, libc::TCSANOW, &raw const before) };
    match outcome? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(line.trim_end_matches(['\n', '\r']).to_string()),
    }
}

/// A time of day with its date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalTime {
    /// The year, as in 2026.
    pub year: i32,
    /// 1 to 12.
    pub month: i32,
    /// 1 to 31.
    pub day: i32,
    /// 0 to 23.
    pub hour: i32,
    /// 0 to 59.
    pub minute: i32,
    /// 0 to 60.
    pub second: i32,
    /// Seconds that the zone is ahead of UTC.
    pub ahead: i64,
}

/// Seconds since 1970 as people here read them.
pub fn local_time(seconds: i64) -> LocalTime {
    // SAFETY: the structure is zeroed, which is valid; both pointers are to locals.
    let parts = unsafe {
        let mut parts: libc::tm = std::mem::zeroed();
        libc::localtime_r(&raw const seconds, &raw mut parts);
        parts
    };
    LocalTime {
        year: parts.tm_year + 1900,
        month: parts.tm_mon + 1,
        day: parts.tm_mday,
        hour: parts.tm_hour,
        minute: parts.tm_min,
        second: parts.tm_sec,
        ahead: parts.tm_gmtoff,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_has_a_date() {
        let time = local_time(1_795_345_888);
        // 2026-11-22 11:11:28 UTC, wherever the test runs.
        assert_eq!(time.year, 2026);
        assert_eq!(time.month, 11);
        assert_eq!((i64::from(time.minute * 60 + time.second) - time.ahead).rem_euclid(3600), 11 * 60 + 28);
    }
}
