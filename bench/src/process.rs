//! What the operating system knows about a server's process.

/// Length of a tick in /proc/PID/stat. The kernel shows it to programs as a hundredth of a second on every machine we run on.
const TICK_SECONDS: f64 = 0.01;

fn read(pid: u32, file: &str) -> Result<String, String> {
    let path = format!("/proc/{pid}/{file}");
    std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))
}

/// Processor time of a process so far, in seconds: all its threads, user and system.
pub(crate) fn cpu_seconds(pid: u32) -> Result<f64, String> {
    let text = read(pid, "stat")?;
    ticks(&text).map(|ticks| ticks as f64 * TICK_SECONDS).ok_or_else(|| format!("/proc/{pid}/stat has no times"))
}

/// utime and stime together, fields 14 and 15. The second field is the name, in brackets, and may hold anything: counting starts behind it.
fn ticks(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<u64>().ok();
    Some(next()? + next()?)
}

/// Resident memory of a process in bytes.
pub(crate) fn resident_bytes(pid: u32) -> Result<u64, String> {
    let text = read(pid, "status")?;
    let kilobytes = text.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.parse().ok());
    kilobytes.map(|kilobytes: u64| kilobytes * 1024).ok_or_else(|| format!("/proc/{pid}/status has no VmRSS"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;

    #[test]
    fn times_are_found_behind_any_name() {
        let stat = "77 (a) b (c) S 1 77 77 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 4 0 100 0 0";
        assert_eq!(ticks(stat), Some(300));
        assert_eq!(ticks("77 (a) S 1"), None);
    }

    #[test]
    fn this_process_has_memory() {
        assert!(resident_bytes(std::process::id()).unwrap() > 100_000);
        assert!(cpu_seconds(std::process::id()).is_ok());
    }
}
