//! What logs hold is put in force, or refused with its place and passed over by force. And upserts make the same row whichever way they go.
#![allow(clippy::unwrap_used, reason = "a test")]

mod rig;

use database::{Config, Context, Database, INDEX_ID, Key, Operation, SPACE_ID, ScanRequest};
use rig::{config, drive, encode, insert, open_with, request};
use runtime::{Fault, FileSystem, ManualClock, OpenMode, SimulatedFiles, fiber};
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use storage::IteratorKind;
use tuple::{IndexId, Lsn, SpaceId, msgpack, update};
use wal::{Journal, JournalConfig, Vclock, WalMode};

const MEMORY: u32 = 512;
const DISK: u32 = 513;

fn open(files: &SimulatedFiles, force_recovery: bool) -> database::Result<Rc<Database>> {
    open_with(files, Config { force_recovery, ..config() })
}

/// Runs what may wait for the disk.
fn run<R: 'static>(database: &Rc<Database>, work: impl FnOnce(&Rc<Database>, &Context) -> R + 'static) -> R {
    let slot = Rc::new(RefCell::new(None));
    let (filled, own) = (Rc::clone(&slot), Rc::clone(database));
    fiber::spawn("test", move || {
        let context = request(&own);
        let done = work(&own, &context);
        *filled.borrow_mut() = Some(done);
    });
    while slot.borrow().is_none() {
        fiber::run_ready(100);
        drive(database);
    }
    slot.take().unwrap()
}

fn create_spaces(database: &Rc<Database>) {
    run(database, |database, context| {
        let insert = |space: u32, row: &str| insert(database, context, space, row).unwrap();
        for (id, engine) in [(MEMORY, "memtx"), (DISK, "vinyl")] {
            insert(
                SPACE_ID.0,
                &format!(r#"[{id}, 1, "s{id}", "{engine}", 0, {{}}, [{{"name": "id", "type": "unsigned"}}]]"#),
            );
            insert(INDEX_ID.0, &format!(r#"[{id}, 0, "primary", "tree", {{"unique": true}}, [[0, "unsigned"]]]"#));
        }
    });
}

fn rows(database: &Rc<Database>, space_id: u32) -> Vec<String> {
    run(database, move |database, context| {
        let space = database.space(SpaceId(space_id)).unwrap();
        let mut rows = Vec::new();
        let visit = |row: &[u8]| {
            let mut text = String::new();
            msgpack::format_value(row, &mut text);
            rows.push(text);
            true
        };
        database
            .select(context, &space, &ScanRequest::new(IndexId::PRIMARY, IteratorKind::All, Key::EMPTY), visit)
            .unwrap();
        rows
    })
}

/// Issue 14: Tarantool logs an update of a row that is not there without reading its operations, and keeps 1 and decimal 1 side by side.
#[test]
fn a_directory_of_tarantool_with_its_oddities_opens() {
    let files = SimulatedFiles::default();
    let fixtures: [(&str, &[u8]); 3] = [
        ("00000000000000000010.snap", include_bytes!("fixtures/tarantool/00000000000000000010.snap")),
        ("00000000000000000010.xlog", include_bytes!("fixtures/tarantool/00000000000000000010.xlog")),
        ("00000000000000000015.xlog", include_bytes!("fixtures/tarantool/00000000000000000015.xlog")),
    ];
    files.create_dir_all(Path::new("/db")).unwrap();
    for (name, bytes) in fixtures {
        files.open(&Path::new("/db").join(name), OpenMode::CREATE).unwrap().write_all_at(bytes, 0).unwrap();
    }
    let database = open(&files, false).unwrap();
    assert_eq!(rows(&database, 513), ["[1, 6, 5]", "[7, 1]"]);
    let mut kinds = rows(&database, 512);
    kinds.sort();
    assert_eq!(kinds.len(), 2);
    assert_eq!(kinds[1], "[2, 'two']");
}

/// Appends rows to the log of a database that was closed.
fn append(files: &SimulatedFiles, bodies: &[(u16, Vec<u8>)]) {
    let (vclock, instance_uuid) = {
        let database = open(files, false).unwrap();
        drive(&database);
        (database.appended().0, database.instance_uuid())
    };
    let config = JournalConfig {
        files: Arc::new(files.clone()),
        clock: Arc::new(ManualClock::default()),
        dir: PathBuf::from("/db"),
        mode: WalMode::Fsync,
        wal_max_size: 1 << 20,
        instance_uuid,
        replica_id: 1,
        in_flight_max: 0,
        queue_bytes_max: 1 << 20,
        prepare_bytes: 0,
        rewrite_bytes: u64::MAX,
    };
    let mut clock = Vclock::default();
    clock.set(1, Lsn(vclock));
    let mut journal = Journal::open(config, clock).unwrap();
    for (kind, body) in bodies {
        journal.begin();
        journal.row(*kind, 0, |out| out.extend_from_slice(body));
        journal.commit().unwrap();
    }
    journal.close().unwrap();
}

/// A body of `pairs`, each a key and an encoded value.
fn body(pairs: &[(u64, &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    msgpack::encode_map(&mut out, pairs.len() as u32);
    for (key, value) in pairs {
        msgpack::encode_uint(&mut out, *key);
        out.extend_from_slice(value);
    }
    out
}

#[test]
fn a_row_that_cannot_be_applied_is_refused_with_its_place_and_passed_over_by_force() {
    const UPDATE: u16 = 4;
    const DELETE: u16 = 5;
    const UPSERT: u16 = 9;
    let bad_ops = [
        "[[\"=\", 2]]",
        "[[\"%\", 2, 1]]",
        "[[\"+\", \"[2].x\", 1]]",
        "[[\"!\", 99, 1]]",
        "[[1]]",
        "7",
        "[[\"+\", 2, 1], 5]",
    ];
    for space_id in [MEMORY, DISK] {
        let id = encode(&space_id.to_string());
        let mut cases: Vec<(u16, Vec<u8>)> = bad_ops
            .iter()
            .map(|ops| (UPDATE, body(&[(0x10, &id), (0x15, &[1]), (0x20, &encode("[1]")), (0x21, &encode(ops))])))
            .collect();
        for ops in ["[[\"=\", 2]]", "[[\"+\", \"none\", 1]]", "9"] {
            cases.push((UPSERT, body(&[(0x10, &id), (0x15, &[1]), (0x21, &encode("[1, 1]")), (0x28, &encode(ops))])));
        }
        cases.push((UPDATE, body(&[(0x10, &id), (0x11, &[9]), (0x20, &encode("[1]")), (0x21, &encode("[]"))])));
        cases.push((DELETE, body(&[(0x10, &id), (0x20, &encode("[\"text\"]"))])));
        cases.push((DELETE, body(&[(0x10, &id), (0x20, &encode("7"))])));
        cases.push((3, body(&[(0x10, &id), (0x21, &encode("[\"text\"]"))])));
        cases.push((3, body(&[(0x10, &encode("999")), (0x21, &encode("[1]"))])));
        cases.push((3, body(&[(0x10, &id), (0x21, &encode("{}"))])));
        for case in cases {
            let files = SimulatedFiles::default();
            {
                let database = open(&files, false).unwrap();
                create_spaces(&database);
                run(&database, move |database, context| {
                    let space = database.space(SpaceId(space_id)).unwrap();
                    database.execute(context, &space, Operation::Insert { tuple: &encode("[1, \"x\"]") }).unwrap();
                });
                drive(&database);
            }
            let good = body(&[(0x10, &id), (0x21, &encode("[2, \"behind\"]"))]);
            append(&files, &[case.clone(), (3, good)]);
            let mut text = String::new();
            msgpack::format_value(&case.1, &mut text);
            let Err(error) = open(&files, false) else { panic!("{text} is taken") };
            let message = error.to_string();
            assert!(message.contains(".xlog") && message.contains("cannot be applied"), "{text}: {message}");
            let database = open(&files, true).unwrap();
            assert_eq!(rows(&database, space_id), ["[1, 'x']", "[2, 'behind']"], "{text}");
        }
    }
}

/// Issue 14: inside a transaction that has written nobody looked at the rows on disk.
#[test]
fn a_format_that_rows_on_disk_may_not_fit_is_refused_where_they_cannot_be_looked_at() {
    let files = SimulatedFiles::default();
    let database = open(&files, false).unwrap();
    create_spaces(&database);
    run(&database, |database, context| {
        let space = database.space(SpaceId(DISK)).unwrap();
        let insert =
            |row: &str| database.execute(context, &space, Operation::Insert { tuple: &encode(row) }).map(|_| ());
        insert("[1, \"text\"]").unwrap();
        let spaces = database.space(SPACE_ID).unwrap();
        let alter = |format: &str| {
            let row = format!(
                r#"[{DISK}, 1, "s{DISK}", "vinyl", 0, {{}}, [{{"name": "id", "type": "unsigned"}}, {format}]]"#
            );
            database.execute(context, &spaces, Operation::Replace { tuple: &encode(&row) }).map(|_| ())
        };
        database.begin(context).unwrap();
        insert("[2, \"text\"]").unwrap();
        let refused = alter(r#"{"name": "count", "type": "unsigned", "is_nullable": true}"#).unwrap_err();
        assert_eq!(refused.code(), 54, "{refused}");
        alter(r#"{"name": "any", "type": "any", "is_nullable": true}"#).unwrap();
        database.commit(context).unwrap();
        assert_eq!(alter(r#"{"name": "count", "type": "unsigned", "is_nullable": true}"#).unwrap_err().code(), 23);
        alter(r#"{"name": "name", "type": "string"}"#).unwrap();
    });
}

/// Small random numbers.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn pick<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.below(list.len() as u64) as usize]
    }

    fn ops(&mut self) -> String {
        let fields = [
            "1",
            "2",
            "2",
            "3",
            "4",
            "-1",
            "\"[2]\"",
            "\"[3][1]\"",
            "\"[3][2].a\"",
            "\"[3][2].b[1]\"",
            "\"[3][3]\"",
            "\"[1]\"",
            "9",
        ];
        let values = ["1", "7", "\"text\"", "[1, 2]", "{\"a\": 1, \"b\": [3]}", "null", "-5"];
        let one = |dice: &mut Dice| {
            let (code, field) = (dice.pick(&["=", "=", "!", "#", "+", "-", "|", ":"]), dice.pick(&fields));
            match code {
                ":" => format!("[\":\", {field}, 1, 1, \"Q\"]"),
                "#" | "|" => format!("[\"{code}\", {field}, 1]"),
                "+" | "-" => format!("[\"{code}\", {field}, {}]", 1 + dice.below(9)),
                _ => format!("[\"{code}\", {field}, {}]", dice.pick(&values)),
            }
        };
        let count = 1 + self.below(4);
        format!("[{}]", (0..count).map(|_| one(self)).collect::<Vec<_>>().join(", "))
    }
}

fn restart(files: &SimulatedFiles, database: Rc<Database>) -> Rc<Database> {
    drive(&database);
    drop(database);
    fiber::run_ready(100);
    files.set_fault(Fault { is_cache_cold: true, ..Fault::default() });
    open(files, false).unwrap()
}

/// Memory, disk with the row at hand, noted on disk, joined with others, merged at a dump, read again after a start.
#[test]
fn upserts_make_the_same_row_whichever_way_they_go() {
    for seed in 0..40 {
        let mut dice = Dice(seed);
        let files = SimulatedFiles::default();
        let mut database = open(&files, false).unwrap();
        create_spaces(&database);
        let first = "[1, 10, [5, {\"a\": 1, \"b\": [2, 3]}, 6], \"text\"]";
        let mut model = encode(first);
        run(&database, move |database, context| {
            for space in [MEMORY, DISK] {
                let space = database.space(SpaceId(space)).unwrap();
                database.execute(context, &space, Operation::Insert { tuple: &encode(first) }).unwrap();
            }
        });
        database.make_checkpoint().unwrap();
        database = restart(&files, database);
        for step in 0..24 {
            let ops = dice.ops();
            let encoded = encode(&ops);
            let mut changed = Vec::new();
            update::upsert(&encoded, &model, None, 1, &mut changed).unwrap();
            // An upsert that moves its row, or makes one that the space cannot hold, changes nothing.
            if changed.starts_with(&[changed[0], 1]) {
                model = changed;
            }
            run(&database, move |database, context| {
                for space in [MEMORY, DISK] {
                    let space = database.space(SpaceId(space)).unwrap();
                    let operation = Operation::Upsert { tuple: &[0x91, 1], ops: &encoded, index_base: 1 };
                    let _ = database.execute(context, &space, operation);
                }
            });
            match dice.below(12) {
                0 => database.make_checkpoint().unwrap(),
                1 => database = restart(&files, database),
                2 => {
                    database.make_checkpoint().unwrap();
                    database = restart(&files, database);
                }
                3..7 => {}
                _ => continue,
            }
            let mut expected = String::new();
            msgpack::format_value(&model, &mut expected);
            for space in [MEMORY, DISK] {
                assert_eq!(
                    rows(&database, space),
                    [expected.clone()],
                    "seed {seed}, step {step}, space {space}: {ops}"
                );
            }
        }
    }
}
