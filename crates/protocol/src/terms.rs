//! What the address of a listener says about the door behind it, beside TLS: `[protocol://][user@]address[?name=value&...]`.

use crate::logins::is_near;
use database::{Database, Error, GUEST, Result, Session};
use std::collections::BTreeMap;
use std::io;

/// The parameter that says whether who comes from this machine has to log in where others have to: of the protocols that know it.
const LOCAL_LOGIN_PARAMETER: &str = "local_login";
/// The parameter that says how many connections may wait to be accepted: of the protocols that know it.
const BACKLOG_PARAMETER: &str = "backlog";
/// The most that it may say: what the kernel keeps in 16 bits on older systems.
const BACKLOG_MAX: u32 = 65_535;

/// See the head of this file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// Whom connections act as that have not logged in.
    pub user: Option<String>,
    /// Nothing is done for a connection before it has logged in.
    pub asks_login: bool,
    /// But for who comes from this machine.
    pub trusts_near: bool,
    /// Other machines reach the address.
    pub is_reachable: bool,
    /// The listener has a certificate.
    pub has_tls: bool,
    /// The address as it was said, without protocol, user and parameters.
    pub address: String,
    /// What only the protocol understands.
    pub parameters: BTreeMap<String, String>,
}

fn wrong(words: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, words)
}

impl Terms {
    /// Takes them out of the parts of an address; parameters of TLS are passed over. `is_reachable`: other machines reach it. Errors: one that has no
    /// meaning.
    pub(crate) fn of(login: Option<&str>, parameters: &[(String, String)], is_reachable: bool) -> io::Result<Self> {
        let mut terms =
            Terms { user: login.map(ToString::to_string), asks_login: is_reachable, is_reachable, ..Terms::default() };
        for (name, value) in parameters {
            match (name.as_str(), value.as_str()) {
                ("transport", _) => {}
                (name, _) if name.starts_with("ssl_") => {}
                ("auth", "required") => terms.asks_login = true,
                ("auth", "none") if is_reachable => {
                    return Err(wrong("auth=none is for addresses that no other machine reaches".to_string()));
                }
                ("auth", "none") => terms.asks_login = false,
                ("auth", other) => return Err(wrong(format!("auth '{other}' is neither required nor none"))),
                (name, value) if terms.parameters.insert(name.to_string(), value.to_string()).is_some() => {
                    return Err(wrong(format!("{name} is given twice")));
                }
                _ => {}
            }
        }
        terms.trusts_near = match terms.get(LOCAL_LOGIN_PARAMETER) {
            None | Some("yes") => false,
            Some("no") => true,
            Some(other) => {
                return Err(wrong(format!("{LOCAL_LOGIN_PARAMETER} '{other}' is neither yes nor no")));
            }
        };
        if let Some(user) = &terms.user
            && user.contains(':')
        {
            let words = "a listener names a user, not a password: clients log in with that of the user".to_string();
            return Err(wrong(words));
        }
        Ok(terms)
    }

    /// The value of a parameter.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.parameters.get(name).map(String::as_str)
    }

    /// True if nothing is done for who comes from there before a login.
    pub(crate) fn asks_login_of(&self, peer: Option<&str>) -> bool {
        self.asks_login && !(self.trusts_near && is_near(peer))
    }

    /// Connections that may wait at the listener to be accepted, if it says so. Errors: it is no such number.
    pub fn backlog(&self) -> Result<Option<u32>> {
        let Some(text) = self.get(BACKLOG_PARAMETER) else { return Ok(None) };
        let number = text.parse::<u32>().ok().filter(|number| (1..=BACKLOG_MAX).contains(number));
        let wrong = || Error::illegal(format_args!("backlog '{text}' is no number between 1 and {BACKLOG_MAX}"));
        number.map(Some).ok_or_else(wrong)
    }

    /// Errors: there is a parameter that is not among these, which the error names.
    pub fn check(&self, protocol: &str, known: &[&str]) -> Result<()> {
        match self.parameters.keys().find(|name| !known.contains(&name.as_str())) {
            Some(name) => {
                let known = known.join(", ");
                let words = format!("{protocol}:// has no parameter '{name}'; it knows auth, {known} and those of TLS");
                Err(Error::illegal(words))
            }
            None => Ok(()),
        }
    }

    /// Makes a new session the one of whom the listener names, or else of `own_user`. Errors: there is no such user.
    pub(crate) fn begin(&self, database: &Database, session: &Session, own_user: Option<&str>) -> Result<()> {
        let named = self.user.as_deref().or(own_user);
        let Some(name) = named.filter(|_| !self.asks_login_of(session.peer.as_deref())) else { return Ok(()) };
        let user = database.catalog.user_by_name(name).map(|user| user.id);
        match user {
            Some(GUEST) => Ok(()),
            Some(user) => database.log_in(session, user),
            None => Err(Error::new(database::ErrorCode::NoSuchUser, &[&name])),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;

    fn of(login: Option<&str>, parameters: &[(&str, &str)], is_reachable: bool) -> std::result::Result<Terms, String> {
        let owned: Vec<_> = parameters.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        Terms::of(login, &owned, is_reachable).map_err(|error| error.to_string())
    }

    #[test]
    fn who_comes_from_elsewhere_logs_in() {
        assert!(!of(None, &[], false).unwrap().asks_login);
        assert!(of(None, &[("auth", "required")], false).unwrap().asks_login);
        assert!(of(Some("me"), &[], true).unwrap().asks_login);
        assert!(of(None, &[("auth", "none")], true).unwrap_err().contains("no other machine"));
        assert!(of(None, &[("auth", "no")], false).unwrap_err().contains("neither"));
        assert!(of(Some("me:secret"), &[], false).unwrap_err().contains("not a password"));
    }

    #[test]
    fn a_parameter_that_nobody_knows_is_named() {
        let terms = of(None, &[("transport", "ssl"), ("ssl_key_file", "x"), ("engine", "vinyl")], false).unwrap();
        assert_eq!(terms.get("engine"), Some("vinyl"));
        terms.check("redis", &["engine"]).unwrap();
        let error = terms.check("redis", &["space"]).unwrap_err().to_string();
        assert!(error.contains("'engine'") && error.contains("auth, space"), "{error}");
        assert!(of(None, &[("a", "1"), ("a", "2")], false).unwrap_err().contains("twice"));
    }
}
