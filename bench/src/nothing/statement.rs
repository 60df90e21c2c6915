//! What a server that does nothing takes from the text of a statement: the form of its answer.

/// Bytes of the column `c` of sysbench's tables.
const TEXT_BYTES: usize = 119;
/// Rows between two keys, as sysbench asks for them.
const RANGE_ROWS: usize = 100;
/// Enough for whoever looks whether there is enough.
const NUMBER: i64 = 1_000_000;

/// A column of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    /// A number of eight bytes.
    Number,
    /// A number of four bytes.
    Integer,
    Text,
}

/// The form of a statement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Statement {
    /// What it returns; empty: it has changed one row.
    pub(super) columns: Vec<Column>,
    pub(super) rows: usize,
    /// What is put in, one for each question mark or numbered parameter.
    pub(super) parameters: Vec<Column>,
}

fn of_name(name: &str) -> Column {
    match name.trim().rsplit(' ').next().unwrap_or_default() {
        "c" => Column::Text,
        "id" => Column::Number,
        // Sums and what is counted are as wide as that in both protocols.
        word if word.contains('(') || word.contains("@@") => Column::Number,
        _ => Column::Integer,
    }
}

impl Statement {
    /// Reads as much of a text as the programs that are measured need: names between SELECT and FROM, BETWEEN, and parameters.
    pub(super) fn of(text: &str) -> Statement {
        let is_query = text.trim_start().get(..6).is_some_and(|word| word.eq_ignore_ascii_case("select"));
        let columns: Vec<Column> = match is_query {
            false => Vec::new(),
            true => {
                let list = &text.trim_start()[6..];
                let end = list.to_ascii_lowercase().find(" from ").unwrap_or(list.len());
                list[..end].split(',').map(of_name).collect()
            }
        };
        let is_range = text.contains("BETWEEN") && !text.contains("SUM");
        let mut parameters = Vec::new();
        for (at, _) in text.match_indices('?') {
            parameters.push(of_name(compared(&text[..at])));
        }
        for number in 1.. {
            let Some(at) = text.find(&format!("${number}")) else { break };
            parameters.push(of_name(compared(&text[..at])));
        }
        Statement { rows: if is_range { RANGE_ROWS } else { usize::from(is_query) }, columns, parameters }
    }
}

/// The word before the sign that a parameter follows.
fn compared(before: &str) -> &str {
    before.trim_end_matches([' ', '=', '+', '-']).rsplit([' ', '(']).next().unwrap_or_default()
}

impl Column {
    /// Its value as text.
    pub(super) fn text(self) -> Vec<u8> {
        match self {
            Column::Text => vec![b'x'; TEXT_BYTES],
            _ => NUMBER.to_string().into_bytes(),
        }
    }

    /// Its value in the order of bytes of the network or, for MySQL, turned round.
    pub(super) fn binary(self) -> Vec<u8> {
        match self {
            Column::Text => vec![b'x'; TEXT_BYTES],
            Column::Number => NUMBER.to_be_bytes().to_vec(),
            Column::Integer => (NUMBER as i32).to_be_bytes().to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_rows_and_parameters_are_those_of_the_text() {
        let found = Statement::of("SELECT id, warehouse, count FROM stock WHERE sku = $1 AND id = $2 FOR UPDATE");
        assert_eq!(found.columns, [Column::Number, Column::Integer, Column::Integer]);
        assert_eq!((found.rows, found.parameters), (1, vec![Column::Integer, Column::Number]));
        let range = Statement::of("SELECT c FROM sbtest1 WHERE id BETWEEN ? AND ?");
        assert_eq!((range.columns, range.rows, range.parameters.len()), (vec![Column::Text], RANGE_ROWS, 2));
        let change = Statement::of("UPDATE stock SET count = count - $1 WHERE id = $2");
        assert_eq!((change.columns.len(), change.rows), (0, 0));
        assert_eq!(change.parameters, [Column::Integer, Column::Number]);
    }
}
