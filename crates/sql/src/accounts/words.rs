//! Reading such statements.

use super::rights::{of_functions, of_own_schema, of_schema, of_sequences, rights_on_all, rights_on_rows};
use super::{Accounts, Change, NAMES_MAX, Rights, Who, word_of};
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use database::ObjectType;
use sqlparser::ast::Ident;
use sqlparser::tokenizer::{Span, Token};

/// Reads a statement; white space is no token of it. Errors: `Syntax`; `Unsupported` for what there is not here.
pub(crate) fn parse(dialect: Dialect, tokens: Vec<Token>) -> Result<Accounts> {
    let words: Vec<String> = tokens.iter().map(|token| crate::written::token(dialect, token)).collect();
    let text = words.join(" ");
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
                let mut then = Vec::new();
                alter(&mut then, Who::Named(name.clone()), options, false);
                changes.push(Change::Create { name, is_role, if_absent, then });
            }
            return Ok((if is_role { "CREATE ROLE" } else { "CREATE USER" }, changes));
        }
        let name = self.named()?;
        let options = self.options(false)?;
        let is_role = !options.login.unwrap_or(kind == "user");
        if is_role && options.password.as_ref().is_some_and(Option::is_some) {
            return Err(Error::unsupported("a password of a role without LOGIN"));
        }
        let mut then = Vec::new();
        alter(&mut then, Who::Named(name.clone()), Options { login: None, ..options }, false);
        changes.push(Change::Create { name, is_role, if_absent, then });
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
                let has_way = self.skip(&["with"]);
                if has_way {
                    self.name()?;
                }
                // A way alone: no password is said.
                if !has_way || matches!(self.word(0).as_str(), "by" | "as" | "using") {
                    if !self.skip(&["by"]) || self.word(0) == "password" {
                        return Err(Error::unsupported("the hash of a password in place of the password"));
                    }
                    let password = self.text()?;
                    check_password(&password)?;
                    options.password = Some(Some(password));
                }
            }
            self.skip(&["password", "expire", "never"]);
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
            let schemas = self.several(Self::name)?;
            return Ok(Rights::Present(ObjectType::Space, schemas, rights_on_rows(wanted)?));
        }
        if self.skip(&["all", "sequences", "in", "schema"]) {
            let schemas = self.several(Self::name)?;
            return Ok(Rights::Present(ObjectType::Sequence, schemas, of_sequences(wanted)?));
        }
        match kind.as_str() {
            "schema" | "database" => {
                self.at += 1;
                let names = self.several(Self::name)?;
                let is_own = |name: &String| kind == "schema" && self.dialect.check_schema(name).is_err();
                if names.iter().any(is_own) {
                    of_own_schema(wanted)?;
                    return Ok(Rights::Within(names));
                }
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
            let schema = std::mem::replace(&mut name, self.name()?);
            if self.tokens.get(self.at) != Some(&Token::Period) {
                name = self.within(schema, name);
            }
        }
        Ok(name)
    }

    /// The name in the catalog of something in a schema.
    fn within(&self, schema: String, name: String) -> String {
        match self.dialect.check_schema(&schema) {
            Ok(()) => name,
            Err(_) => format!("{schema}.{name}"),
        }
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
