//! Statements of random rows, in transactions that are also rolled back and applied again, and what each is expected to find.

use super::{Done, Logged, SPACES, World, addition, decoded, encode_key};
use crate::rows::{COUNT, IndexModel, Key, Row, Value};
use std::collections::BTreeSet;
use std::rc::Rc;

impl World {
    fn random_name(&self) -> Value {
        let letters = [0, 0, 1, b'a', 0xff];
        let length = self.pick(5);
        Value::Text((0..length).map(|_| letters[self.pick(5) as usize]).collect())
    }

    pub(super) fn random_row(&self) -> Row {
        let id = self.pick(self.ids);
        let value = if self.one_in(4) { Value::Nil } else { Value::Number(self.pick(self.ids * 2)) };
        let filling = if self.one_in(60) { self.pick(3_000) } else { self.pick(60) };
        Row {
            fields: [
                Value::Number(id),
                Value::Number(self.pick(6)),
                self.random_name(),
                value,
                Value::Number(self.pick(100)),
            ],
            filling: filling as usize,
        }
    }

    pub(super) fn append(&mut self, logged: Logged) -> i64 {
        let lsn = self.shared.appended.get() + 1;
        self.shared.appended.set(lsn);
        self.log.push((lsn, logged));
        lsn
    }

    pub(super) fn statement(&mut self) {
        let space_id = SPACES[self.pick(3) as usize];
        let row = self.random_row();
        // Sometimes a change of a row that is there, in one field.
        let row = match self.models[&space_id].same_key(&row) {
            Some(old) if self.one_in(2) => {
                let field = self.pick(5) as usize;
                let mut changed = Row::clone(old);
                changed.fields[field] = row.fields[field].clone();
                changed
            }
            _ => row,
        };
        let logged = match self.pick(10) {
            0..=4 => Logged::Put(space_id, Rc::new(row)),
            5..=7 => Logged::Delete(space_id, Rc::new(row)),
            _ => {
                let number = self.pick(10);
                Logged::Add(space_id, Rc::new(row), number)
            }
        };
        self.execute(logged, None);
    }

    /// Does a statement unless a key is in the way, as is expected then, or one of `guarded` would be touched.
    fn execute(&mut self, logged: Logged, guarded: Option<&BTreeSet<(u32, u32, Key)>>) {
        let (space_id, row) = match &logged {
            Logged::Put(space_id, row) | Logged::Delete(space_id, row) | Logged::Add(space_id, row, _) => {
                (*space_id, Rc::clone(row))
            }
            _ => panic!("not a statement"),
        };
        self.make_room();
        let model = &self.models[&space_id];
        let old = model.same_key(&row).cloned();
        let new = match &logged {
            Logged::Put(..) => Some(Rc::clone(&row)),
            Logged::Delete(..) => None,
            Logged::Add(_, _, number) => Some(match &old {
                Some(old) => {
                    let mut changed = Row::clone(old);
                    changed.fields[COUNT] = Value::Number(old.count() + number);
                    Rc::new(changed)
                }
                None => Rc::clone(&row),
            }),
            _ => None,
        };
        if let Some(guarded) = guarded {
            let keys = |row: &Rc<Row>| model.guarded(space_id, row);
            if old.iter().chain(&new).flat_map(keys).any(|key| guarded.contains(&key)) {
                return;
            }
        }
        let space = self.space(space_id);
        let is_blind = space.has_one_index() && !self.one_in(4);
        let encoded = row.encode();
        let change = match &logged {
            Logged::Put(..) if is_blind => space.put(None, Some(&encoded)),
            Logged::Delete(..) if is_blind => {
                let key = encode_key(&row.key(&model.primary().own));
                space.delete_blind(key.key())
            }
            Logged::Add(_, _, number) if is_blind && space.takes_blind_upsert(&encoded) => {
                let index_base = self.pick(2) as u32;
                space.upsert_blind(&encoded, &addition(*number, index_base), index_base)
            }
            _ => match self.look(space_id, &row, old.as_ref(), new.as_ref(), matches!(logged, Logged::Delete(..))) {
                Some(()) if old.is_some() || new.is_some() => {
                    let (old, new) = (old.as_ref().map(|row| row.encode()), new.as_ref().map(|row| row.encode()));
                    space.put(old.as_deref(), new.as_deref())
                }
                _ => return,
            },
        };
        self.change_models(space_id, old.as_ref(), new.as_ref());
        self.txn.push(Done { space_id, change, old, new, logged });
        if !self.is_in_txn {
            self.commit();
        }
    }

    /// Looks at what a statement has to know. None: a unique index is in its way.
    fn look(
        &mut self,
        space_id: u32,
        row: &Rc<Row>,
        old: Option<&Rc<Row>>,
        new: Option<&Rc<Row>>,
        is_delete: bool,
    ) -> Option<()> {
        let space = self.space(space_id);
        let encoded = row.encode();
        let found = self.until_ready(|_| Ok(space.get_same_key(&encoded)?.map(decoded)));
        assert_eq!(found.as_ref(), old.map(|old| &**old), "seed {}: the row that is there", self.seed);
        if is_delete {
            return Some(());
        }
        let new = new?;
        let expected: Vec<u32> = self.models[&space_id]
            .indexes
            .iter()
            .filter(|(id, index)| **id != 0 && index.is_unique && is_taken(index, new, old))
            .map(|(id, _)| *id)
            .collect();
        let (old_bytes, new_bytes) = (old.map(|old| old.encode()), new.encode());
        let found = self.until_ready(|_| {
            Ok(space.conflict(&new_bytes, old_bytes.as_deref())?.map(|(index_id, row)| (index_id, decoded(row))))
        });
        match found {
            None => {
                assert!(expected.is_empty(), "seed {}: {new:?} has a key twice, of {expected:?}", self.seed);
                Some(())
            }
            Some((index_id, other)) => {
                let of_building = self.building.as_ref().filter(|building| {
                    building.space_id == space_id
                        && building.index_id == index_id.0
                        && is_taken(&building.index, new, old)
                });
                let is_right = expected.contains(&index_id.0) || of_building.is_some();
                assert!(is_right, "seed {}: {other:?} is not in the way of {new:?}", self.seed);
                None
            }
        }
    }

    fn change_models(&mut self, space_id: u32, old: Option<&Rc<Row>>, new: Option<&Rc<Row>>) {
        self.models.get_mut(&space_id).unwrap().change(old, new);
        if let Some(building) = self.building.as_mut().filter(|building| building.space_id == space_id) {
            let index = &mut building.index;
            old.iter().for_each(|row| _ = index.rows.remove(&row.key(&index.order)).unwrap());
            new.iter().for_each(|row| _ = index.rows.insert(row.key(&index.order), Rc::clone(row)));
            building.was_forbidden |= index.is_unique && new.is_some_and(|new| is_taken(index, new, Some(new)));
        }
    }

    pub(super) fn commit(&mut self) {
        self.is_in_txn = false;
        for done in std::mem::take(&mut self.txn) {
            self.append(done.logged);
        }
        if self.one_in(3) {
            self.catch_up();
        }
    }

    pub(super) fn take_back_last(&mut self) {
        if let Some(done) = self.txn.pop() {
            self.spaces[&done.space_id].undo(&done.change);
            self.change_models(done.space_id, done.new.as_ref(), done.old.as_ref());
        }
    }

    pub(super) fn roll_back(&mut self) {
        while !self.txn.is_empty() {
            self.take_back_last();
        }
        self.is_in_txn = false;
    }

    /// Others have their turn, with the open transaction out of force.
    pub(super) fn suspend(&mut self) {
        let txn = std::mem::take(&mut self.txn);
        let mut guarded = BTreeSet::new();
        for done in txn.iter().rev() {
            self.spaces[&done.space_id].undo(&done.change);
            self.change_models(done.space_id, done.new.as_ref(), done.old.as_ref());
            for row in done.old.iter().chain(&done.new) {
                guarded.extend(self.models[&done.space_id].guarded(done.space_id, row));
            }
            // A row that is not there is guarded by its key.
            if let Logged::Put(_, row) | Logged::Delete(_, row) | Logged::Add(_, row, _) = &done.logged {
                guarded.extend(self.models[&done.space_id].guarded(done.space_id, row));
            }
        }
        self.is_in_txn = false;
        for _ in 0..self.pick(6) {
            self.done += 1;
            match self.pick(8) {
                0..=3 => {
                    let space_id = SPACES[self.pick(3) as usize];
                    let row = Rc::new(self.random_row());
                    let logged =
                        if self.one_in(3) { Logged::Delete(space_id, row) } else { Logged::Put(space_id, row) };
                    self.execute(logged, Some(&guarded));
                }
                4 => self.seal_one(),
                5 => self.read(),
                _ => self.turn(),
            }
        }
        for mut done in txn {
            done.change = self.spaces[&done.space_id].redo(&done.change);
            self.change_models(done.space_id, done.old.as_ref(), done.new.as_ref());
            self.txn.push(done);
        }
        self.is_in_txn = true;
    }
}

/// True if another row than `old` has a key of `new` in a unique index.
fn is_taken(index: &IndexModel, new: &Rc<Row>, old: Option<&Rc<Row>>) -> bool {
    let own = new.key(&index.own);
    let primary = |row: &Row| row.key(&index.order);
    let is_kept = |row: &Rc<Row>| old.is_some_and(|old| primary(row) == primary(old));
    !own.contains(&Value::Nil) && index.with_prefix(&own).any(|row| !is_kept(row))
}
