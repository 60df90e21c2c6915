//! CREATE USER, GRANT and their kin, of both dialects: accounts and rights are those of `box.schema.user` and `box.schema.role`.
//!
//! What a right of SQL is here stands in [`rights_on_rows`] and [`rights_on_all`]. A form that would give more than it says is refused.

use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::session::Session;
use crate::table::Table;
use database::{Context, Database, ObjectType, Privileges};
use sqlparser::ast::Ident;
use sqlparser::tokenizer::{Span, Token, TokenWithSpan};
use tuple::msgpack;

/// A statement about accounts.
#[derive(Clone, Debug)]
pub(crate) struct Accounts {
    /// It alone.
    pub(crate) text: String,
    pub(crate) tag: &'static str,
    changes: Vec<Change>,
    /// Accounts that were bound to the computers that they may come from.
    hosts: Vec<String>,
}

/// A user or a role.
#[derive(Clone, Debug, PartialEq)]
enum Who {
    Named(String),
    /// Whoever asks.
    Oneself,
}

#[derive(Clone, Debug)]
enum Change {
    Create {
        name: String,
        is_role: bool,
        if_absent: bool,
    },
    /// None: it has none any more, and nobody enters by it.
    Password {
        who: Who,
        password: Option<String>,
        if_there: bool,
    },
    /// May it open sessions?
    Login {
        who: Who,
        may: bool,
    },
    Drop {
        name: String,
        is_role: Option<bool>,
        if_there: bool,
    },
    Rights {
        what: Rights,
        to: Vec<Who>,
        is_given: bool,
    },
    Roles {
        roles: Vec<String>,
        to: Vec<Who>,
        is_given: bool,
    },
    /// All that it was given.
    RevokeAll(Who),
}

#[derive(Clone, Debug)]
enum Rights {
    /// On everything there is.
    Everything(u32),
    /// On all tables, those to come too.
    AllTables(u32),
    /// On all tables or sequences that there are.
    Present(ObjectType, u32),
    /// On some.
    Named(ObjectType, Vec<String>, u32),
    /// To make tables and sequences.
    Making(u32),
    /// Those that everybody has.
    Nothing,
}

/// Accounts of one statement.
const NAMES_MAX: usize = 100;

const READ: u32 = Privileges::READ;
const ROWS: u32 = Privileges::INSERT | Privileges::UPDATE | Privileges::DELETE;
const SHAPE: u32 = Privileges::CREATE | Privileges::ALTER | Privileges::DROP;

/// True if a statement is one of these: its first words.
pub(crate) fn is_own(first: &str, second: &str, third: &str) -> bool {
    match first {
        "grant" | "revoke" => true,
        "create" | "alter" | "drop" => matches!(second, "user" | "role" | "group") && third != "mapping",
        _ => false,
    }
}

/// The same, of tokens with white space between them.
pub(crate) fn are_own(statement: &[TokenWithSpan]) -> bool {
    let mut words = statement.iter().map(|token| &token.token).filter(|token| !matches!(token, Token::Whitespace(_)));
    let mut next = || words.next().map_or_else(String::new, word_of);
    is_own(&next(), &next(), &next())
}

fn word_of(token: &Token) -> String {
    match token {
        Token::Word(word) if word.quote_style.is_none() => word.value.to_ascii_lowercase(),
        _ => String::new(),
    }
}

/// Reads a statement; white space is no token of it. Errors: `Syntax`; `Unsupported` for what there is not here.
pub(crate) fn parse(dialect: Dialect, tokens: Vec<Token>) -> Result<Accounts> {
    let text = tokens.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    let mut words = Words { dialect, tokens, at: 0, hosts: Vec::new() };
    let (tag, changes) = match words.next_word().as_str() {
        "create" => words.create()?,
        "alter" => words.alter()?,
        "drop" => words.drop()?,
        "grant" => ("GRANT", words.grant(true)?),
        "revoke" => ("REVOKE", words.grant(false)?),
        "set" => ("SET", words.set_password()?),
        _ => return Err(words.wrong()),
    };
    if words.at < words.tokens.len() {
        return Err(words.wrong());
    }
    Ok(Accounts { text, tag, changes, hosts: words.hosts })
}

struct Words {
    dialect: Dialect,
    tokens: Vec<Token>,
    at: usize,
    hosts: Vec<String>,
}

/// What CREATE and ALTER say of an account.
#[derive(Default)]
struct Options {
    password: Option<Option<String>>,
    login: Option<bool>,
    is_super: Option<bool>,
    roles: Vec<String>,
    members: Vec<Who>,
}

impl Words {
    fn is_mysql(&self) -> bool {
        self.dialect == Dialect::Mysql
    }

    fn wrong(&self) -> Error {
        let near = self.tokens.get(self.at).map_or_else(|| "end of input".to_string(), |token| format!("\"{token}\""));
        Error::new(Condition::Syntax, format!("syntax error at or near {near}"))
    }

    fn word(&self, ahead: usize) -> String {
        self.tokens.get(self.at + ahead).map_or_else(String::new, word_of)
    }

    fn next_word(&mut self) -> String {
        let word = self.word(0);
        self.at += 1;
        word
    }

    fn skip(&mut self, words: &[&str]) -> bool {
        let is_there = words.iter().enumerate().all(|(ahead, word)| self.word(ahead) == *word);
        self.at += if is_there { words.len() } else { 0 };
        is_there
    }

    fn expect(&mut self, word: &str) -> Result<()> {
        if self.skip(&[word]) { Ok(()) } else { Err(self.wrong()) }
    }

    fn skip_token(&mut self, token: &Token) -> bool {
        let is_there = self.tokens.get(self.at) == Some(token);
        self.at += usize::from(is_there);
        is_there
    }

    fn text(&mut self) -> Result<String> {
        let text = match self.tokens.get(self.at) {
            Some(Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text)) => text.clone(),
            Some(Token::DoubleQuotedString(text)) if self.is_mysql() => text.clone(),
            _ => return Err(self.wrong()),
        };
        self.at += 1;
        Ok(text)
    }

    fn name(&mut self) -> Result<String> {
        let name = match self.tokens.get(self.at) {
            Some(Token::Word(word)) => {
                let ident = Ident { value: word.value.clone(), quote_style: word.quote_style, span: Span::empty() };
                self.dialect.fold(&ident)
            }
            _ if self.is_mysql() => return self.text(),
            _ => return Err(self.wrong()),
        };
        self.at += 1;
        Ok(name)
    }

    /// The name of an account, with the computer that it may come from in MySQL's dialect.
    fn who(&mut self) -> Result<Who> {
        if self.skip(&["current_user"]) || self.skip(&["session_user"]) || self.is_mysql() && self.skip(&["user"]) {
            if self.skip_token(&Token::LParen) && !self.skip_token(&Token::RParen) {
                return Err(self.wrong());
            }
            return Ok(Who::Oneself);
        }
        // The tokens of MySQL's dialect have `a@b` and `@b` as one word.
        if self.is_mysql()
            && let Some(Token::Word(word)) = self.tokens.get(self.at)
            && word.quote_style.is_none()
            && let Some((name, host)) = word.value.split_once('@')
            && !name.is_empty()
        {
            let (name, host) = (name.to_string(), host.to_string());
            self.at += 1;
            let host = if host.is_empty() { self.name()? } else { host };
            self.note_host(&name, &host);
            return Ok(Who::Named(name));
        }
        let name = self.name()?;
        if self.is_mysql() {
            if self.skip_token(&Token::AtSign) {
                let host = self.name()?;
                self.note_host(&name, &host);
            } else if let Some(Token::Word(word)) = self.tokens.get(self.at)
                && let Some(host) = word.value.strip_prefix('@')
            {
                let host = host.to_string();
                self.at += 1;
                let host = if host.is_empty() { self.name()? } else { host };
                self.note_host(&name, &host);
            }
        }
        Ok(Who::Named(name))
    }

    fn note_host(&mut self, name: &str, host: &str) {
        if host != "%" {
            self.hosts.push(name.to_string());
        }
    }

    fn named(&mut self) -> Result<String> {
        match self.who()? {
            Who::Named(name) => Ok(name),
            Who::Oneself => Err(Error::unsupported("CURRENT_USER in this place")),
        }
    }

    fn several<T>(&mut self, mut one: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut all = vec![one(self)?];
        while self.skip_token(&Token::Comma) {
            all.push(one(self)?);
            if all.len() > NAMES_MAX {
                let what = format!("a statement has at most {NAMES_MAX} names of accounts and tables");
                return Err(Error::new(Condition::LimitExceeded, what));
            }
        }
        Ok(all)
    }

    fn if_not_exists(&mut self) -> bool {
        self.skip(&["if", "not", "exists"])
    }

    fn create(&mut self) -> Result<(&'static str, Vec<Change>)> {
        let kind = self.next_word();
        let if_absent = self.if_not_exists();
        let mut changes = Vec::new();
        if self.is_mysql() {
            let is_role = kind == "role";
            for (name, options) in self.several(|words| Ok((words.named()?, words.options(is_role)?)))? {
                changes.push(Change::Create { name: name.clone(), is_role, if_absent });
                alter(&mut changes, Who::Named(name), options, false);
            }
            return Ok((if is_role { "CREATE ROLE" } else { "CREATE USER" }, changes));
        }
        let name = self.named()?;
        let options = self.options(false)?;
        let is_role = !options.login.unwrap_or(kind == "user");
        if is_role && options.password.as_ref().is_some_and(Option::is_some) {
            return Err(Error::unsupported("a password of a role without LOGIN"));
        }
        changes.push(Change::Create { name: name.clone(), is_role, if_absent });
        alter(&mut changes, Who::Named(name), Options { login: None, ..options }, false);
        Ok(("CREATE ROLE", changes))
    }

    fn alter(&mut self) -> Result<(&'static str, Vec<Change>)> {
        self.at += 1;
        let if_there = self.skip(&["if", "exists"]);
        let mut changes = Vec::new();
        let all = if self.is_mysql() {
            self.several(|words| Ok((words.who()?, words.options(false)?)))?
        } else {
            let who = self.who()?;
            if matches!(self.word(0).as_str(), "rename" | "set" | "reset" | "in") {
                return Err(Error::unsupported(format!("ALTER ROLE ... {}", self.word(0).to_uppercase())));
            }
            vec![(who, self.options(false)?)]
        };
        for (who, options) in all {
            alter(&mut changes, who, options, if_there);
        }
        Ok((if self.is_mysql() { "ALTER USER" } else { "ALTER ROLE" }, changes))
    }

    fn drop(&mut self) -> Result<(&'static str, Vec<Change>)> {
        let kind = self.next_word();
        let if_there = self.skip(&["if", "exists"]);
        let names = self.several(Self::named)?;
        let is_role = self.is_mysql().then_some(kind == "role");
        let changes = names.into_iter().map(|name| Change::Drop { name, is_role, if_there });
        let tag = match is_role {
            None => "DROP ROLE",
            Some(true) => "DROP ROLE",
            Some(false) => "DROP USER",
        };
        Ok((tag, changes.collect()))
    }

    /// `SET PASSWORD [FOR user] = 'text'`, behind SET.
    fn set_password(&mut self) -> Result<Vec<Change>> {
        self.expect("password")?;
        let who = if self.skip(&["for"]) { self.who()? } else { Who::Oneself };
        if !self.skip_token(&Token::Eq) {
            return Err(self.wrong());
        }
        let is_call = self.skip(&["password"]);
        if is_call && !self.skip_token(&Token::LParen) {
            return Err(self.wrong());
        }
        let password = self.text()?;
        if is_call && !self.skip_token(&Token::RParen) {
            return Err(self.wrong());
        }
        check_password(&password)?;
        Ok(vec![Change::Password { who, password: Some(password), if_there: false }])
    }

    fn options(&mut self, is_role: bool) -> Result<Options> {
        let mut options = Options::default();
        if is_role {
            return Ok(options);
        }
        if self.is_mysql() {
            if self.skip(&["identified"]) {
                if self.skip(&["with"]) {
                    self.name()?;
                }
                if !self.skip(&["by"]) || self.word(0) == "password" {
                    return Err(Error::unsupported("the hash of a password in place of the password"));
                }
                let password = self.text()?;
                check_password(&password)?;
                options.password = Some(Some(password));
            }
            if self.skip(&["account", "lock"]) {
                options.login = Some(false);
            } else if self.skip(&["account", "unlock"]) {
                options.login = Some(true);
            }
            self.skip(&["require", "none"]);
            if matches!(self.word(0).as_str(), "require" | "with" | "password" | "comment" | "attribute" | "default") {
                return Err(Error::unsupported(format!("{} of an account", self.word(0).to_uppercase())));
            }
            return Ok(options);
        }
        self.skip(&["with"]);
        while self.at < self.tokens.len() {
            let at = self.at;
            match self.next_word().as_str() {
                "superuser" => options.is_super = Some(true),
                "nosuperuser" => options.is_super = Some(false),
                "login" => options.login = Some(true),
                "nologin" => options.login = Some(false),
                // There is one database, and nobody replicates.
                "createdb" | "nocreatedb" | "nocreaterole" | "inherit" | "noreplication" | "nobypassrls" => {}
                "encrypted" => continue,
                "password" if self.skip(&["null"]) => options.password = Some(None),
                "password" => {
                    let password = self.text()?;
                    if password.starts_with("SCRAM-SHA-256$") || password.starts_with("md5") && password.len() == 35 {
                        return Err(Error::unsupported("the hash of a password in place of the password"));
                    }
                    check_password(&password)?;
                    options.password = Some(Some(password));
                }
                "connection" if self.skip(&["limit"]) => {
                    let is_none = self.skip_token(&Token::Minus)
                        && matches!(self.tokens.get(self.at), Some(Token::Number(digits, _)) if digits == "1");
                    if !is_none {
                        return Err(Error::unsupported("CONNECTION LIMIT of a role"));
                    }
                    self.at += 1;
                }
                "valid" if self.skip(&["until"]) => {
                    if self.text()? != "infinity" {
                        return Err(Error::unsupported("VALID UNTIL of a role"));
                    }
                }
                "in" if self.skip(&["role"]) || self.skip(&["group"]) => options.roles = self.several(Self::named)?,
                "role" | "user" | "admin" => options.members = self.several(Self::who)?,
                word @ ("createrole" | "noinherit" | "replication" | "bypassrls") => {
                    return Err(Error::unsupported(format!("{} of a role", word.to_uppercase())));
                }
                _ => {
                    self.at = at;
                    return Err(self.wrong());
                }
            }
        }
        Ok(options)
    }

    /// GRANT and REVOKE, behind that word.
    fn grant(&mut self, is_given: bool) -> Result<Vec<Change>> {
        if !is_given {
            for words in [&["grant", "option", "for"][..], &["admin", "option", "for"]] {
                if self.skip(words) {
                    return Err(Error::unsupported(format!("{} OPTION", words[0].to_uppercase())));
                }
            }
        }
        let towards = if is_given { "to" } else { "from" };
        let has_object = (self.at..self.tokens.len())
            .map(|at| word_of(&self.tokens[at]))
            .find(|word| word == "on" || word == towards)
            .is_some_and(|word| word == "on");
        if !has_object {
            if !is_given && self.is_mysql() && self.skip(&["all"]) {
                self.skip(&["privileges"]);
                if !self.skip_token(&Token::Comma) || !self.skip(&["grant", "option"]) {
                    return Err(self.wrong());
                }
                self.expect(towards)?;
                let from = self.several(Self::who)?;
                return Ok(from.into_iter().map(Change::RevokeAll).collect());
            }
            let roles = self.several(Self::named)?;
            self.expect(towards)?;
            let to = self.several(Self::who)?;
            self.trailer()?;
            return Ok(vec![Change::Roles { roles, to, is_given }]);
        }
        let wanted = self.several(Self::privilege)?;
        self.expect("on")?;
        let mut what = self.object(&wanted)?;
        self.expect(towards)?;
        let mut changes = Vec::new();
        let mut to = Vec::new();
        for (who, options) in self.several(|words| {
            words.skip(&["group"]);
            let who = if !words.is_mysql() && words.skip(&["public"]) {
                Who::Named("public".to_string())
            } else {
                words.who()?
            };
            let has_options = words.is_mysql() && words.word(0) == "identified";
            Ok((who, if has_options { words.options(false)? } else { Options::default() }))
        })? {
            if let Some(password) = options.password {
                changes.push(Change::Password { who: who.clone(), password, if_there: false });
            }
            to.push(who);
        }
        if is_given && self.skip(&["with", "grant", "option"]) {
            // Who may do everything and hand it on is an administrator.
            match &what {
                Rights::Everything(_) if wanted == ["all"] => {
                    changes.push(Change::Roles { roles: vec!["super".to_string()], to: to.clone(), is_given });
                    what = Rights::Nothing;
                }
                _ => {
                    let error = Error::unsupported("WITH GRANT OPTION but with ALL ON *.*");
                    return Err(error.hint("Who owns an object may grant rights on it."));
                }
            }
        }
        self.trailer()?;
        changes.push(Change::Rights { what, to, is_given });
        Ok(changes)
    }

    /// What may stand at the end.
    fn trailer(&mut self) -> Result<()> {
        if self.skip(&["granted", "by"]) {
            self.who()?;
        }
        if self.skip(&["cascade"]) || self.skip(&["restrict"]) {
            return Ok(());
        }
        if self.word(0) == "with" {
            return Err(Error::unsupported(format!("WITH {} OPTION", self.word(1).to_uppercase())));
        }
        Ok(())
    }

    fn privilege(&mut self) -> Result<String> {
        let word = self.next_word();
        if self.tokens.get(self.at) == Some(&Token::LParen) {
            return Err(Error::unsupported("rights on columns").hint("A view shows some columns of a table."));
        }
        Ok(match word.as_str() {
            "all" => {
                self.skip(&["privileges"]);
                word
            }
            "create" | "drop" | "alter" | "show" | "lock" | "references" | "grant" => {
                for more in ["temporary", "tables", "view", "databases", "routine", "role", "user", "option"] {
                    if self.skip(&[more]) {
                        if matches!(more, "role" | "user" | "option") {
                            return Err(Error::unsupported(format!(
                                "the right {} {}",
                                word.to_uppercase(),
                                more.to_uppercase()
                            )));
                        }
                        if (word.as_str(), more) == ("create", "temporary") {
                            self.skip(&["tables"]);
                            return Ok("temporary".to_string());
                        }
                    }
                }
                word
            }
            "select" | "insert" | "update" | "delete" | "truncate" | "index" | "trigger" | "usage" | "execute"
            | "connect" | "temporary" | "temp" | "event" | "process" | "reload" | "file" => word,
            _ => {
                self.at -= 1;
                return Err(self.wrong());
            }
        })
    }

    fn object(&mut self, wanted: &[String]) -> Result<Rights> {
        let is_mysql = self.is_mysql();
        let kind = self.word(0);
        if is_mysql {
            self.skip(&["table"]);
            if self.skip_token(&Token::Mul) {
                if !self.skip_token(&Token::Period) {
                    return Ok(Rights::AllTables(rights_on_all(wanted)?));
                }
                return match self.skip_token(&Token::Mul) {
                    true => Ok(Rights::Everything(rights_on_all(wanted)?)),
                    false => Err(self.wrong()),
                };
            }
            if matches!(kind.as_str(), "function" | "procedure") {
                self.at += 1;
                let name = self.qualified()?;
                return Ok(Rights::Named(ObjectType::Function, vec![name], of_functions(wanted)?));
            }
            let name = self.name()?;
            if !self.skip_token(&Token::Period) {
                return Ok(Rights::Named(ObjectType::Space, vec![name], rights_on_rows(wanted)?));
            }
            if self.skip_token(&Token::Mul) {
                return Ok(Rights::AllTables(rights_on_all(wanted)?));
            }
            return Ok(Rights::Named(ObjectType::Space, vec![self.name()?], rights_on_rows(wanted)?));
        }
        if self.skip(&["all", "tables", "in", "schema"]) {
            self.several(Self::name)?;
            return Ok(Rights::Present(ObjectType::Space, rights_on_rows(wanted)?));
        }
        if self.skip(&["all", "sequences", "in", "schema"]) {
            self.several(Self::name)?;
            return Ok(Rights::Present(ObjectType::Sequence, of_sequences(wanted)?));
        }
        match kind.as_str() {
            "schema" | "database" => {
                self.at += 1;
                self.several(Self::name)?;
                of_schema(wanted)
            }
            "sequence" => {
                self.at += 1;
                let names = self.several(Self::qualified)?;
                Ok(Rights::Named(ObjectType::Sequence, names, of_sequences(wanted)?))
            }
            "function" | "procedure" | "routine" => {
                self.at += 1;
                let names = self.several(|words| {
                    let name = words.qualified()?;
                    if words.skip_token(&Token::LParen) {
                        while !words.skip_token(&Token::RParen) {
                            if words.at >= words.tokens.len() {
                                return Err(words.wrong());
                            }
                            words.at += 1;
                        }
                    }
                    Ok(name)
                })?;
                Ok(Rights::Named(ObjectType::Function, names, of_functions(wanted)?))
            }
            "all" | "language" | "tablespace" | "type" | "domain" | "foreign" | "large" | "parameter" => {
                Err(Error::unsupported(format!("rights on {}", kind.to_uppercase())))
            }
            _ => {
                self.skip(&["table"]);
                let names = self.several(Self::qualified)?;
                Ok(Rights::Named(ObjectType::Space, names, rights_on_rows(wanted)?))
            }
        }
    }

    fn qualified(&mut self) -> Result<String> {
        let mut name = self.name()?;
        while self.skip_token(&Token::Period) {
            name = self.name()?;
        }
        Ok(name)
    }
}

/// What CREATE and ALTER say of an account, as changes of it.
fn alter(changes: &mut Vec<Change>, who: Who, options: Options, if_there: bool) {
    if let Some(password) = options.password {
        changes.push(Change::Password { who: who.clone(), password, if_there });
    }
    if let Some(may) = options.login {
        changes.push(Change::Login { who: who.clone(), may });
    }
    if let Some(is_given) = options.is_super {
        let roles = vec!["super".to_string()];
        changes.push(Change::Roles { roles, to: vec![who.clone()], is_given });
    }
    if !options.roles.is_empty() {
        changes.push(Change::Roles { roles: options.roles, to: vec![who.clone()], is_given: true });
    }
    if let (Who::Named(name), false) = (who, options.members.is_empty()) {
        changes.push(Change::Roles { roles: vec![name], to: options.members, is_given: true });
    }
}

fn check_password(password: &str) -> Result<()> {
    match password.len() {
        0 => Err(Error::new(Condition::InvalidArgument, "an empty password is none")),
        1..=1000 => Ok(()),
        _ => Err(Error::new(Condition::InvalidArgument, "a password has at most 1000 bytes")),
    }
}

/// A set of rights by their words: those on rows of a table and on its shape.
fn rights_on_rows(wanted: &[String]) -> Result<u32> {
    let mut rights = 0;
    for word in wanted {
        rights |= match word.as_str() {
            "all" => READ | Privileges::WRITE | Privileges::ALTER | Privileges::DROP,
            "select" => READ,
            "insert" => Privileges::INSERT,
            "update" => Privileges::UPDATE,
            "delete" => Privileges::DELETE,
            // It takes all rows and leaves nothing to take back.
            "truncate" => Privileges::WRITE,
            "alter" | "index" | "create" => Privileges::ALTER,
            "drop" => Privileges::DROP,
            "usage" | "references" | "trigger" | "show" | "lock" => 0,
            other => return Err(no_right(other)),
        };
    }
    // Who may do all three may write, for every program: Tarantool knows no finer rights.
    Ok(if rights & ROWS == ROWS { rights & !ROWS | Privileges::WRITE } else { rights })
}

/// The same on all tables, those to come too.
fn rights_on_all(wanted: &[String]) -> Result<u32> {
    let mut rights = 0;
    let mut rest = Vec::new();
    for word in wanted {
        match word.as_str() {
            "all" => rights |= READ | Privileges::WRITE | Privileges::EXECUTE | SHAPE,
            "create" => rights |= Privileges::CREATE,
            "execute" => rights |= Privileges::EXECUTE,
            "temporary" | "event" | "process" | "reload" => {}
            "file" => return Err(no_right(word)),
            _ => rest.push(word.clone()),
        }
    }
    Ok(rights | rights_on_rows(&rest)?)
}

fn of_sequences(wanted: &[String]) -> Result<u32> {
    wanted.iter().try_fold(0, |rights, word| {
        Ok(rights
            | match word.as_str() {
                "all" => READ | Privileges::WRITE,
                "select" => READ,
                "usage" | "update" => Privileges::WRITE,
                other => return Err(no_right(other)),
            })
    })
}

fn of_functions(wanted: &[String]) -> Result<u32> {
    match wanted.iter().find(|word| !matches!(word.as_str(), "all" | "execute" | "usage")) {
        Some(word) => Err(no_right(word)),
        None => Ok(Privileges::EXECUTE),
    }
}

/// On a schema or a database: there is one.
fn of_schema(wanted: &[String]) -> Result<Rights> {
    let mut rights = Rights::Nothing;
    for word in wanted {
        match word.as_str() {
            "all" | "create" => rights = Rights::Making(Privileges::CREATE),
            "usage" | "connect" | "temporary" | "temp" => {}
            other => return Err(no_right(other)),
        }
    }
    Ok(rights)
}

fn no_right(word: &str) -> Error {
    Error::unsupported(format!("the right {} on this", word.to_uppercase()))
}

/// Names of system spaces that somebody who makes tables writes to.
const SCHEMA_SPACES: [&str; 7] =
    ["_schema", "_space", "_index", "_sequence", "_sequence_data", "_space_sequence", "_func_index"];

/// Does what a statement says, with the rights of who asks. Errors: `AccessDenied`, `UndefinedAccount`, `DuplicateAccount`.
pub(crate) fn run(
    accounts: &Accounts,
    database: &Database,
    context: &Context,
    dialect: Dialect,
    session: Option<&Session>,
) -> Result<()> {
    let work = Work { database, context, dialect };
    for change in &accounts.changes {
        work.change(change)?;
    }
    for name in &accounts.hosts {
        let what = format!("'{name}' is not bound to a host: it may come from wherever a listener takes clients from");
        crate::mysql::assign::warn(session, Condition::Other, what);
    }
    Ok(())
}

struct Work<'a> {
    database: &'a Database,
    context: &'a Context,
    dialect: Dialect,
}

impl Work<'_> {
    fn call(&self, verb: &str, arguments: &[&str]) -> Result<()> {
        let mut encoded = Vec::new();
        msgpack::encode_array(&mut encoded, arguments.len() as u32 + 1);
        for argument in std::iter::once(&verb).chain(arguments) {
            msgpack::encode_str(&mut encoded, argument.as_bytes());
        }
        self.database.manage_accounts(self.context, &encoded).map_err(|error| {
            let error = Error::of_database(error, self.dialect);
            match error.condition() {
                Condition::AccessDenied => {
                    error.hint("Accounts are made by who may (the role super): log in as such a user. Rights are given by who owns the table.")
                }
                _ => error,
            }
        })
    }

    fn own_name(&self) -> String {
        self.database.catalog.user_name(self.database.user_of(&self.context.session))
    }

    fn name<'w>(&self, who: &'w Who, own: &'w mut String) -> &'w str {
        match who {
            Who::Named(name) => name,
            Who::Oneself => {
                *own = self.own_name();
                own
            }
        }
    }

    /// In whose name rights are given: an administrator gives those on what belongs to others, too. Empty: in that of who asks.
    fn grantor(&self) -> &'static str {
        let rights = self.database.catalog.rights_of(self.context.user(&self.database.catalog));
        if rights.universe & crate::catalog::EVERYTHING == crate::catalog::EVERYTHING { "admin" } else { "" }
    }

    /// The kind of an account. Errors: there is none of the name.
    fn is_role(&self, name: &str) -> Result<bool> {
        let known = self.database.catalog.user_by_name(name);
        known.map(|user| user.kind == database::UserKind::Role).ok_or_else(|| {
            let what = match self.dialect {
                Dialect::Mysql => format!("There is no account '{name}'"),
                _ => format!("role \"{name}\" does not exist"),
            };
            Error::new(Condition::UndefinedAccount, what)
        })
    }

    fn kind(&self, name: &str) -> Result<&'static str> {
        Ok(if self.is_role(name)? { "role" } else { "user" })
    }

    fn change(&self, change: &Change) -> Result<()> {
        let own = &mut String::new();
        match change {
            Change::Create { name, is_role, if_absent } => {
                if self.database.catalog.user_by_name(name).is_some() {
                    if *if_absent {
                        return Ok(());
                    }
                    let what = match self.dialect {
                        Dialect::Mysql => format!("Operation CREATE USER failed for '{name}'@'%': it is there"),
                        _ => format!("role \"{name}\" already exists"),
                    };
                    return Err(Error::new(Condition::DuplicateAccount, what));
                }
                self.call(if *is_role { "create_role" } else { "create_user" }, &[name])
            }
            Change::Password { who, password, if_there } => {
                let name = self.name(who, own);
                if *if_there && self.database.catalog.user_by_name(name).is_none() {
                    return Ok(());
                }
                if self.is_role(name)? {
                    return Err(Error::unsupported(format!(
                        "a password of \"{name}\", which is a role that nobody enters as,"
                    )));
                }
                match password {
                    None => self.call("no_password", &[name]),
                    Some(password) if name == self.own_name() => {
                        let known = self.database.catalog.user_by_name(name);
                        if known.is_none_or(|user| user.password_hash.is_none()) {
                            // It may be a listener's, and others', who would be kept out.
                            let what = format!("account '{name}' has no password: only an administrator gives it one");
                            return Err(Error::new(Condition::AccessDenied, what));
                        }
                        self.call("own_password", &[password])
                    }
                    Some(password) => self.call("password", &[name, password]),
                }
            }
            Change::Login { who, may } => {
                let name = self.name(who, own);
                if self.is_role(name)? {
                    return Err(Error::unsupported("LOGIN of a role that was made without it"));
                }
                self.call(if *may { "enable" } else { "disable" }, &[name])
            }
            Change::Drop { name, is_role, if_there } => {
                let Some(known) = self.database.catalog.user_by_name(name) else {
                    return if *if_there { Ok(()) } else { self.is_role(name).map(drop) };
                };
                let kind = known.kind == database::UserKind::Role;
                if is_role.is_some_and(|wanted| wanted != kind) {
                    let what = format!("'{name}' is a {}", if kind { "role" } else { "user" });
                    return Err(Error::new(Condition::UndefinedAccount, what));
                }
                if let Some(owned) = self.database.owned_by(known.id) {
                    let what = match self.dialect {
                        Dialect::Mysql => format!("Operation DROP USER failed for '{name}'@'%': {owned} is theirs"),
                        _ => format!("role \"{name}\" cannot be dropped because some objects depend on it"),
                    };
                    let error = Error::new(Condition::DependentObjects, what).detail(format!("owner of {owned}"));
                    return Err(error.hint("Drop what the account owns, or box.schema.user.drop does both."));
                }
                self.call(if kind { "drop_role" } else { "drop_user" }, &[name])
            }
            Change::RevokeAll(who) => {
                let name = self.name(who, own).to_string();
                self.call("revoke_all", &[self.kind(&name)?, &name])
            }
            Change::Roles { roles, to, is_given } => {
                for role in roles {
                    if !self.is_role(role)? {
                        return Err(Error::unsupported(format!("membership in \"{role}\", which is a user,")));
                    }
                    for who in to {
                        let name = self.name(who, own).to_string();
                        let verb = if *is_given { "grant_role" } else { "revoke_role" };
                        self.call(verb, &[self.kind(&name)?, &name, role, self.grantor()])?;
                    }
                }
                Ok(())
            }
            Change::Rights { what, to, is_given } => {
                for who in to {
                    let name = self.name(who, own).to_string();
                    let kind = self.kind(&name)?;
                    for (object_type, object, rights) in self.objects(what, *is_given)? {
                        if rights != 0 {
                            let verb = if *is_given { "grant" } else { "revoke" };
                            let rights = rights.to_string();
                            self.call(verb, &[kind, &name, &rights, object_type.name(), &object, self.grantor()])?;
                        }
                    }
                }
                Ok(())
            }
        }
    }

    /// What rights are on, one after the other: an empty name stands for all of the kind.
    fn objects(&self, what: &Rights, is_given: bool) -> Result<Vec<(ObjectType, String, u32)>> {
        // Who has all rights to change rows has the one to write: taking one of them takes that.
        let taken = |rights: u32| if !is_given && rights & ROWS != 0 { rights | Privileges::WRITE } else { rights };
        let all = |rights: u32| {
            vec![
                (ObjectType::Space, String::new(), rights & !Privileges::EXECUTE),
                (ObjectType::Sequence, String::new(), rights & (READ | Privileges::WRITE | SHAPE)),
                (ObjectType::Function, String::new(), rights & Privileges::EXECUTE),
            ]
        };
        Ok(match what {
            Rights::Nothing => Vec::new(),
            Rights::Everything(rights) => vec![(ObjectType::Universe, String::new(), taken(*rights))],
            Rights::AllTables(rights) => {
                let mut objects = all(taken(*rights));
                if rights & Privileges::CREATE != 0 {
                    objects.extend(
                        SCHEMA_SPACES
                            .iter()
                            .map(|name| (ObjectType::Space, name.to_string(), READ | Privileges::WRITE)),
                    );
                }
                objects
            }
            Rights::Making(rights) => {
                let mut objects = all(*rights);
                objects.extend(
                    SCHEMA_SPACES.iter().map(|name| (ObjectType::Space, name.to_string(), READ | Privileges::WRITE)),
                );
                objects
            }
            Rights::Present(ObjectType::Sequence, rights) => {
                let names = self.database.catalog.sequences();
                names.iter().map(|sequence| (ObjectType::Sequence, sequence.def().name.clone(), *rights)).collect()
            }
            Rights::Present(_, rights) => {
                let spaces = self.database.catalog.spaces();
                let tables = spaces.iter().filter(|space| !space.is_system() && !space.def().is_session);
                tables.map(|space| (ObjectType::Space, space.name(), taken(*rights))).collect()
            }
            Rights::Named(ObjectType::Space, names, rights) => {
                let mut objects = Vec::with_capacity(names.len());
                for name in names {
                    let table = Table::find(self.database, self.dialect, name)?;
                    objects.push((ObjectType::Space, table.space.name(), taken(*rights)));
                }
                objects
            }
            Rights::Named(kind, names, rights) => names.iter().map(|name| (*kind, name.clone(), *rights)).collect(),
        })
    }
}

/// Names of rights as MySQL shows them.
const SHOWN: [(u32, &str); 9] = [
    (READ, "SELECT"),
    (Privileges::INSERT, "INSERT"),
    (Privileges::UPDATE, "UPDATE"),
    (Privileges::DELETE, "DELETE"),
    (Privileges::CREATE, "CREATE"),
    (Privileges::DROP, "DROP"),
    (Privileges::ALTER, "ALTER"),
    (Privileges::EXECUTE, "EXECUTE"),
    (Privileges::SESSION | Privileges::USAGE, ""),
];

fn shown_rights(rights: u32) -> String {
    let rights = if rights & Privileges::WRITE != 0 { rights | ROWS } else { rights };
    let names: Vec<&str> =
        SHOWN.iter().filter(|(bits, name)| !name.is_empty() && rights & bits == *bits).map(|(_, name)| *name).collect();
    if names.is_empty() { "USAGE".to_string() } else { names.join(", ") }
}

/// What an account was given, as statements of MySQL's dialect. `schema`: what the session calls the database.
pub(crate) fn shown_grants(database: &Database, id: database::UserId, schema: &str) -> Vec<String> {
    let catalog = &database.catalog;
    let quoted = |name: &str| format!("`{}`", name.replace('`', "``"));
    let to = format!("{}@`%`", quoted(&catalog.user_name(id)));
    let all = READ | Privileges::WRITE | Privileges::EXECUTE | SHAPE;
    let (mut shown, mut of_everything) = (Vec::new(), 0);
    for grant in catalog.grants().into_iter().filter(|grant| grant.grantee == id) {
        match (grant.object_type, grant.object_id) {
            (ObjectType::Universe, _) => of_everything |= grant.privileges,
            (ObjectType::Role, Some(database::PUBLIC)) => {}
            (ObjectType::Role, Some(role)) => {
                shown.push(format!("GRANT {}@`%` TO {to}", quoted(&catalog.user_name(role))))
            }
            (ObjectType::Space, None) => {
                shown.push(format!("GRANT {} ON {}.* TO {to}", shown_rights(grant.privileges), quoted(schema)));
            }
            (ObjectType::Space, Some(space)) => {
                if let Some(space) = catalog.spaces().iter().find(|known| known.id.0 == space && !known.is_system()) {
                    let on = format!("{}.{}", quoted(schema), quoted(&space.name()));
                    shown.push(format!("GRANT {} ON {on} TO {to}", shown_rights(grant.privileges)));
                }
            }
            (ObjectType::Function, Some(function)) => {
                if let Some(function) = catalog.function(function) {
                    let on = format!("{}.{}", quoted(schema), quoted(&function.name));
                    shown.push(format!("GRANT EXECUTE ON FUNCTION {on} TO {to}"));
                }
            }
            _ => {}
        }
    }
    let first = if of_everything & all == all { "ALL PRIVILEGES".to_string() } else { shown_rights(of_everything) };
    shown.insert(0, format!("GRANT {first} ON *.* TO {to}"));
    shown
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;
    use crate::mysql::Said;
    use std::rc::Rc;

    fn read(dialect: Dialect, text: &str) -> Result<Rc<Accounts>> {
        match dialect.statements(text)?.remove(0) {
            Said::Accounts(accounts) => Ok(accounts),
            _ => Err(Error::new(Condition::Other, "another statement")),
        }
    }

    #[test]
    fn rights_are_what_they_say_and_no_more() {
        let rights = |text: &str| rights_on_rows(&text.split(' ').map(str::to_string).collect::<Vec<_>>()).unwrap();
        assert_eq!(rights("select"), READ);
        assert_eq!(rights("select insert update"), READ | Privileges::INSERT | Privileges::UPDATE);
        assert_eq!(rights("insert update delete"), Privileges::WRITE);
        assert_eq!(rights("usage references"), 0);
        assert!(rights_on_rows(&["execute".to_string()]).is_err());
    }

    #[test]
    fn forms_that_would_give_more_than_they_say_are_refused() {
        for text in [
            "GRANT SELECT ON a.b TO c WITH GRANT OPTION",
            "GRANT SELECT (x) ON a TO c",
            "GRANT ALL ON *.* TO c REQUIRE SSL",
            "CREATE USER a IDENTIFIED BY PASSWORD '*AA'",
            "CREATE USER a IDENTIFIED BY 'x' PASSWORD EXPIRE",
            "CREATE USER a IDENTIFIED BY ''",
            "GRANT FILE ON *.* TO a",
            "GRANT CREATE USER ON *.* TO a",
            "GRANT SELECT ON a TO",
            "GRANT TO a",
            "DROP USER",
            "REVOKE ALL FROM a",
            "SET PASSWORD FOR a",
        ] {
            assert!(read(Dialect::Mysql, text).is_err(), "{text}");
        }
        for text in [
            "CREATE ROLE a CREATEROLE",
            "CREATE ROLE a VALID UNTIL '2030-01-01'",
            "CREATE ROLE a CONNECTION LIMIT 5",
            "ALTER ROLE a SET x = 1",
            "GRANT a TO b WITH ADMIN OPTION",
            "GRANT SELECT ON LARGE OBJECT 1 TO a",
            "GRANT CREATE ON TABLESPACE x TO a",
            "GRANT",
            "REVOKE GRANT OPTION FOR SELECT ON a FROM b",
        ] {
            assert!(read(Dialect::Postgres, text).is_err(), "{text}");
        }
    }

    #[test]
    fn names_of_accounts_come_in_many_forms() {
        for text in [
            "DROP USER 'ann'@'%'",
            "DROP USER ann",
            "DROP USER `ann`@`10.0.0.1`",
            "DROP USER ann@localhost",
            "DROP USER ann@'%'",
        ] {
            let accounts = read(Dialect::Mysql, text).unwrap();
            assert!(
                matches!(&accounts.changes[..], [Change::Drop { name, .. }] if name == "ann"),
                "{text}: {accounts:?}"
            );
        }
        let accounts = read(Dialect::Postgres, "drop user Ann, \"Bob\"").unwrap();
        assert!(
            matches!(&accounts.changes[..], [Change::Drop { name: a, .. }, Change::Drop { name: b, .. }] if a == "ann" && b == "Bob")
        );
    }
}
