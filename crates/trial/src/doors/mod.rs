//! Operations in the words of the doors: Redis' protocol, those of memcached, those of Tokyo Tyrant, SQL by those of PostgreSQL and MySQL.
//!
//! [`Doors`] says where the doors of a run listen, so that all of them have the same rows. A [`Speaker`] is a connection to one door, over any stream of
//! bytes, and performs an [`Ask`] after the other. Each door has a file with its words.
//!
//! ```text
//! Ask --> redis.rs, memcached.rs, tyrant.rs, sql.rs --> bytes --> door --> bytes --> Outcome, the same for all doors
//! ```

mod memcached;
mod redis;
mod speaker;
mod sql;
mod statement;
mod tyrant;

pub use speaker::Speaker;
pub use statement::{Level, Lock, Statement};

use crate::engines::Engines;
use tuple::SpaceId;

/// Stands for the spaces of doors where engines are mixed.
const SPACES: SpaceId = SpaceId(3120);

/// The space of doors of SQL that are by themselves: a table.
const SQL_TABLE: &str = "trial_texts";

/// A protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "their names")]
pub enum Door {
    Redis,
    Memcached,
    Tyrant,
    Postgres,
    Mysql,
}

impl Door {
    /// The scheme of its listeners.
    pub fn name(self) -> &'static str {
        match self {
            Door::Redis => "redis",
            Door::Memcached => "memcached",
            Door::Tyrant => "tyrant",
            Door::Postgres => "postgres",
            Door::Mysql => "mysql",
        }
    }

    /// The door of a name.
    pub fn named(name: &str) -> Option<Self> {
        let all = [Door::Redis, Door::Memcached, Door::Tyrant, Door::Postgres, Door::Mysql];
        all.into_iter().find(|door| door.name() == name)
    }

    /// It speaks SQL.
    pub fn is_sql(self) -> bool {
        matches!(self, Door::Postgres | Door::Mysql)
    }

    /// A value can be put where another one is and nowhere else, and where a certain one is.
    pub(crate) fn can_compare(self) -> bool {
        self != Door::Tyrant
    }
}

/// A door, and in which of its protocols a client speaks there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tongue {
    /// Which door.
    pub door: Door,
    /// Any number: it chooses one of the protocols.
    pub dialect: u64,
    /// The space that all of the doors have their strings in.
    pub space: &'static str,
}

/// The doors of a run, each once, those of SQL last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Doors(Vec<Door>);

impl Doors {
    /// These, in the order in which their listeners make what they need.
    pub fn new(mut doors: Vec<Door>) -> Self {
        doors.sort_unstable();
        doors.dedup();
        Doors(doors)
    }

    /// Each of them.
    pub fn all(&self) -> &[Door] {
        &self.0
    }

    /// The only one, if there is only one.
    pub(crate) fn only(&self) -> Option<Door> {
        match self.0[..] {
            [door] => Some(door),
            _ => None,
        }
    }

    /// All of them speak SQL: their table is made by nobody else.
    pub(crate) fn are_sql(&self) -> bool {
        self.0.first().is_some_and(|door| door.is_sql())
    }

    /// The engine of their space.
    pub(crate) fn engine(engines: Engines) -> &'static str {
        engines.of(SPACES)
    }

    /// The space that all of them have their strings in.
    pub(crate) fn space(&self) -> &'static str {
        match self.0.first() {
            Some(door) if door.is_sql() => SQL_TABLE,
            first => first.map_or("", |door| door.name()),
        }
    }

    /// What the address of a door's listener has behind it, and whom its connections act as, if the listener names anybody: `admin` is somebody with all
    /// rights. The first door makes the space, others are pointed at it.
    pub fn terms(
        &self,
        door: Door,
        engines: Engines,
        admin: &'static str,
    ) -> (Option<&'static str>, Vec<(&'static str, &'static str)>) {
        // Their table is made by another door, or by the setup.
        if door.is_sql() {
            return (Some(admin), Vec::new());
        }
        if self.0.first() == Some(&door) {
            return (None, vec![("engine", engines.of(SPACES))]);
        }
        let mut terms = vec![("space", self.space())];
        if door == Door::Memcached {
            terms.extend([("key", "key"), ("value", "value")]);
        }
        (Some(admin), terms)
    }

    /// How a client speaks.
    pub(crate) fn tongue(&self, client: usize) -> Tongue {
        let (door, dialect) = (self.0[client % self.0.len()], (client / self.0.len()) as u64);
        Tongue { door, dialect, space: self.space() }
    }
}

/// Where a value is: under a key of its own, or in something that has elements, of which Redis knows two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the protocol's words")]
pub enum Place {
    Text,
    Hash,
    SortedSet,
}

/// A value has a place there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spot {
    /// Where.
    pub place: Place,
    /// Which.
    pub number: u64,
}

/// What a client asks of a door. Answers are arrays.
#[derive(Clone, Debug, PartialEq)]
pub enum Ask {
    /// The value, or nothing.
    Get(Spot),
    /// All that are there of these, of one moment: pairs of number and value.
    All(Place, Vec<u64>),
    /// Puts a value.
    Set(Spot, u64),
    /// Puts all of these texts at one moment.
    SetAll(Vec<(u64, u64)>),
    /// Puts a value where none is: true if so.
    Add(Spot, u64),
    /// Puts a value where one is: true if so.
    Change(Spot, u64),
    /// Removes it: true if it was there.
    Remove(Spot),
    /// Removes all of a place that has elements.
    RemoveAll(Place),
    /// Puts the second value where the first is, of a text: true if so, false if another one was there, nil if nobody knows.
    Swap(u64, u64, u64),
    /// Puts a number behind those of a text.
    Append(u64, u64),
    /// The numbers of such a text.
    Numbers(u64),
    /// Puts a number at the end of a list.
    Push(u64, u64),
    /// The numbers of a list.
    List(u64),
    /// Takes the first of a list, or nothing.
    Take(u64),
    /// The same, after a wait for one to come.
    TakeOrWait(u64),
    /// Moves the first of one list to the end of another one, and says which, or nothing.
    Move(u64, u64),
    /// Puts a number into a set.
    Put(u64, u64),
    /// Takes any of a set, or nothing.
    Pick(u64),
    /// Adds to a number, which is then that.
    Increment(u64, u64),
    /// One transaction. Its answer has that of each, nil for one that was refused by itself.
    Together(Vec<Ask>),
    /// One transaction of SQL, a statement after the other. Its answer has that of each; false, if it was left.
    Transact(Level, Vec<Statement>),
}

/// The key of a text of numbers.
pub(crate) fn numbers_key(number: u64) -> String {
    format!("numbers{number}")
}

/// The key of a list.
pub(crate) fn list_key(number: u64) -> String {
    format!("list{number}")
}

/// The key of a set.
pub(crate) fn set_key(number: u64) -> String {
    format!("set{number}")
}

/// The key of a number that is added to.
pub(crate) fn counter_key(number: u64) -> String {
    format!("counter{number}")
}

impl Spot {
    /// A text.
    pub fn text(number: u64) -> Self {
        Spot { place: Place::Text, number }
    }

    /// The key that it is under.
    pub(crate) fn key(self) -> String {
        match self.place {
            Place::Text => format!("item{}", self.number),
            place => place.key().to_string(),
        }
    }

    /// The name of an element.
    pub(crate) fn element(self) -> String {
        format!("item{}", self.number)
    }
}

impl Place {
    /// The key of what has elements.
    pub(crate) fn key(self) -> &'static str {
        match self {
            Place::Text => "",
            Place::Hash => "hash",
            Place::SortedSet => "sorted",
        }
    }
}

/// The number in the name of an item.
pub(crate) fn number_of(name: &[u8]) -> Option<u64> {
    std::str::from_utf8(name).ok()?.strip_prefix("item")?.parse().ok()
}

/// A value as text: some are long, and none is the beginning of another one.
pub(crate) fn text_of(value: u64) -> String {
    let padding = match value % 4 {
        0 => value % 3_000,
        _ => value % 40,
    };
    format!("{value}.{}", "x".repeat(padding as usize))
}

/// The value of a text. None: it is not whole.
pub(crate) fn value_of(text: &[u8]) -> Option<u64> {
    let digits = text.split(|byte| *byte == b'.').next()?;
    let value: u64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    (text_of(value).as_bytes() == text).then_some(value)
}

/// The numbers of a text to which they were appended, each with a comma behind. None: it is not whole.
pub(crate) fn numbers_of(text: &[u8]) -> Option<Vec<u64>> {
    let text = std::str::from_utf8(text).ok()?;
    let Some(text) = text.strip_suffix(',') else { return text.is_empty().then(Vec::new) };
    text.split(',').map(|number| number.parse().ok()).collect()
}
