//! Foreign keys with actions, against a model: random rows that name each other, random statements, on both engines and across them.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

mod rig;

use database::{Context, Database, ErrorCode, INDEX_ID, Operation, SPACE_ID, ScanRequest};
use proptest::prelude::*;
use rig::{config, drive, encode, insert, open_with, request, unless_stuck};
use runtime::{Loss, SimulatedFiles};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use storage::{IteratorKind, Key};
use tuple::msgpack::{Kind, Reader};
use tuple::{IndexId, SpaceId};

/// Rows: a key and two more fields, each may be null.
type Row = (u64, Option<u64>, Option<u64>);

const PARENTS: usize = 0;
const CHILDREN: usize = 1;
const TREE: usize = 2;

/// A foreign key of the schema: whose field names whose field, and what happens.
#[derive(Clone, Copy, Debug)]
struct KeyOf {
    child: usize,
    local: usize,
    parent: usize,
    foreign: usize,
    on_delete: &'static str,
    on_update: &'static str,
}

#[derive(Clone, Debug)]
enum Step {
    Put(usize, Row),
    Insert(usize, Row),
    /// Sets a field of the row with a key.
    Set(usize, u64, usize, Option<u64>),
    Delete(usize, u64),
    Begin,
    Commit,
    Rollback,
    Yield,
}

fn field(row: &Row, at: usize) -> Option<u64> {
    [Some(row.0), row.1, row.2][at]
}

#[derive(Clone, Default)]
struct Model {
    tables: [BTreeMap<u64, Row>; 3],
}

struct Refused;

/// What a foreign key has happen to a row.
#[derive(Clone, Copy)]
enum Change {
    Put(Row),
    Delete,
    /// Of the row as it is by then.
    Set(usize, Option<u64>),
}

impl Model {
    fn names(&self, key: &KeyOf, value: u64) -> Vec<u64> {
        let rows = self.tables[key.child].values();
        rows.filter(|row| field(row, key.local) == Some(value)).map(|row| row.0).collect()
    }

    fn has(&self, key: &KeyOf, value: u64) -> bool {
        self.tables[key.parent].values().any(|row| field(row, key.foreign) == Some(value))
    }

    /// One change of a row and all that follows.
    fn change(&mut self, keys: &[KeyOf], table: usize, key: u64, new: Option<Row>) -> Result<(), Refused> {
        let mut queue = VecDeque::from([(table, key, new.map_or(Change::Delete, Change::Put))]);
        let mut put_off = Vec::new();
        while let Some((table, key, change)) = queue.pop_front() {
            let old = self.tables[table].get(&key).copied();
            let new = match (change, old) {
                (Change::Put(row), _) => Some(row),
                (Change::Delete, _) => None,
                (Change::Set(1, to), Some(row)) => Some((row.0, to, row.2)),
                (Change::Set(_, to), Some(row)) => Some((row.0, row.1, to)),
                // Another key has taken it away meanwhile.
                (Change::Set(..), None) => continue,
            };
            let unique = |row: &Row, other: &Row| row.1.is_some() && row.1 == other.1 && row.0 != other.0;
            if let Some(new) = new {
                if table == PARENTS && self.tables[table].values().any(|other| unique(&new, other)) {
                    return Err(Refused);
                }
                self.tables[table].insert(key, new);
            } else {
                self.tables[table].remove(&key);
            }
            if let Some(new) = new {
                for one in keys.iter().filter(|one| one.child == table) {
                    put_off.push((*one, field(&new, one.local)));
                }
            }
            let Some(old) = old else { continue };
            for one in keys.iter().filter(|one| one.parent == table) {
                let Some(value) = field(&old, one.foreign) else { continue };
                if new.is_some_and(|new| field(&new, one.foreign) == Some(value)) {
                    continue;
                }
                let action = if new.is_some() { one.on_update } else { one.on_delete };
                let named = self.names(one, value);
                match action {
                    "restrict" if !named.is_empty() => return Err(Refused),
                    "restrict" => {}
                    "no_action" => put_off.push((*one, Some(value))),
                    _ => {
                        for key in named {
                            let change = match (action, new) {
                                ("cascade", None) => Change::Delete,
                                ("cascade", Some(new)) => Change::Set(one.local, field(&new, one.foreign)),
                                _ => Change::Set(one.local, None),
                            };
                            queue.push_back((one.child, key, change));
                        }
                    }
                }
            }
        }
        for (key, value) in put_off {
            let Some(value) = value else { continue };
            let is_named = !self.names(&key, value).is_empty();
            if is_named && !self.has(&key, value) {
                return Err(Refused);
            }
        }
        Ok(())
    }
}

fn schema() -> impl Strategy<Value = (Vec<KeyOf>, [&'static str; 3])> {
    let action = prop::sample::select(vec!["restrict", "no_action", "cascade", "set_null"]);
    let engine = prop::sample::select(vec!["memtx", "vinyl"]);
    (prop::collection::vec(action, 6), prop::array::uniform3(engine)).prop_map(|(actions, engines)| {
        let key = |child, local, parent, foreign, at: usize| KeyOf {
            child,
            local,
            parent,
            foreign,
            on_delete: actions[at],
            on_update: actions[at + 1],
        };
        let keys = vec![key(CHILDREN, 1, PARENTS, 0, 0), key(CHILDREN, 2, PARENTS, 1, 2), key(TREE, 1, TREE, 0, 4)];
        (keys, engines)
    })
}

fn step() -> impl Strategy<Value = Step> {
    let id = 1u64..6;
    let value = prop::option::of(1u64..6);
    let row = (id.clone(), value.clone(), value.clone());
    prop_oneof![
        4 => (0usize..3, row.clone()).prop_map(|(table, row)| Step::Insert(table, row)),
        3 => (0usize..3, row).prop_map(|(table, row)| Step::Put(table, row)),
        3 => (0usize..3, id.clone(), 1usize..3, value).prop_map(|(table, id, at, to)| Step::Set(table, id, at, to)),
        4 => (0usize..3, id).prop_map(|(table, id)| Step::Delete(table, id)),
        1 => Just(Step::Begin),
        1 => Just(Step::Commit),
        1 => Just(Step::Rollback),
        1 => Just(Step::Yield),
    ]
}

struct World {
    database: Rc<Database>,
}

fn number(row: &[u8], at: u32) -> Option<u64> {
    let value = tuple::field(row, at)?;
    (Reader::new(value).kind() != Ok(Kind::Nil)).then(|| Reader::new(value).read_uint().unwrap())
}

impl World {
    fn new(keys: &[KeyOf], engines: [&str; 3], has_child_index: bool) -> World {
        Self::on(&SimulatedFiles::default(), keys, engines, has_child_index)
    }

    fn on(files: &SimulatedFiles, keys: &[KeyOf], engines: [&str; 3], has_child_index: bool) -> World {
        let database = open_with(files, config()).unwrap();
        let admin = request(&database);
        for (table, engine) in engines.iter().enumerate() {
            let own: Vec<&KeyOf> = keys.iter().filter(|key| key.child == table).collect();
            let definitions: Vec<String> = own
                .iter()
                .enumerate()
                .map(|(at, key)| {
                    let (space, local, foreign) = (512 + key.parent, key.local, key.foreign);
                    // Fields by their numbers and by their names.
                    let fields = match at {
                        0 => format!(r#"{{"{}": {foreign}}}"#, ["id", "a", "b"][local]),
                        _ => format!(r#"{{"{}": "{}"}}"#, ["id", "a", "b"][local], ["id", "a", "b"][foreign]),
                    };
                    format!(r#""key{at}": {{"space": {space}, "field": {fields}}}"#)
                })
                .collect();
            let actions: Vec<String> = own
                .iter()
                .enumerate()
                .map(|(at, key)| {
                    let KeyOf { on_delete, on_update, .. } = key;
                    format!(r#""key{at}": {{"on_delete": "{on_delete}", "on_update": "{on_update}"}}"#)
                })
                .collect();
            let format = r#"[{"name": "id", "type": "unsigned"}, {"name": "a", "type": "unsigned", "is_nullable": true}, {"name": "b", "type": "unsigned", "is_nullable": true}]"#;
            let options = match own.is_empty() {
                true => "{}".to_string(),
                false => format!(
                    r#"{{"foreign_key": {{{}}}, "checks": {{"foreign_key": {{{}}}}}}}"#,
                    definitions.join(", "),
                    actions.join(", ")
                ),
            };
            let id = 512 + table;
            insert(
                &database,
                &admin,
                SPACE_ID.0,
                &format!(r#"[{id}, 1, "t{table}", "{engine}", 0, {options}, {format}]"#),
            )
            .unwrap();
            let index = |number: usize, parts: &str, is_unique: bool| {
                let row = format!(r#"[{id}, {number}, "i{number}", "tree", {{"unique": {is_unique}}}, {parts}]"#);
                insert(&database, &admin, INDEX_ID.0, &row).unwrap();
            };
            index(0, r#"[[0, "unsigned"]]"#, true);
            let nullable = r#"[{"field": 1, "type": "unsigned", "is_nullable": true}]"#;
            if table == PARENTS {
                index(1, nullable, true);
            } else if has_child_index {
                index(1, nullable, false);
            }
        }
        drive(&database);
        World { database }
    }

    fn run(&self, context: &Context, step: &Step) -> Result<(), u32> {
        let space = |table: usize| self.database.space(SpaceId(512 + table as u32)).unwrap();
        let json = |row: &Row| {
            let shown = |value: Option<u64>| value.map_or("null".to_string(), |value| value.to_string());
            encode(&format!("[{}, {}, {}]", row.0, shown(row.1), shown(row.2)))
        };
        let done = match step {
            Step::Put(table, row) => {
                let row = json(row);
                self.database.execute(context, &space(*table), Operation::Replace { tuple: &row })
            }
            Step::Insert(table, row) => {
                let row = json(row);
                self.database.execute(context, &space(*table), Operation::Insert { tuple: &row })
            }
            Step::Set(table, id, at, to) => {
                let to = to.map_or("null".to_string(), |to| to.to_string());
                let (key, ops) = (encode(&format!("[{id}]")), encode(&format!(r#"[["=", {at}, {to}]]"#)));
                let update = Operation::Update { index_id: IndexId::PRIMARY, key: &key, ops: &ops, index_base: 0 };
                self.database.execute(context, &space(*table), update)
            }
            Step::Delete(table, id) => {
                let key = encode(&format!("[{id}]"));
                let delete = Operation::Delete { index_id: IndexId::PRIMARY, key: &key };
                self.database.execute(context, &space(*table), delete)
            }
            Step::Begin => return self.database.begin(context).map_err(|error| error.code()),
            Step::Commit => return self.database.commit(context).map_err(|error| error.code()),
            Step::Rollback => {
                self.database.abandon(context);
                return Ok(());
            }
            Step::Yield => {
                self.database.suspend(context);
                return Ok(());
            }
        };
        done.map(drop).map_err(|error| error.code())
    }

    fn rows(&self, context: &Context, table: usize) -> BTreeMap<u64, Row> {
        let mut rows = BTreeMap::new();
        let space = self.database.space(SpaceId(512 + table as u32)).unwrap();
        let all = ScanRequest::new(IndexId::PRIMARY, IteratorKind::All, Key::EMPTY);
        let mut take = |row: &[u8]| {
            let id = number(row, 0).unwrap();
            rows.insert(id, (id, number(row, 1), number(row, 2)));
            true
        };
        self.database.select(context, &space, &all, &mut take).unwrap();
        rows
    }
}

const REFUSALS: [ErrorCode; 4] = [
    ErrorCode::ComplexForeignKeyFailed,
    ErrorCode::FieldForeignKeyFailed,
    ErrorCode::ForeignKeyIntegrity,
    ErrorCode::TupleFound,
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// One client: each statement does what the model does, or is refused where it is and changes nothing.
    #[test]
    fn statements_do_what_the_model_does(
        (keys, engines) in schema(),
        has_child_index in any::<bool>(),
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let case = format!("{keys:?} {engines:?} {has_child_index} {steps:?}");
        unless_stuck(&case, || one_client(&keys, engines, has_child_index, &steps))?;
    }

    /// Two clients that take turns: whatever they do, nobody ends with a row that names one which is not there.
    #[test]
    fn two_clients_break_no_key_between_them(
        (keys, engines) in schema(),
        has_child_index in any::<bool>(),
        forget in any::<bool>(),
        steps in prop::collection::vec((0usize..2, step()), 1..80),
    ) {
        let case = format!("{keys:?} {engines:?} {has_child_index} {forget} {steps:?}");
        unless_stuck(&case, || two_clients(&keys, engines, has_child_index, forget, &steps))?;
    }
}

fn one_client(keys: &[KeyOf], engines: [&str; 3], has_child_index: bool, steps: &[Step]) -> Result<(), TestCaseError> {
    let world = World::new(keys, engines, has_child_index);
    let context = request(&world.database);
    let (mut model, mut before) = (Model::default(), None::<Model>);
    for step in steps {
        let mut changed = model.clone();
        let outcome = match step {
            Step::Put(table, row) => Some(changed.change(keys, *table, row.0, Some(*row))),
            Step::Insert(table, row) if model.tables[*table].contains_key(&row.0) => Some(Err(Refused)),
            Step::Insert(table, row) => Some(changed.change(keys, *table, row.0, Some(*row))),
            Step::Set(table, id, at, to) => match model.tables[*table].get(id).copied() {
                None => Some(Ok(())),
                Some(mut row) => {
                    match at {
                        1 => row.1 = *to,
                        _ => row.2 = *to,
                    }
                    Some(changed.change(keys, *table, *id, Some(row)))
                }
            },
            Step::Delete(table, id) => match model.tables[*table].contains_key(id) {
                true => Some(changed.change(keys, *table, *id, None)),
                false => Some(Ok(())),
            },
            Step::Begin if before.is_none() => {
                before = Some(model.clone());
                None
            }
            Step::Begin => continue,
            Step::Commit => {
                before = None;
                None
            }
            Step::Rollback => {
                if let Some(before) = before.take() {
                    model = before;
                }
                None
            }
            Step::Yield => None,
        };
        let done = world.run(&context, step);
        match outcome {
            Some(Ok(())) => {
                prop_assert_eq!(done, Ok(()), "{:?} with {:?}", step, keys);
                model = changed;
            }
            Some(Err(Refused)) => {
                let code = done.expect_err("the model refuses it");
                prop_assert!(REFUSALS.iter().any(|known| *known as u32 == code), "code {}", code);
            }
            None => prop_assert_eq!(done, Ok(())),
        }
        for table in 0..3 {
            prop_assert_eq!(&world.rows(&context, table), &model.tables[table], "behind {:?} with {:?}", step, keys);
        }
        drive(&world.database);
    }
    Ok(())
}

fn two_clients(
    keys: &[KeyOf],
    engines: [&str; 3],
    has_child_index: bool,
    forget: bool,
    steps: &[(usize, Step)],
) -> Result<(), TestCaseError> {
    let world = World::new(keys, engines, has_child_index);
    let contexts = [request(&world.database), request(&world.database)];
    for (who, step) in steps {
        world.database.suspend(&contexts[1 - who]);
        match step {
            Step::Begin if !contexts[*who].is_in_txn() => {
                let options = database::TxnOptions { forgets_reads: forget, ..Default::default() };
                world.database.begin_with(&contexts[*who], options).unwrap();
            }
            Step::Begin => {}
            step => _ = world.run(&contexts[*who], step),
        }
        drive(&world.database);
    }
    contexts.iter().for_each(|context| world.database.suspend(context));
    for context in &contexts {
        let _ = world.database.commit(context);
        world.database.abandon(context);
    }
    let reader = request(&world.database);
    let end = Model { tables: [0, 1, 2].map(|table| world.rows(&reader, table)) };
    for key in keys {
        for row in end.tables[key.child].values() {
            if let Some(value) = field(row, key.local) {
                prop_assert!(end.has(key, value), "{:?} names nothing by {:?}: {:?}", row, key, end.tables);
            }
        }
    }
    Ok(())
}

/// The power goes while a cascade is written, at every change of a file and with every loss: behind the start all of it is there, or nothing.
#[test]
fn a_cascade_is_whole_or_not_there() {
    let cascade = ("cascade", "cascade");
    let key = |child, local, parent, foreign| KeyOf {
        child,
        local,
        parent,
        foreign,
        on_delete: cascade.0,
        on_update: cascade.1,
    };
    let keys = [key(CHILDREN, 1, PARENTS, 0), key(TREE, 1, TREE, 0)];
    for engines in [["memtx"; 3], ["vinyl"; 3], ["memtx", "vinyl", "memtx"]] {
        let files = SimulatedFiles::default();
        let world = World::on(&files, &keys, engines, true);
        let context = request(&world.database);
        world.run(&context, &Step::Put(PARENTS, (1, None, None))).unwrap();
        for id in 1..6 {
            world.run(&context, &Step::Put(CHILDREN, (id, Some(1), None))).unwrap();
        }
        drive(&world.database);
        files.keep_points();
        world.run(&context, &Step::Delete(PARENTS, 1)).unwrap();
        drive(&world.database);
        let points = files.take_points();
        assert!(!points.is_empty());
        let mut seen = [false; 2];
        for point in &points {
            for loss in Loss::kinds(point.unsynced(), 0..3) {
                let database = open_with(&point.crash(loss), config()).unwrap();
                let reopened = World { database };
                let reader = request(&reopened.database);
                let (parents, children) =
                    (reopened.rows(&reader, PARENTS).len(), reopened.rows(&reader, CHILDREN).len());
                assert!(matches!((parents, children), (1, 5) | (0, 0)), "{parents} parents, {children} children");
                seen[parents] = true;
                // The key is in force.
                let code = reopened.run(&reader, &Step::Insert(CHILDREN, (9, Some(7), None))).unwrap_err();
                assert_eq!(code, ErrorCode::ComplexForeignKeyFailed as u32);
            }
        }
        drop(world);
        let end = World { database: open_with(&files.fork(), config()).unwrap() };
        assert!(end.rows(&request(&end.database), CHILDREN).is_empty());
        assert!(seen[1], "before the group is written all of it is there");
    }
}
