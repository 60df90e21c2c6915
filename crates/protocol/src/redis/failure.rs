//! Why a command is refused, in the words of Redis 7.0.

use database::{Error, ErrorCode};
use std::borrow::Cow;

/// See the head of this file.
#[derive(Debug)]
pub(super) enum Failure {
    /// The text of an error of Redis, its code first.
    Text(Cow<'static, str>),
    /// An error of the database. One that says that a fiber is needed begins the command anew in one.
    Database(Error),
}

/// What a command comes to; its answer was written.
pub(super) type Outcome<T = ()> = Result<T, Failure>;

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Database(error)
    }
}

impl From<&'static str> for Failure {
    fn from(text: &'static str) -> Self {
        Failure::Text(Cow::Borrowed(text))
    }
}

impl From<String> for Failure {
    fn from(text: String) -> Self {
        Failure::Text(Cow::Owned(text))
    }
}

pub(super) const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";
pub(super) const SYNTAX: &str = "ERR syntax error";
pub(super) const NOT_INTEGER: &str = "ERR value is not an integer or out of range";
pub(super) const NOT_FLOAT: &str = "ERR value is not a valid float";
pub(super) const NO_KEY: &str = "ERR no such key";
pub(super) const INDEX_RANGE: &str = "ERR index out of range";
pub(super) const NOT_POSITIVE: &str = "ERR value is out of range, must be positive";
pub(super) const TOO_LONG: &str = "ERR string exceeds maximum allowed size (proto-max-bulk-len)";

/// An error of the database as Redis' clients know such things.
pub(super) fn text_of(error: &Error) -> String {
    let code = error.code();
    let is = |wanted: ErrorCode| code == wanted as u32;
    let word = if is(ErrorCode::AccessDenied) {
        "NOPERM"
    } else if is(ErrorCode::MemoryIssue) {
        "OOM"
    } else if is(ErrorCode::Readonly) {
        "READONLY"
    } else if is(ErrorCode::CredsMismatch) {
        return "WRONGPASS invalid username-password pair or user is disabled.".to_string();
    } else if is(ErrorCode::Loading) {
        "LOADING"
    } else if is(ErrorCode::WalIo) {
        "MISCONF"
    } else {
        "ERR"
    };
    format!("{word} {error}")
}
