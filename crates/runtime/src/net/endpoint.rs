//! An address with what is said about how to reach it: `[login@]address[?name=value&...]`.

use super::Address;
use std::io::{self, ErrorKind};

/// Parameters that one address may have: there are fewer names.
const PARAMETERS_MAX: usize = 64;

/// See the head of this file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// `host:port`, a port, or the path of a unix socket.
    pub address: String,
    /// What stands before `@`.
    pub login: Option<String>,
    /// Names and values behind `?`, in their order.
    pub parameters: Vec<(String, String)>,
}

impl Endpoint {
    /// Takes a text apart. `%xx` in parameters stands for a byte. Errors: it has more parameters than anybody needs, or one that is not UTF-8.
    pub fn parse(text: &str) -> io::Result<Self> {
        let (before, query) = text.split_once('?').unwrap_or((text, ""));
        let (login, address) = Address::split_login(before);
        let mut parameters = Vec::new();
        for part in query.split('&').filter(|part| !part.is_empty()) {
            if parameters.len() == PARAMETERS_MAX {
                let words = format!("an address has at most {PARAMETERS_MAX} parameters");
                return Err(io::Error::new(ErrorKind::InvalidInput, words));
            }
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            parameters.push((unescape(name)?, unescape(value)?));
        }
        Ok(Endpoint { address: address.to_string(), login: login.map(ToString::to_string), parameters })
    }

    /// The first address that it stands for. May block for as long as a name server takes. Errors: there is none.
    pub fn resolve(&self) -> io::Result<Address> {
        let first = Address::resolve(&self.address)?.into_iter().next();
        first.ok_or_else(|| io::Error::new(ErrorKind::NotFound, "no such address"))
    }
}

/// `a%20b` is `a b`; a `%` that no two digits follow stands for itself.
fn unescape(text: &str) -> io::Result<String> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escaped = match bytes[at..] {
            [b'%', high, low, ..] => digit(high).zip(digit(low)),
            _ => None,
        };
        match escaped {
            Some((high, low)) => {
                out.push(high << 4 | low);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8(out).map_err(|_| io::Error::new(ErrorKind::InvalidInput, "a parameter is not UTF-8"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;

    #[test]
    fn a_text_is_an_address_a_login_and_parameters() {
        let parse = |text: &str| Endpoint::parse(text).unwrap();
        let plain = parse("localhost:3301");
        assert_eq!((plain.address.as_str(), plain.login, plain.parameters.len()), ("localhost:3301", None, 0));
        let full = parse("me:secret@unix/:/tmp/a@b?transport=ssl&ssl_key_file=%2ftmp%2Fa%26b&x&100%");
        assert_eq!((full.address.as_str(), full.login.as_deref()), ("unix/:/tmp/a@b", Some("me:secret")));
        let expected = [("transport", "ssl"), ("ssl_key_file", "/tmp/a&b"), ("x", ""), ("100%", "")];
        assert!(full.parameters.iter().map(|(name, value)| (name.as_str(), value.as_str())).eq(expected));
        assert!(Endpoint::parse("1?a=%ff").is_err());
        assert!(Endpoint::parse(&format!("1?{}", "a=1&".repeat(PARAMETERS_MAX + 1))).is_err());
        assert_eq!(parse("127.0.0.1:1?a=b").resolve().unwrap().to_string(), "127.0.0.1:1");
        assert!(parse("").resolve().is_err());
    }
}
