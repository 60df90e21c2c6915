//! Spaces on disk when files go wrong: a damaged block costs the rows in it and no others, and a full disk refuses writes, in words, until
//! there is room again.
#![allow(clippy::unwrap_used, reason = "a test")]

use lycosa_tests::Rig;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// `text(id)` has 256 bytes that cannot be packed.
const SCRIPT: &str = "
local digest = require('digest')
function text(id, round)
    local seed = id .. ':' .. (round or 0)
    return digest.sha512(seed .. 'a') .. digest.sha512(seed .. 'b') .. digest.sha512(seed .. 'c') .. digest.sha512(seed .. 'd')
end
box.once('disk', function()
    box.schema.user.grant('guest', 'super')
    local stock = box.schema.space.create('stock', {engine = 'vinyl'})
    stock:create_index('primary')
end)";

fn runs(rig: &Rig) -> Vec<PathBuf> {
    let names = std::fs::read_dir(rig.data().join("lsm")).unwrap().map(|entry| entry.unwrap().path());
    names.filter(|path| path.extension().is_some_and(|extension| extension == "run")).collect()
}

#[test]
fn a_damaged_block_costs_the_rows_in_it_and_no_others() {
    let mut rig = Rig::start(SCRIPT, &[]);
    rig.answer("for id = 1, 2000 do box.space.stock:replace{id, text(id)} end box.snapshot() return 0");
    let runs = runs(&rig);
    let [run] = &runs[..] else { panic!("{runs:?}") };
    rig.server.kill();
    let mut bytes = std::fs::read(run).unwrap();
    bytes[200_000] ^= 1;
    std::fs::write(run, bytes).unwrap();
    rig.restart(&[]);

    let read_all = "local refused, why = 0, ''
        for id = 1, 2000 do
            local ok, row = pcall(box.space.stock.get, box.space.stock, id)
            if not ok then refused, why = refused + 1, tostring(row)
            elseif row[2] ~= text(id) and row[2] ~= text(id, 1) then error('wrong row ' .. id) end
        end
        return refused, why";
    let (refused, why) = rig.answer(read_all);
    assert!((1..50).contains(&refused), "{refused} rows: {why}");
    for word in ["index 'primary'", "space 'stock'", &run.display().to_string(), "damaged at byte "] {
        assert!(why.contains(word), "{word:?} is not in {why:?}");
    }

    // Merges would lose it: the run is left as it is, and dumps go on.
    for _ in 0..6 {
        rig.answer("for id = 1000, 2000 do box.space.stock:replace{id, text(id, 1)} end box.snapshot() return 0");
    }
    assert_eq!(rig.answer(read_all).0, refused, "what was written later lies above");
    let (failed, _) = rig.answer("return box.stat.vinyl().scheduler.tasks_failed");
    // Each is tried again after a longer time than the one before.
    assert!(failed <= 6, "{failed} compactions failed");

    // A row that is written again is there again.
    rig.answer("for id = 1, 2000 do box.space.stock:replace{id, text(id, 1)} end return 0");
    assert_eq!(rig.answer(read_all), (0, String::new()));
}

#[test]
fn a_full_disk_refuses_writes_until_there_is_room_and_loses_nothing() {
    // Far beyond what the log writes into a file whose successor is late, and less than a dump writes.
    const FILE_BYTES: u64 = 8 << 20;
    let options = ["--wal-max-size", "1MiB", "--vinyl-memory", "40MiB", "--wal-mode", "write"];
    let mut command = Command::new("sh");
    // Without the trap the signal that such a write raises would end the server.
    let limited = "trap '' XFSZ; ulimit -S -f \"$0\" && exec \"$@\"";
    command.args(["-c", limited, &(FILE_BYTES / 512).to_string()]).arg(lycosa_tests::binary());
    let mut rig = Rig::start_as(command, TempDir::new().unwrap(), SCRIPT, &options);

    let write = "local stock, why = box.space.stock, ''
        local id = stock.index.primary:max()
        id = id and id[1] or 0
        for _ = 1, 500 do
            local ok, error = pcall(stock.replace, stock, {id + 1, text(id + 1)})
            if not ok then why = tostring(error) break end
            id = id + 1
        end
        return id, why";
    let begun = Instant::now();
    let (written, why) = loop {
        let (id, why) = rig.answer(write);
        if !why.is_empty() {
            break (id, why);
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{id} rows and no refusal");
    };
    assert!(written > 1000, "{written}: {why}");
    for word in ["vinyl_memory", "data/lsm", "os error 27"] {
        assert!(why.contains(word), "{word:?} is not in {why:?}");
    }
    let check =
        format!("for id = 1, {written} do if box.space.stock:get(id)[2] ~= text(id) then error(id) end end return 1");
    assert_eq!(rig.answer(&check).0, 1, "reads go on");

    let (process, _) = rig.answer("return box.info.pid");
    let freed = Command::new("prlimit").args(["--pid", &process.to_string(), "--fsize=unlimited"]).status();
    assert!(freed.unwrap().success());
    let begun = Instant::now();
    let more = loop {
        let (id, _) = rig.answer(write);
        if id > written + 5_000 {
            break id;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{} rows came in", id - written);
    };

    rig.restart(&options);
    let check =
        format!("for id = 1, {more} do if box.space.stock:get(id)[2] ~= text(id) then error(id) end end return 1");
    assert_eq!(rig.answer(&check).0, 1);
}

#[test]
fn a_transaction_that_is_too_large_is_told_how_large_it_may_be() {
    let mut rig = Rig::start(SCRIPT, &["--vinyl-memory", "4MiB"]);
    let (written, why) = rig.answer(
        "box.begin()
        local id, why = 0, ''
        repeat
            id = id + 1
            local ok, error = pcall(box.space.stock.replace, box.space.stock, {id, text(id)})
            why = ok and '' or tostring(error)
        until not ok
        box.rollback()
        return id, why",
    );
    assert!(why.contains("vinyl_memory") && why.contains("may write 2097152 bytes"), "after {written} rows: {why}");
    assert_eq!(rig.answer("return box.space.stock:count()").0, 0);
}
