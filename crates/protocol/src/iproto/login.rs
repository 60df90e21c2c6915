//! Logging in by chap-sha1.

use super::decode::Request;
use super::request::{decode_error, missing};
use crate::connection::Connection;
use database::{Error, ErrorCode, Result};
use tuple::msgpack::Reader;
use wire::{AUTH_METHOD, SALT_BYTES, SCRAMBLE_BYTES, request_type};

/// The name of the user in the body of a login.
pub(super) fn user_of(body: &[u8]) -> String {
    let request = Request::decode(request_type::AUTH, body).ok();
    let name = request.and_then(|request| request.user_name).unwrap_or_default();
    String::from_utf8_lossy(name).into_owned()
}

/// Makes the session of a connection a user's if the body of a login proves that it is theirs. Errors: it does not, or is no such body.
pub(super) fn authenticate(connection: &Connection, salt: &[u8; SALT_BYTES], body: &[u8]) -> Result<()> {
    let request = Request::decode(request_type::AUTH, body).map_err(decode_error)?;
    let (database, session) = (connection.database(), connection.session());
    let name = request.user_name.ok_or_else(|| missing("user name"))?;
    let name = String::from_utf8_lossy(name);
    let raw = request.tuple.ok_or_else(|| missing("tuple"))?;
    let malformed = |what: &str| Error::new(ErrorCode::InvalidMsgpack, &[&what]);
    let mut reader = Reader::new(raw);
    let body = "authentication request body";
    let count = reader.read_array().map_err(|_| malformed(body))?;
    if count == 0 && name == "guest" {
        return database.log_in(session, database::GUEST);
    }
    if count < 2 {
        return Err(malformed(body));
    }
    let method = reader.read_value().map_err(|_| malformed(body))?;
    let scramble = reader.read_str_or_bin().map_err(|_| malformed("authentication scramble"))?;
    if scramble.len() != SCRAMBLE_BYTES {
        return Err(malformed("invalid scramble size"));
    }
    if !Reader::new(method).read_str().is_ok_and(|method| method == AUTH_METHOD.as_bytes()) {
        let method = Reader::new(method).read_str().unwrap_or(method);
        let method = String::from_utf8_lossy(method);
        return Err(Error::illegal(format_args!("unknown authentication method '{}'", method.escape_debug())));
    }
    database.authenticate(session, &name, scramble, salt)
}
