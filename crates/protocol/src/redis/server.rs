//! The server as Redis' clients see it: `INFO`, `COMMAND`, `TIME`, `ACL`, `MEMORY` and the like.

use super::call::{Call, Kind};
use super::connection::REDIS_VERSION;
use super::failure::Outcome;
use super::keys::fields_of;
use super::reply::Reply;
use super::shared::DATABASES;
use super::table::{COMMANDS, Flag, Spec, find};

/// A section of `INFO`.
type Section = (&'static str, fn(&Call<'_>) -> Vec<(String, String)>);

fn pairs(list: &[(&str, String)]) -> Vec<(String, String)> {
    list.iter().map(|(name, value)| (name.to_string(), value.clone())).collect()
}

fn human(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes}B"),
        1024..1_048_576 => format!("{:.2}K", bytes as f64 / 1024.0),
        1_048_576..1_073_741_824 => format!("{:.2}M", bytes as f64 / 1_048_576.0),
        _ => format!("{:.2}G", bytes as f64 / 1_073_741_824.0),
    }
}

fn server_section(call: &Call<'_>) -> Vec<(String, String)> {
    let database = call.database;
    let seconds = database.uptime_ns() / 1_000_000_000;
    let now_us = database.environment().clock.wall_ns() / 1000;
    pairs(&[
        ("redis_version", REDIS_VERSION.to_string()),
        ("lycosa_version", env!("CARGO_PKG_VERSION").to_string()),
        ("redis_mode", "standalone".to_string()),
        ("os", std::env::consts::OS.to_string()),
        ("arch_bits", usize::BITS.to_string()),
        ("process_id", std::process::id().to_string()),
        ("run_id", database.instance_uuid().replace('-', "")),
        ("server_time_usec", now_us.to_string()),
        ("uptime_in_seconds", seconds.to_string()),
        ("uptime_in_days", (seconds / 86400).to_string()),
    ])
}

fn clients_section(call: &Call<'_>) -> Vec<(String, String)> {
    pairs(&[
        ("connected_clients", call.shared.connections.borrow().len().to_string()),
        ("maxclients", call.connection.service.config.connections_max.to_string()),
        ("blocked_clients", call.shared.waiting_count().to_string()),
        ("pubsub_clients", call.shared.channels.borrow().len().to_string()),
    ])
}

fn memory_section(call: &Call<'_>) -> Vec<(String, String)> {
    let (used, limit) = (call.database.arena().used() as u64, call.database.arena().limit() as u64);
    pairs(&[
        ("used_memory", used.to_string()),
        ("used_memory_human", human(used)),
        ("maxmemory", limit.to_string()),
        ("maxmemory_human", human(limit)),
        ("maxmemory_policy", "noeviction".to_string()),
        ("mem_allocator", "lycosa".to_string()),
    ])
}

fn persistence_section(call: &Call<'_>) -> Vec<(String, String)> {
    let mode = format!("{:?}", call.database.config.borrow().wal_mode).to_lowercase();
    pairs(&[
        ("loading", "0".to_string()),
        ("aof_enabled", "1".to_string()),
        ("wal_mode", mode),
        ("rdb_bgsave_in_progress", "0".to_string()),
        ("rdb_last_bgsave_status", "ok".to_string()),
        ("aof_last_write_status", "ok".to_string()),
    ])
}

fn stats_section(call: &Call<'_>) -> Vec<(String, String)> {
    let statistics = &call.database.statistics;
    pairs(&[
        ("total_connections_received", statistics.connections.get().to_string()),
        ("total_commands_processed", call.shared.commands.get().to_string()),
        ("total_net_input_bytes", statistics.received_bytes.get().to_string()),
        ("total_net_output_bytes", statistics.sent_bytes.get().to_string()),
        ("expired_keys", "0".to_string()),
        ("evicted_keys", "0".to_string()),
        ("keyspace_hits", call.shared.hits.get().to_string()),
        ("keyspace_misses", call.shared.misses.get().to_string()),
        ("pubsub_channels", call.shared.channels.borrow().len().to_string()),
        ("pubsub_patterns", call.shared.patterns.borrow().len().to_string()),
    ])
}

fn replication_section(_call: &Call<'_>) -> Vec<(String, String)> {
    pairs(&[
        ("role", "master".to_string()),
        ("connected_slaves", "0".to_string()),
        ("master_replid", "0".repeat(40)),
        ("master_repl_offset", "0".to_string()),
    ])
}

fn cpu_section(_call: &Call<'_>) -> Vec<(String, String)> {
    Vec::new()
}

fn cluster_section(_call: &Call<'_>) -> Vec<(String, String)> {
    pairs(&[("cluster_enabled", "0".to_string())])
}

fn keyspace_section(call: &Call<'_>) -> Vec<(String, String)> {
    let count = |db| call.spaces.keys(db).ok().filter(|_| call.spaces.has_keys(db)).map_or(0, |space| space.rows.len());
    let used = (0..DATABASES).map(|db| (db, count(db))).filter(|(_, count)| *count > 0);
    used.map(|(db, count)| (format!("db{db}"), format!("keys={count},expires=0,avg_ttl=0"))).collect()
}

const SECTIONS: [Section; 9] = [
    ("Server", server_section),
    ("Clients", clients_section),
    ("Memory", memory_section),
    ("Persistence", persistence_section),
    ("Stats", stats_section),
    ("Replication", replication_section),
    ("CPU", cpu_section),
    ("Cluster", cluster_section),
    ("Keyspace", keyspace_section),
];

pub(super) fn info(call: &mut Call<'_>) -> Outcome {
    let is_wanted = |name: &str| {
        let asked = &call.args[1..];
        let is = |word: &[u8], name: &str| word.eq_ignore_ascii_case(name.as_bytes());
        asked.is_empty()
            || asked
                .iter()
                .any(|word| is(word, name) || ["all", "everything", "default"].iter().any(|all| is(word, all)))
    };
    let mut text = String::new();
    for (name, section) in SECTIONS {
        if is_wanted(name) {
            if !text.is_empty() {
                text.push_str("\r\n");
            }
            text.push_str(&format!("# {name}\r\n"));
            for (name, value) in section(call) {
                text.push_str(&format!("{name}:{value}\r\n"));
            }
        }
    }
    call.reply().verbatim(&text);
    Ok(())
}

/// The names of flags, as `COMMAND` gives them.
const FLAG_NAMES: [(Flag, &str); 7] = [
    (Flag::Write, "write"),
    (Flag::Read, "readonly"),
    (Flag::Fast, "fast"),
    (Flag::Blocking, "blocking"),
    (Flag::Admin, "admin"),
    (Flag::NotInScript, "noscript"),
    (Flag::NoLogin, "no_auth"),
];

fn write_command(reply: &mut Reply<'_>, spec: &Spec) {
    reply.array(10);
    reply.text(spec.name);
    reply.integer(i64::from(spec.arity));
    let flags: Vec<_> = FLAG_NAMES.iter().filter(|(flag, _)| spec.is(*flag)).collect();
    reply.set(flags.len());
    flags.iter().for_each(|(_, name)| reply.simple(name));
    let (first, last, step) = spec.keys;
    for number in [first, last, step] {
        reply.integer(i64::from(number));
    }
    reply.set(1);
    reply.simple(&format!("@{}", spec.family));
    for _ in 0..3 {
        reply.array(0);
    }
}

/// The places of keys among the parts of a command.
fn key_places(spec: &Spec, args: &[&[u8]]) -> Vec<usize> {
    let (first, last, step) = spec.keys;
    if spec.name == "sort" {
        let store = (2..args.len().saturating_sub(1)).rfind(|at| args[*at].eq_ignore_ascii_case(b"store"));
        return [Some(1), store.map(|at| at + 1)].into_iter().flatten().collect();
    }
    if first == 0 {
        // Those that say how many there are.
        let at = match spec.name {
            "zunion" | "zinter" | "zdiff" | "sintercard" | "zintercard" | "lmpop" | "zmpop" => 1,
            "eval" | "evalsha" | "eval_ro" | "evalsha_ro" | "fcall" | "fcall_ro" | "blmpop" | "bzmpop" => 2,
            _ => return Vec::new(),
        };
        let count = args.get(at).and_then(|text| super::resp::integer(text)).unwrap_or(0);
        let count = usize::try_from(count).unwrap_or(0).min(args.len());
        return (at + 1..at + 1 + count).filter(|place| *place < args.len()).collect();
    }
    let end = if last < 0 { args.len() as i32 + last } else { last };
    (first..=end)
        .step_by(step.max(1) as usize)
        .map(|place| place as usize)
        .filter(|place| *place < args.len())
        .collect()
}

pub(super) fn command(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    let mut reply = call.reply();
    match args.get(1).map(|word| word.to_ascii_lowercase()).as_deref() {
        None => {
            reply.array(COMMANDS.len());
            COMMANDS.iter().for_each(|spec| write_command(&mut reply, spec));
        }
        Some(b"count") if args.len() == 2 => reply.count(COMMANDS.len()),
        Some(b"list") if args.len() == 2 => {
            reply.array(COMMANDS.len());
            COMMANDS.iter().for_each(|spec| reply.text(spec.name));
        }
        Some(b"info") => {
            let names: Vec<&[u8]> = args[2..].to_vec();
            reply.array(if names.is_empty() { COMMANDS.len() } else { names.len() });
            if names.is_empty() {
                COMMANDS.iter().for_each(|spec| write_command(&mut reply, spec));
            }
            for name in names {
                match find(name) {
                    Some(spec) => write_command(&mut reply, spec),
                    None => reply.null_array(),
                }
            }
        }
        Some(b"docs") => {
            let specs: Vec<&Spec> = match args.len() {
                2 => COMMANDS.iter().collect(),
                _ => args[2..].iter().filter_map(|name| find(name)).collect(),
            };
            reply.map(specs.len());
            for spec in specs {
                reply.text(spec.name);
                reply.map(2);
                reply.text("summary");
                reply.text(spec.summary);
                reply.text("group");
                reply.text(spec.family);
            }
        }
        Some(b"getkeys") if args.len() > 2 => {
            let Some(spec) = find(args[2]) else { return Err("ERR Invalid command specified".into()) };
            if !spec.takes(args.len() - 2) {
                return Err("ERR Invalid number of arguments specified for command".into());
            }
            let places = key_places(spec, &args[2..]);
            if places.is_empty() {
                return Err("ERR The command has no key arguments".into());
            }
            reply.array(places.len());
            places.iter().for_each(|place| reply.bulk(args[2 + place]));
        }
        _ => {
            let name = String::from_utf8_lossy(args[1]).into_owned();
            return Err(
                format!("ERR unknown subcommand or wrong number of arguments for '{name}'. Try COMMAND HELP.").into()
            );
        }
    }
    Ok(())
}

pub(super) fn time(call: &mut Call<'_>) -> Outcome {
    let us = call.database.environment().clock.wall_ns() / 1000;
    let mut reply = call.reply();
    reply.array(2);
    reply.text(&(us / 1_000_000).to_string());
    reply.text(&(us % 1_000_000).to_string());
    Ok(())
}

pub(super) fn lolwut(call: &mut Call<'_>) -> Outcome {
    call.reply()
        .verbatim(&format!("Lycosa {}: a wolf spider carries its young on its back.\n", env!("CARGO_PKG_VERSION")));
    Ok(())
}

/// Snapshots: `SAVE` and `BGSAVE` make a checkpoint.
pub(super) fn save(call: &mut Call<'_>) -> Outcome {
    call.check_writer()?;
    call.go_into_fiber()?;
    call.database.make_checkpoint()?;
    let text = match call.args[0].to_ascii_lowercase().as_slice() {
        b"bgsave" => "Background saving started",
        b"bgrewriteaof" => "Background append only file rewriting started",
        _ => "OK",
    };
    call.reply().simple(text);
    Ok(())
}

pub(super) fn lastsave(call: &mut Call<'_>) -> Outcome {
    let seconds = call.database.environment().clock.wall_ns() / 1_000_000_000;
    let begun = seconds.saturating_sub(call.database.uptime_ns() / 1_000_000_000);
    call.reply().integer(begun as i64);
    Ok(())
}

/// What is about several machines, or would stop this one.
pub(super) fn refused(call: &mut Call<'_>) -> Outcome {
    let name = String::from_utf8_lossy(call.args[0]).to_uppercase();
    Err(match name.as_str() {
        "CLUSTER" | "ASKING" | "READONLY" | "READWRITE" => "ERR This instance has cluster support disabled".to_string(),
        "SHUTDOWN" => "ERR SHUTDOWN is not for clients: stop the server where it was started".to_string(),
        _ => format!("ERR {name} is not there: this server replicates in no way that Redis knows"),
    }
    .into())
}

pub(super) fn role(call: &mut Call<'_>) -> Outcome {
    let mut reply = call.reply();
    reply.array(3);
    reply.text("master");
    reply.integer(0);
    reply.array(0);
    Ok(())
}

/// Bytes of a key with what it has: its row, and those of its elements as far as a sample tells.
pub(super) fn memory(call: &mut Call<'_>) -> Outcome {
    /// Elements that are looked at.
    const SAMPLE: u64 = 100;
    /// Header of a row and its entry in an index.
    const ROW_OVERHEAD: u64 = 26;
    if call.is_word(1, "usage") && call.args.len() >= 3 {
        let Some(entry) = call.find(call.args[2])? else {
            call.reply().null();
            return Ok(());
        };
        let mut bytes = entry.row_bytes() as u64 + ROW_OVERHEAD;
        if let Some(head) = entry.head.filter(|head| head.count > 0) {
            let (mut seen, mut sampled) = (0, 0);
            let small = super::call::Head { count: 0, ..head };
            call.walk(&small, |reader| {
                seen += 1;
                sampled += reader.rest().len() as u64 + ROW_OVERHEAD + 10;
                seen < SAMPLE
            })?;
            let _ = fields_of(head.kind);
            bytes += (sampled / seen.max(1)) * head.count;
            if head.kind == Kind::SortedSet {
                bytes += head.count * 16;
            }
        }
        call.reply().integer(bytes as i64);
    } else if call.is_word(1, "doctor") {
        call.reply().verbatim("Rows are in an arena with a limit (memtx_memory); see box.slab.info().\n");
    } else if call.is_word(1, "stats") {
        let used = call.database.arena().used();
        let mut reply = call.reply();
        reply.map(1);
        reply.text("total.allocated");
        reply.count(used);
    } else if call.is_word(1, "purge") {
        call.reply().ok();
    } else {
        let name = String::from_utf8_lossy(call.args[1]).into_owned();
        return Err(
            format!("ERR unknown subcommand or wrong number of arguments for '{name}'. Try MEMORY HELP.").into()
        );
    }
    Ok(())
}

pub(super) fn latency(call: &mut Call<'_>) -> Outcome {
    if call.is_word(1, "latest") || call.is_word(1, "history") {
        call.reply().array(0);
    } else if call.is_word(1, "reset") {
        call.reply().integer(0);
    } else if call.is_word(1, "doctor") {
        call.reply().verbatim(
            "Requests that take longer than too_long_threshold are in the log, with where their time went.\n",
        );
    } else {
        let name = String::from_utf8_lossy(call.args[1]).into_owned();
        return Err(
            format!("ERR unknown subcommand or wrong number of arguments for '{name}'. Try LATENCY HELP.").into()
        );
    }
    Ok(())
}

pub(super) fn slowlog(call: &mut Call<'_>) -> Outcome {
    if call.is_word(1, "get") {
        call.reply().array(0);
    } else if call.is_word(1, "len") {
        call.reply().integer(0);
    } else if call.is_word(1, "reset") {
        call.reply().ok();
    } else {
        let name = String::from_utf8_lossy(call.args[1]).into_owned();
        return Err(
            format!("ERR unknown subcommand or wrong number of arguments for '{name}'. Try SLOWLOG HELP.").into()
        );
    }
    Ok(())
}

pub(super) fn acl(call: &mut Call<'_>) -> Outcome {
    let user = call.database.catalog.user_name(call.connection.session().user.get());
    if call.is_word(1, "whoami") && call.args.len() == 2 {
        call.reply().text(&user);
    } else if call.is_word(1, "users") && call.args.len() == 2 {
        call.database.check_execute_universe(call.context)?;
        let users = call.database.catalog.users();
        let names: Vec<&str> =
            users.iter().filter(|user| user.kind == database::UserKind::User).map(|user| user.name.as_str()).collect();
        let mut reply = call.reply();
        reply.array(names.len());
        names.iter().for_each(|name| reply.text(name));
    } else if call.is_word(1, "cat") && call.args.len() == 2 {
        let mut families: Vec<&str> = COMMANDS.iter().map(|spec| spec.family).collect();
        families.sort_unstable();
        families.dedup();
        let mut reply = call.reply();
        reply.array(families.len());
        families.iter().for_each(|family| reply.text(family));
    } else if call.is_word(1, "genpass") {
        let mut bytes = [0; 32];
        call.database.environment().randomness.fill(&mut bytes);
        let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        call.reply().text(&text);
    } else {
        return Err("ERR users and their rights are those of the whole server: box.schema.user.create and grant change them for all protocols; here are ACL WHOAMI, USERS, CAT, GENPASS".into());
    }
    Ok(())
}
