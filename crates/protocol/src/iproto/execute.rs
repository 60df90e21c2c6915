//! EXECUTE and PREPARE: statements of SQL by text, or by the number of one that the session has prepared.

use super::request::{Values, decode_error, missing};
use database::{Context, Database, Error, ErrorCode, GUEST, Result};
use sql::{Source, Sql};
use std::rc::Rc;
use tuple::msgpack::{Kind, Reader};
use wire::{DecodeError, key, request_type};

/// What such a request says.
#[derive(Default)]
struct Statement<'a> {
    text: Option<&'a [u8]>,
    id: Option<u32>,
    params: Option<&'a [u8]>,
}

impl<'a> Statement<'a> {
    fn decode(body: &'a [u8]) -> std::result::Result<Self, DecodeError> {
        let bad = |_| DecodeError::Body("packet body");
        let mut reader = Reader::new(body);
        let mut statement = Statement::default();
        for _ in 0..reader.read_map().map_err(bad)? {
            let name = reader.read_value().map_err(bad)?;
            let value = reader.read_value().map_err(bad)?;
            let mut inner = Reader::new(value);
            match Reader::new(name).read_uint() {
                Ok(key::SQL_TEXT) => statement.text = Some(inner.read_str().map_err(bad)?),
                Ok(key::STMT_ID) => statement.id = u32::try_from(inner.read_uint().map_err(bad)?).ok(),
                Ok(key::SQL_BIND) if inner.kind() == Ok(Kind::Array) => statement.params = Some(value),
                Ok(key::SQL_BIND) => return Err(DecodeError::Body("packet body")),
                _ => {}
            }
        }
        Ok(statement)
    }

    fn text(&self) -> Result<Option<&'a str>> {
        let text = self.text.map(std::str::from_utf8).transpose();
        text.map_err(|_| Error::illegal("the text of a statement must be UTF-8"))
    }
}

/// Errors: `AccessDenied` for guest while nothing was granted to it: a statement can keep the server busy without a row. Tarantool 3 wants a right of its own for SQL.
fn check_may(database: &Database, context: &Context) -> Result<()> {
    match context.session.user.get() == GUEST && !database.catalog.has_more_than_a_session(GUEST) {
        true => Err(Error::new(ErrorCode::AccessDenied, &[&"Execute", &"sql", &"", &"guest"])
            .with("access_type", "Execute")
            .with("object_type", "sql")
            .with("object_name", "")
            .with("user", "guest")),
        false => Ok(()),
    }
}

/// Runs an EXECUTE or a PREPARE and sets the body of its answer. May wait. Errors: those of the statement; a request that is none.
pub(super) fn run(
    database: &Rc<Database>,
    context: &Rc<Context>,
    request_type: u64,
    body: &[u8],
    out: &mut Values,
) -> Result<u32> {
    check_may(database, context)?;
    let statement = Statement::decode(body).map_err(decode_error)?;
    let sql = Sql::of(database);
    let mut answer = Vec::new();
    let text = statement.text()?;
    if request_type == request_type::PREPARE {
        match (text, statement.id) {
            (Some(text), _) => sql.prepare_for(database, context, text)?.encode(&mut answer, false),
            // The number alone: it is not needed any more.
            (None, Some(id)) => {
                sql.unprepare(context, id)?;
                tuple::msgpack::encode_map(&mut answer, 0);
            }
            (None, None) => return Err(missing("SQL text or statement id")),
        }
    } else {
        let source = match (text, statement.id) {
            (Some(text), _) => Source::Text(text),
            (None, Some(id)) => Source::Prepared(id),
            (None, None) => return Err(missing("SQL text or statement id")),
        };
        sql.execute(database, context, source, statement.params.unwrap_or(&[]))?.encode(&mut answer, false);
    }
    out.body = Some(answer);
    Ok(0)
}
