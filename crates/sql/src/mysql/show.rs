//! SHOW, which becomes queries over `information_schema`.

use super::statements::{Said, literal, parsed, quoted};
use super::words::Words;
use crate::dialect::Dialect;
use crate::error::{Error, Result};
use crate::written::written;
use sqlparser::tokenizer::Token;

/// Stands in the name of a column before that of a table, which may be a view: what the column is called is known when the table is.
pub(crate) const TABLE_MARK: char = '\u{3}';

/// A query for what SHOW COLUMNS says.
pub(super) fn columns_query(table: &str, is_full: bool) -> String {
    let table = literal(table);
    let (collation, more) = match is_full {
        true => (
            "collation_name AS Collation, ",
            ", 'select,insert,update,references' AS Privileges, column_comment AS Comment",
        ),
        false => ("", ""),
    };
    format!(
        "SELECT column_name AS Field, column_type AS Type, {collation}is_nullable AS `Null`, column_key AS `Key`, \
         column_default AS `Default`, extra AS Extra{more} FROM information_schema.columns \
         WHERE table_name = known_table({table}, TRUE) ORDER BY ordinal_position"
    )
}

impl Words {
    pub(super) fn show(&mut self) -> Result<Said> {
        let is_full = self.skip("full") || self.skip("extended") && self.skip("full");
        let is_global = self.skip("global");
        self.skip("session");
        self.skip("local");
        let what = self.next_word();
        let (query, column) = match what.as_str() {
            "databases" | "schemas" => {
                ("SELECT schema_name AS `Database` FROM information_schema.schemata".to_string(), "Database")
            }
            "tables" => {
                let mut schema = None;
                if self.skip("from") || self.skip("in") {
                    schema = Some(self.name()?);
                }
                return self.show_tables(is_full, schema);
            }
            "columns" | "fields" => {
                let table = self.shown_table()?;
                (columns_query(&table, is_full), "Field")
            }
            "index" | "indexes" | "keys" => {
                let table = self.shown_table()?;
                let query = format!(
                    "SELECT table_name AS `Table`, non_unique AS Non_unique, index_name AS Key_name, seq_in_index AS Seq_in_index, \
                     column_name AS Column_name, collation AS Collation, cardinality AS Cardinality, sub_part AS Sub_part, \
                     packed AS Packed, nullable AS `Null`, index_type AS Index_type, comment AS Comment, \
                     index_comment AS Index_comment, is_visible AS Visible, expression AS Expression \
                     FROM information_schema.statistics WHERE table_name = known_table({})",
                    literal(&table)
                );
                (query, "Key_name")
            }
            "table" if self.word_at(0) == "status" => {
                self.at += 1;
                if self.skip("from") || self.skip("in") {
                    self.name()?;
                }
                let query = "SELECT table_name AS Name, engine AS Engine, version AS Version, row_format AS Row_format, \
                     table_rows AS `Rows`, avg_row_length AS Avg_row_length, data_length AS Data_length, \
                     max_data_length AS Max_data_length, index_length AS Index_length, data_free AS Data_free, \
                     auto_increment AS Auto_increment, create_time AS Create_time, update_time AS Update_time, \
                     check_time AS Check_time, table_collation AS Collation, checksum AS Checksum, \
                     create_options AS Create_options, table_comment AS Comment \
                     FROM information_schema.tables WHERE table_schema = DATABASE()";
                (query.to_string(), "Name")
            }
            "create" => return self.show_create(),
            "variables" => (
                "SELECT variable_name AS Variable_name, variable_value AS Value FROM information_schema.session_variables"
                    .to_string(),
                "Variable_name",
            ),
            "status" => {
                let table = if is_global { "global_status" } else { "session_status" };
                (
                    format!(
                        "SELECT variable_name AS Variable_name, variable_value AS Value FROM information_schema.{table}"
                    ),
                    "Variable_name",
                )
            }
            "warnings" | "errors" => {
                let filter = if what == "errors" { " WHERE Level = 'Error'" } else { "" };
                let limit = self.limit()?;
                return parsed(&format!("SELECT Level, Code, Message FROM information_schema.warnings{filter}{limit}"));
            }
            "count" => {
                // SHOW COUNT(*) WARNINGS.
                let what = self.tokens.last().map(ToString::to_string).unwrap_or_default().to_ascii_lowercase();
                let filter = if what == "errors" { " WHERE Level = 'Error'" } else { "" };
                return parsed(&format!(
                    "SELECT COUNT(*) AS `@@session.{}_count` FROM information_schema.warnings{filter}",
                    what.trim_end_matches('s')
                ));
            }
            "engines" | "storage" => (
                "SELECT engine AS Engine, support AS Support, comment AS Comment, transactions AS Transactions, xa AS XA, \
                 savepoints AS Savepoints FROM information_schema.engines"
                    .to_string(),
                "Engine",
            ),
            "processlist" => (
                "SELECT id AS Id, user AS User, host AS Host, db AS db, command AS Command, time AS Time, state AS State, \
                 info AS Info FROM information_schema.processlist"
                    .to_string(),
                "User",
            ),
            "character" | "charset" => {
                self.skip("set");
                (
                    "SELECT character_set_name AS Charset, description AS Description, default_collate_name AS `Default collation`, \
                     maxlen AS Maxlen FROM information_schema.character_sets"
                        .to_string(),
                    "Charset",
                )
            }
            "collation" => (
                "SELECT collation_name AS Collation, character_set_name AS Charset, id AS Id, is_default AS `Default`, \
                 is_compiled AS Compiled, sortlen AS Sortlen, pad_attribute AS Pad_attribute FROM information_schema.collations"
                    .to_string(),
                "Collation",
            ),
            "plugins" => (
                "SELECT plugin_name AS Name, plugin_status AS Status, plugin_type AS Type, plugin_library AS Library, \
                 plugin_license AS License FROM information_schema.plugins"
                    .to_string(),
                "Name",
            ),
            "triggers" => (
                "SELECT trigger_name AS `Trigger`, event_manipulation AS Event, event_object_table AS `Table`, \
                 action_statement AS Statement FROM information_schema.triggers"
                    .to_string(),
                "Trigger",
            ),
            "procedure" | "function" => (
                "SELECT routine_schema AS Db, routine_name AS Name, routine_type AS Type FROM information_schema.routines"
                    .to_string(),
                "Name",
            ),
            "events" => ("SELECT event_schema AS Db, event_name AS Name FROM information_schema.events".to_string(), "Name"),
            "open" => ("SELECT '' AS `Database`, '' AS `Table`, 0 AS In_use, 0 AS Name_locked LIMIT 0".to_string(), "Table"),
            "privileges" => {
                ("SELECT '' AS Privilege, '' AS Context, '' AS Comment LIMIT 0".to_string(), "Privilege")
            }
            "grants" => {
                let name = match self.skip("for") && !self.skip("current_user") {
                    true => self.account()?,
                    false => return self.own_grants(),
                };
                let column = format!("Grants for {name}@%").replace('`', "``");
                let query = format!(
                    "SELECT shown AS `{column}` FROM information_schema.shown_grants WHERE grantee = {}",
                    literal(&name)
                );
                return parsed(&query);
            }
            "master" | "binary" | "slave" | "replica" | "binlog" => {
                return parsed("SELECT '' AS File, 0 AS Position LIMIT 0");
            }
            _ => {
                self.at = 1;
                return Err(self.refused());
            }
        };
        if matches!(what.as_str(), "status" | "triggers" | "events" | "open" | "procedure" | "function") {
            self.skip("status");
            if self.skip("from") || self.skip("in") {
                self.name()?;
            }
        }
        let filter = self.filter(column)?;
        parsed(&format!("SELECT * FROM ({query}) AS shown{filter}"))
    }

    fn show_tables(&mut self, is_full: bool, schema: Option<String>) -> Result<Said> {
        let schema_is = match &schema {
            Some(schema) => literal(schema),
            None => "DATABASE()".to_string(),
        };
        // The column has the name of the database, which a query cannot compute: the session puts it in.
        let column = format!("Tables_in_{}", schema.unwrap_or_else(|| super::variables::DATABASE_MARK.to_string()));
        let more = if is_full { ", table_type AS Table_type" } else { "" };
        let query = format!(
            "SELECT table_name AS {}{more} FROM information_schema.tables WHERE table_schema = {schema_is} ORDER BY 1",
            quoted(&column)
        );
        let filter = self.filter(&column)?;
        parsed(&format!("SELECT * FROM ({query}) AS shown{filter}"))
    }

    fn show_create(&mut self) -> Result<Said> {
        match self.next_word().as_str() {
            "table" => {
                let name = self.name()?;
                let (column, definition) =
                    (quoted(&format!("Table{TABLE_MARK}{name}")), quoted(&format!("Create Table{TABLE_MARK}{name}")));
                let name = literal(&name);
                parsed(&format!("SELECT known_table({name}) AS {column}, table_definition({name}) AS {definition}"))
            }
            "view" => {
                let name = literal(&self.name()?);
                parsed(&format!(
                    "SELECT known_table({name}) AS `View`, table_definition({name}) AS `Create View`, 'utf8mb4' AS character_set_client, 'utf8mb4_unicode_ci' AS collation_connection"
                ))
            }
            "database" | "schema" => {
                if self.skip("if") {
                    self.skip("not");
                    self.skip("exists");
                }
                let name = literal(&self.name()?);
                parsed(&format!(
                    "SELECT {name} AS `Database`, CONCAT('CREATE DATABASE `', {name}, '` /*!40100 DEFAULT CHARACTER SET utf8mb4 */') AS `Create Database`"
                ))
            }
            other => Err(Error::unsupported(format!("SHOW CREATE {}", other.to_uppercase()))),
        }
    }

    /// The table that SHOW is about: `FROM t [FROM db]`.
    fn shown_table(&mut self) -> Result<String> {
        if !self.skip("from") && !self.skip("in") {
            return Err(self.refused());
        }
        let name = self.name()?;
        if self.skip("from") || self.skip("in") {
            self.name()?;
        }
        Ok(name)
    }

    /// LIKE or WHERE of SHOW, as a condition over its columns.
    fn filter(&mut self, column: &str) -> Result<String> {
        match self.word_at(0).as_str() {
            "like" => {
                self.at += 1;
                let pattern = self.rest_as_pattern().ok_or_else(|| self.refused())?;
                Ok(format!(" WHERE `{column}` LIKE {}", literal(&pattern)))
            }
            "where" => {
                self.at += 1;
                let condition = self.expressions()?.pop().ok_or_else(|| self.refused())?;
                Ok(format!(" WHERE {}", written(Dialect::Mysql, &condition)))
            }
            "" if self.token(0).is_none() => Ok(String::new()),
            _ => Err(self.refused()),
        }
    }

    fn limit(&mut self) -> Result<String> {
        if !self.skip("limit") {
            return Ok(String::new());
        }
        let numbers: Vec<String> = self.expressions()?.iter().map(ToString::to_string).collect();
        Ok(format!(" LIMIT {}", numbers.join(", ")))
    }

    fn own_grants(&self) -> Result<Said> {
        parsed(
            "SELECT shown AS `Grants` FROM information_schema.shown_grants WHERE BINARY grantee = SUBSTRING_INDEX(CURRENT_USER(), '@', 1)",
        )
    }

    /// The name of an account, without the computer that it may come from.
    fn account(&mut self) -> Result<String> {
        let token = self.tokens.get(self.at).cloned();
        self.at = self.tokens.len();
        match token {
            Some(Token::Word(word)) if word.quote_style.is_none() => {
                Ok(word.value.split('@').next().unwrap_or_default().to_string())
            }
            Some(Token::Word(word)) => Ok(word.value),
            Some(Token::SingleQuotedString(name) | Token::DoubleQuotedString(name)) => Ok(name),
            _ => Err(self.refused()),
        }
    }
}
