//! EXPLAIN: a plan in words.

use crate::cast::display;
use crate::dialect::Dialect;
use crate::expr::Expr;
use crate::json::Json;
use crate::plan::{JoinKind, Plan, Scan};
use crate::types::Base;
use crate::value::Value;

/// A step of a plan in words.
pub(crate) struct Line {
    /// How many steps are above it.
    pub(crate) depth: usize,
    pub(crate) text: String,
    /// Rows that it has handed on, how often it was run, and nanoseconds, if it was run.
    measured: Option<(u64, u64, u64)>,
}

/// In which form a plan is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Text,
    Json,
    Xml,
    Yaml,
    /// A row for each table: MySQL's.
    Table,
    /// Lines with arrows: MySQL's.
    Tree,
}

/// The steps of a plan, the last one first, each with how deep it is.
pub(crate) fn explain(plan: &Plan) -> Vec<Line> {
    let mut lines = Vec::new();
    describe(plan, 0, &mut lines);
    lines
}

impl Line {
    /// What was counted, in words.
    fn counted(&self) -> String {
        let Some((rows, loops, nanoseconds)) = self.measured else { return String::new() };
        if loops == 0 {
            return " (never executed)".to_string();
        }
        let ms = nanoseconds as f64 / loops as f64 / 1e6;
        format!(" (actual time=0.000..{ms:.3} rows={} loops={loops})", rows.div_ceil(loops))
    }
}

/// The lines of a plan as text. `total_ns` is what the statement has taken, if it was run.
pub(crate) fn as_text(lines: &[Line], form: Form, total_ns: Option<u64>) -> Vec<String> {
    let shown = |line: &Line| {
        let (indent, text, counted) = ("  ".repeat(line.depth), &line.text, line.counted());
        match form {
            Form::Tree => format!("{indent}{indent}-> {text}{counted}"),
            _ => format!("{indent}{text}{counted}"),
        }
    };
    let mut texts: Vec<String> = lines.iter().map(shown).collect();
    if let Some(total_ns) = total_ns.filter(|_| form == Form::Text) {
        texts.push(format!("Execution Time: {:.3} ms", total_ns as f64 / 1e6));
    }
    texts
}

/// The lines of a plan as a document of JSON, XML or YAML.
pub(crate) fn as_document(lines: &[Line], form: Form, total_ns: Option<u64>) -> String {
    let members = members(lines, total_ns);
    let mut out = String::new();
    match form {
        Form::Xml => crate::plan_documents::put_xml(&members, &mut out),
        Form::Yaml => crate::plan_documents::put_yaml(&members, &mut out),
        _ => Json::Array(vec![Json::Object(members)]).write_pretty(0, 2, &mut out),
    }
    out
}

fn members(lines: &[Line], total_ns: Option<u64>) -> Vec<(String, Json)> {
    fn node(lines: &[Line], at: &mut usize) -> Json {
        let line = &lines[*at];
        *at += 1;
        let number = |value: String| Json::Number(value);
        let mut members = vec![("Node Type".to_string(), Json::Text(line.text.clone()))];
        if let Some((rows, loops, nanoseconds)) = line.measured {
            let ms = nanoseconds as f64 / loops.max(1) as f64 / 1e6;
            members.push(("Actual Total Time".to_string(), number(format!("{ms:.3}"))));
            members.push(("Actual Rows".to_string(), number(rows.div_ceil(loops.max(1)).to_string())));
            members.push(("Actual Loops".to_string(), number(loops.to_string())));
        }
        let mut below = Vec::new();
        while *at < lines.len() && lines[*at].depth > line.depth {
            below.push(node(lines, at));
        }
        if !below.is_empty() {
            members.push(("Plans".to_string(), Json::Array(below)));
        }
        Json::Object(members)
    }
    let mut at = 0;
    let mut members = Vec::new();
    if !lines.is_empty() {
        members.push(("Plan".to_string(), node(lines, &mut at)));
    }
    if let Some(total_ns) = total_ns {
        members.push(("Execution Time".to_string(), Json::Number(format!("{:.3}", total_ns as f64 / 1e6))));
    }
    members
}

/// The columns of MySQL's table of a plan.
pub(crate) const TABLE_COLUMNS: &[(&str, Base)] = &[
    ("id", Base::Int8),
    ("select_type", Base::Text),
    ("table", Base::Text),
    ("partitions", Base::Text),
    ("type", Base::Text),
    ("possible_keys", Base::Text),
    ("key", Base::Text),
    ("key_len", Base::Text),
    ("ref", Base::Text),
    ("rows", Base::Int8),
    ("filtered", Base::Double),
    ("Extra", Base::Text),
];

/// A row for each table of a plan.
pub(crate) fn as_table(plan: &Plan) -> Vec<Vec<Value>> {
    let mut rows = Vec::new();
    let mut extra: Vec<&str> = Vec::new();
    tables(plan, &mut extra, &mut rows);
    if rows.is_empty() {
        let mut row = vec![Value::Null; TABLE_COLUMNS.len()];
        (row[0], row[1], row[11]) = (Value::Int(1), Value::text("SIMPLE"), Value::text("No tables used"));
        rows.push(row);
    }
    rows
}

fn tables(plan: &Plan, extra: &mut Vec<&str>, rows: &mut Vec<Vec<Value>>) {
    match plan {
        Plan::Scan(scan) => {
            let is_bounded = scan.lower.is_some() || scan.upper.is_some();
            let is_given = scan.equal.iter().all(|expr| matches!(expr, Expr::Const(_) | Expr::Param(_)));
            let kind = match () {
                () if scan.is_unique && is_given => "const",
                () if scan.is_unique => "eq_ref",
                () if !scan.equal.is_empty() => "ref",
                () if scan.among.is_some() || is_bounded => "range",
                () if scan.index_id.0 == 0 => "ALL",
                () => "index",
            };
            let index = if scan.index_id.0 == 0 { "PRIMARY" } else { &scan.index_name };
            let key = if kind == "ALL" { Value::Null } else { Value::text(index) };
            let given = match (is_given, scan.equal.len()) {
                (_, 0) => Value::Null,
                (true, count) => Value::text(vec!["const"; count].join(",")),
                (false, count) => Value::text(vec!["func"; count].join(",")),
            };
            let total = scan.table.row_count() as i64;
            let expected = match kind {
                "const" | "eq_ref" => 1,
                "ref" => (total / 100).max(1),
                "range" => (total / 3).max(1),
                _ => total.max(1),
            };
            let mut notes: Vec<&str> = Vec::new();
            if scan.filter.is_some() {
                notes.push("Using where");
            }
            if scan.is_reverse {
                notes.push("Backward index scan");
            }
            notes.append(extra);
            rows.push(vec![
                Value::Int(1),
                Value::text("SIMPLE"),
                Value::text(scan.alias.as_str()),
                Value::Null,
                Value::text(kind),
                key.clone(),
                key,
                Value::Null,
                given,
                Value::Int(expected),
                Value::Double(100.0),
                if notes.is_empty() { Value::Null } else { Value::text(notes.join("; ")) },
            ]);
        }
        Plan::Sort { input, .. } => {
            extra.push("Using filesort");
            tables(input, extra, rows);
        }
        Plan::Aggregate { input, groups, .. } if !groups.is_empty() => {
            extra.push("Using temporary");
            tables(input, extra, rows);
        }
        Plan::Distinct { input, .. } => {
            extra.push("Using temporary");
            tables(input, extra, rows);
        }
        plan => plan.inputs().into_iter().for_each(|input| tables(input, extra, rows)),
    }
}

fn describe(plan: &Plan, depth: usize, lines: &mut Vec<Line>) {
    let mut line = |text: &str| lines.push(Line { depth, text: text.to_string(), measured: None });
    match plan {
        Plan::One => line("one row"),
        Plan::Nothing => line("no rows"),
        Plan::Scan(scan) => line(&scan_line(scan)),
        Plan::Rows(rows, _) => line(&format!("{} listed rows", rows.len())),
        Plan::Series { .. } => line("series of numbers"),
        Plan::Virtual(table, _) => line(&format!("rows of {}.{}", table.schema, table.name)),
        Plan::Unnest { .. } => line("elements of an array"),
        Plan::Sets { .. } => line("rows of a function"),
        Plan::Own { number, .. } => line(&format!("rows of own table {number}")),
        Plan::Filter(input, _) => {
            line("filter");
            describe(input, depth + 1, lines);
        }
        // Nothing to tell of: the step below it is what takes time.
        Plan::Map(input, _) => describe(input, depth, lines),
        Plan::Loop { outer, inner, kind, .. } => {
            line(&format!("{} by a look-up for each row", join_name(*kind)));
            describe(outer, depth + 1, lines);
            describe(inner, depth + 1, lines);
        }
        Plan::Hash(join) => {
            let how = if join.outer_keys.is_empty() { "of all pairs" } else { "by a hash table" };
            line(&format!("{} {how}", join_name(join.kind)));
            describe(&join.outer, depth + 1, lines);
            describe(&join.inner, depth + 1, lines);
        }
        Plan::Aggregate { input, groups, .. } => {
            line(if groups.is_empty() { "aggregate of all rows" } else { "groups by a hash table" });
            describe(input, depth + 1, lines);
        }
        Plan::Sort { input, limit, .. } => {
            line(if limit.is_some() { "sort, the first rows only" } else { "sort" });
            describe(input, depth + 1, lines);
        }
        Plan::Measured(step) => {
            let at = lines.len();
            describe(&step.plan, depth, lines);
            if let Some(line) = lines.get_mut(at) {
                line.measured = Some((step.rows.get(), step.loops.get(), step.nanoseconds.get()));
            }
        }
        Plan::Write(write) => {
            line(&format!("changes of table {}", write.table.name));
            describe(write.source(), depth + 1, lines);
        }
        Plan::Owned(step) => {
            line(&format!("view {}", step.space.name()));
            describe(&step.input, depth + 1, lines);
        }
        Plan::GroupingSets(step) => {
            line(&format!("groups of {} sets by a hash table", step.sets.len()));
            describe(&step.input, depth + 1, lines);
        }
        Plan::Ties { input, .. } => {
            line("limit, with rows that are equal to the last one");
            describe(input, depth + 1, lines);
        }
        Plan::Window(step) => {
            line(if step.order.is_empty() { "window functions" } else { "window functions over sorted rows" });
            describe(&step.input, depth + 1, lines);
        }
        Plan::Distinct { input, .. } => {
            line("each row once");
            describe(input, depth + 1, lines);
        }
        Plan::Limit { input, .. } => {
            line("limit");
            describe(input, depth + 1, lines);
        }
        Plan::Concat(inputs) => {
            line(if inputs.len() == 2 { "both" } else { "all" });
            inputs.iter().for_each(|input| describe(input, depth + 1, lines));
        }
        Plan::Among { left, right, keeps, .. } => {
            line(if *keeps { "rows that are in both" } else { "rows that are not in the second" });
            describe(left, depth + 1, lines);
            describe(right, depth + 1, lines);
        }
        Plan::With { number, definition, body } => {
            line(&format!("with own table {number}"));
            describe(&definition.plan, depth + 1, lines);
            if let Some((step, ..)) = &definition.step {
                describe(step, depth + 2, lines);
            }
            describe(body, depth + 1, lines);
        }
    }
}

fn join_name(kind: JoinKind) -> &'static str {
    match kind {
        JoinKind::Inner => "join",
        JoinKind::Left => "left join",
        JoinKind::Full => "full join",
    }
}

fn scan_line(scan: &Scan) -> String {
    let mut text = format!("table {}", scan.table.name);
    if scan.alias != scan.table.name {
        text.push_str(&format!(" as {}", scan.alias));
    }
    let index = scan.table.indexes.iter().find(|index| index.id == scan.index_id);
    let name = |part: usize| {
        let field = index.and_then(|index| index.parts.get(part)).map(|part| part.0);
        field.and_then(|field| scan.table.columns.get(field)).map_or("?", |column| column.name.as_str())
    };
    let mut parts: Vec<String> =
        scan.equal.iter().enumerate().map(|(number, expr)| format!("{} = {}", name(number), word(expr))).collect();
    let next = name(scan.equal.len());
    if let Some(among) = &scan.among {
        parts.push(format!("{next} in {} values", among.len()));
    }
    if let Some((lower, is_within)) = &scan.lower {
        parts.push(format!("{next} {} {}", if *is_within { ">=" } else { ">" }, word(lower)));
    }
    if let Some((upper, is_within)) = &scan.upper {
        parts.push(format!("{next} {} {}", if *is_within { "<=" } else { "<" }, word(upper)));
    }
    match parts.is_empty() {
        true => text.push_str(&format!(": all rows, by index {}", scan.index_name)),
        false => text.push_str(&format!(": index {} ({})", scan.index_name, parts.join(" and "))),
    }
    if scan.is_unique {
        text.push_str(", one row at most");
    }
    if scan.is_reverse {
        text.push_str(", backwards");
    }
    if scan.filter.is_some() {
        text.push_str(", filtered");
    }
    if scan.lock.is_some() {
        text.push_str(", locked");
    }
    text
}

fn word(expr: &Expr) -> String {
    match expr {
        Expr::Const(value) => display(Dialect::Postgres, value),
        Expr::Param(number) => format!("${}", number + 1),
        Expr::Slot(_) => "a column".to_string(),
        _ => "an expression".to_string(),
    }
}
