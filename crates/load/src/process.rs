//! What the operating system knows about a server's process.

/// Length of a tick in /proc/PID/stat. The kernel shows it to programs as a hundredth of a second on every machine we run on.
const TICK_SECONDS: f64 = 0.01;

fn read(pid: u32, file: &str) -> Result<String, String> {
    let path = format!("/proc/{pid}/{file}");
    let bytes = runtime::read_file(path.as_ref()).map_err(|error| format!("{path}: {error}"))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Processor time of a process so far, in seconds: all its threads, user and system, and the children that have ended. Errors: there is no such process, or `/proc` does not show it.
pub fn cpu_seconds(pid: u32) -> Result<f64, String> {
    let text = read(pid, "stat")?;
    ticks(&text).map(|ticks| ticks as f64 * TICK_SECONDS).ok_or_else(|| format!("/proc/{pid}/stat has no times"))
}

/// utime, stime, cutime and cstime together, fields 14 to 17. The second field is the name, in brackets, and may hold anything: counting starts behind it.
fn ticks(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<u64>().ok();
    Some(next()? + next()? + next()? + next()?)
}

/// Resident memory of a process in bytes. Errors: there is no such process, or `/proc` does not show it.
pub fn resident_bytes(pid: u32) -> Result<u64, String> {
    let text = read(pid, "status")?;
    let kilobytes = text.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.parse().ok());
    kilobytes.map(|kilobytes: u64| kilobytes * 1024).ok_or_else(|| format!("/proc/{pid}/status has no VmRSS"))
}

/// A line of /proc/PID/io. The kernel tells it only of processes of the same user.
fn io_bytes(pid: u32, name: &str) -> Result<u64, String> {
    let text = read(pid, "io")?;
    let found = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')?.trim().parse().ok());
    found.ok_or_else(|| format!("/proc/{pid}/io has no {name}"))
}

/// Bytes that a process has had written to a device so far. Errors: there is no such process, or `/proc` does not show it.
pub fn written_bytes(pid: u32) -> Result<u64, String> {
    io_bytes(pid, "write_bytes")
}

/// Bytes that a process has had read from a device so far: what came from the page cache does not count.
///
/// Errors: there is no such process, or `/proc` does not show it.
pub fn device_read_bytes(pid: u32) -> Result<u64, String> {
    io_bytes(pid, "read_bytes")
}

/// Processor time of the whole machine so far, in seconds: what was spent, and what there was, idle time included.
///
/// Errors: there is no such process, or `/proc` does not show it.
pub fn machine_seconds() -> Result<(f64, f64), String> {
    let bytes = runtime::read_file("/proc/stat".as_ref()).map_err(|error| format!("/proc/stat: {error}"))?;
    let text = String::from_utf8_lossy(&bytes);
    machine_ticks(&text)
        .map(|(spent, all)| (spent as f64 * TICK_SECONDS, all as f64 * TICK_SECONDS))
        .ok_or_else(|| "/proc/stat has no times".to_string())
}

/// Of the first line: user, nice, system, idle, iowait, irq, softirq, steal. What guests took is in user already.
fn machine_ticks(stat: &str) -> Option<(u64, u64)> {
    let fields: Vec<u64> =
        stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace().take(8).filter_map(|n| n.parse().ok()).collect();
    let all = fields.iter().sum::<u64>();
    Some((all - fields.get(3)? - fields.get(4)?, all))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;

    #[test]
    fn times_are_found_behind_any_name() {
        let stat = "77 (a) b (c) S 1 77 77 0 -1 4194560 100 0 0 0 250 50 7 3 20 0 4 0 100 0 0";
        assert_eq!(ticks(stat), Some(310));
        assert_eq!(ticks("77 (a) S 1"), None);
    }

    #[test]
    fn idle_time_is_not_spent() {
        assert_eq!(machine_ticks("cpu  10 1 5 100 4 2 3 0 7 0\ncpu0 1"), Some((21, 125)));
        assert!(machine_seconds().unwrap().1 > 0.0);
    }

    #[test]
    fn this_process_has_memory() {
        assert!(resident_bytes(std::process::id()).unwrap() > 100_000);
        assert!(cpu_seconds(std::process::id()).is_ok());
    }
}
