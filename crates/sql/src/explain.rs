//! EXPLAIN: a plan in words.

use crate::cast::display;
use crate::dialect::Dialect;
use crate::expr::Expr;
use crate::plan::{JoinKind, Plan, Scan};

/// The steps of a plan, the last one first, each with how deep it is.
pub(crate) fn explain(plan: &Plan) -> Vec<(usize, String)> {
    let mut lines = Vec::new();
    describe(plan, 0, &mut lines);
    lines
}

fn describe(plan: &Plan, depth: usize, lines: &mut Vec<(usize, String)>) {
    let mut line = |text: &str| lines.push((depth, text.to_string()));
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
        Plan::Concat(left, right) => {
            line("both");
            describe(left, depth + 1, lines);
            describe(right, depth + 1, lines);
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
