//! Data directories made in this process, through the same crates that the server reads them with.

use database::{Config, Context, Database, Environment, INDEX_ID, Operation, PRIV_ID, SPACE_ID, SessionKind};
use runtime::{FileSystem, ManualClock, SeededRandomness};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use tuple::{SpaceId, msgpack};

/// Memory for rows of databases in tests.
pub const MEMORY: u64 = 64 << 20;
/// Read, write and execute, beside the session and usage rights that guest has.
const ALL_RIGHTS: u64 = 1 | 2 | 4 | 8 | 16;

/// Opens a database over any files, without threads, with changed options. Errors: what a server would say that refuses to start.
pub fn open_database(
    files: Arc<dyn FileSystem>,
    dir: &Path,
    change: impl FnOnce(&mut Config),
) -> database::Result<Rc<Database>> {
    let mut config = Config {
        wal_dir: dir.to_path_buf(),
        memtx_dir: dir.to_path_buf(),
        memtx_memory: MEMORY,
        wal_writes_in_flight: 0,
        checkpoint_interval: 0,
        ..Config::default()
    };
    change(&mut config);
    let environment = Environment {
        files,
        clock: Arc::new(ManualClock::default()),
        randomness: Arc::new(SeededRandomness::new(1)),
        wake: Arc::new(|| {}),
    };
    let database = Database::new(config, environment)?;
    database.open()?;
    Ok(database)
}

/// A field of a row.
pub enum Field<'a> {
    /// An unsigned number.
    Uint(u64),
    /// A string.
    Str(&'a str),
    /// Encoded already.
    Raw(&'a [u8]),
}

impl From<u64> for Field<'_> {
    fn from(value: u64) -> Self {
        Field::Uint(value)
    }
}

impl<'a> From<&'a str> for Field<'a> {
    fn from(value: &'a str) -> Self {
        Field::Str(value)
    }
}

/// An open database that is being filled.
pub struct Seed {
    database: Rc<Database>,
    context: Context,
}

impl Seed {
    /// Opens, or makes, the database of a directory.
    pub fn open(files: Arc<dyn FileSystem>, dir: &Path) -> database::Result<Self> {
        Self::open_with(files, dir, |_| {})
    }

    /// As `open`, with changed options.
    pub fn open_with(
        files: Arc<dyn FileSystem>,
        dir: &Path,
        change: impl FnOnce(&mut Config),
    ) -> database::Result<Self> {
        let database = open_database(files, dir, change)?;
        let context = Context::for_request(database.open_session(SessionKind::Background, None));
        Ok(Seed { database, context })
    }

    /// The database.
    pub fn database(&self) -> &Rc<Database> {
        &self.database
    }

    /// An encoded row.
    pub fn row(fields: &[Field<'_>]) -> Vec<u8> {
        let mut out = Vec::new();
        msgpack::encode_array(&mut out, fields.len() as u32);
        for field in fields {
            match field {
                Field::Uint(value) => msgpack::encode_uint(&mut out, *value),
                Field::Str(value) => msgpack::encode_str(&mut out, value.as_bytes()),
                Field::Raw(value) => out.extend_from_slice(value),
            }
        }
        out
    }

    /// Carries out several statements as one transaction and waits until it is durable.
    pub fn atomically(&self, statements: impl FnOnce(&Self) -> database::Result<()>) -> database::Result<()> {
        self.database.begin(&self.context)?;
        statements(self)?;
        self.database.commit(&self.context)?;
        self.database.submit();
        self.database.turn();
        Ok(())
    }

    /// Carries out one statement and waits until it is durable.
    pub fn execute(&self, space_id: u32, operation: Operation<'_>) -> database::Result<()> {
        let space = self.database.space(SpaceId(space_id))?;
        self.database.execute(&self.context, &space, operation)?;
        self.database.submit();
        self.database.turn();
        Ok(())
    }

    /// Replaces a row of a space.
    pub fn replace(&self, space_id: u32, fields: &[Field<'_>]) -> database::Result<()> {
        self.execute(space_id, Operation::Replace { tuple: &Self::row(fields) })
    }

    /// Makes a space without a format.
    pub fn create_space(&self, id: u32, name: &str) -> database::Result<()> {
        let (options, format) = (Field::Raw(&[0x80]), Field::Raw(&[0x90]));
        let owner = u64::from(database::ADMIN);
        self.replace(
            SPACE_ID.0,
            &[u64::from(id).into(), owner.into(), name.into(), "memtx".into(), 0.into(), options, format],
        )
    }

    /// Makes an index over fields (number from 0, type, collation), unique if it is the first.
    pub fn create_index(
        &self,
        space_id: u32,
        id: u32,
        name: &str,
        kind: &str,
        parts: &[(u32, &str, Option<u32>)],
    ) -> database::Result<()> {
        let mut options = Vec::new();
        msgpack::encode_map(&mut options, 1);
        msgpack::encode_str(&mut options, b"unique");
        msgpack::encode_bool(&mut options, id == 0);
        let mut encoded = Vec::new();
        msgpack::encode_array(&mut encoded, parts.len() as u32);
        for (field, field_type, collation) in parts {
            msgpack::encode_map(&mut encoded, 2 + u32::from(collation.is_some()));
            msgpack::encode_str(&mut encoded, b"field");
            msgpack::encode_uint(&mut encoded, u64::from(*field));
            msgpack::encode_str(&mut encoded, b"type");
            msgpack::encode_str(&mut encoded, field_type.as_bytes());
            if let Some(collation) = collation {
                msgpack::encode_str(&mut encoded, b"collation");
                msgpack::encode_uint(&mut encoded, u64::from(*collation));
            }
        }
        let (options, parts) = (Field::Raw(&options), Field::Raw(&encoded));
        let ids = (u64::from(space_id).into(), u64::from(id).into());
        self.replace(INDEX_ID.0, &[ids.0, ids.1, name.into(), kind.into(), options, parts])
    }

    /// Lets everybody read, write and call.
    pub fn open_to_guest(&self) -> database::Result<()> {
        let (grantor, guest) = (u64::from(database::ADMIN), u64::from(database::GUEST));
        self.replace(PRIV_ID.0, &[grantor.into(), guest.into(), "universe".into(), 0.into(), ALL_RIGHTS.into()])
    }

    /// Makes a snapshot and waits until it is there.
    pub fn checkpoint(&self) -> database::Result<()> {
        self.database.make_checkpoint()?;
        self.database.submit();
        self.database.turn();
        Ok(())
    }

    /// Completes the files.
    pub fn close(self) -> database::Result<()> {
        drop(self.context);
        self.database.close()
    }
}
