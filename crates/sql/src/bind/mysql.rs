//! Expressions that MySQL alone has, and values on their way into its columns.

use super::expressions::boolean;
use super::{Binder, Bound, Scope};
use crate::cast::Strictness;
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::expr::{CollationOption, Expr};
use crate::mysql::assign::{Assigned, Choices};
use crate::mysql::variables;
use crate::table::Table;
use crate::types::{Base, Type};
use crate::value::Value;
use sqlparser::ast;

fn constant(text: &str) -> Bound {
    Bound::new(Expr::Const(Value::text(text)), Type::TEXT)
}

impl Binder<'_> {
    /// The name of a column of SHOW CREATE TABLE, which says `View` of a view where it says `Table` of a table.
    pub(super) fn shown_as(&self, shown: &str, table: &str) -> String {
        let space = self.database.catalog.space_by_name(table);
        match space.is_some_and(|space| crate::views::of(self.database, &space).is_some()) {
            true => shown.replace("Table", "View"),
            false => shown.to_string(),
        }
    }

    /// An expression without rows.
    pub(crate) fn bind_alone(&self, expr: &ast::Expr) -> Result<Expr> {
        Ok(self.bind(&Scope::new(None), expr)?.expr)
    }

    /// `@name`, `@@name`. None: it is the name of something else.
    pub(super) fn bind_variable(&self, name: &str) -> Result<Option<Bound>> {
        if self.dialect != Dialect::Mysql || !name.starts_with('@') {
            return Ok(None);
        }
        if let Some(system) = name.strip_prefix("@@") {
            let ty = variables::type_of(system)?;
            let mut bound = self.call("system_variable", vec![constant(system)])?;
            bound.ty = ty;
            return Ok(Some(bound));
        }
        self.call("user_variable", vec![constant(&name[1..].to_lowercase())]).map(Some)
    }

    /// `@name := value`.
    pub(super) fn bind_keeping(&self, scope: &Scope<'_>, left: &ast::Expr, right: &ast::Expr) -> Result<Bound> {
        let name = match left {
            ast::Expr::Identifier(ident) => ident.value.strip_prefix('@').filter(|name| !name.starts_with('@')),
            _ => None,
        };
        let name = name.ok_or_else(|| Error::new(Condition::Syntax, format!("'{left}' is no user variable")))?;
        let value = self.bind(scope, right)?;
        // Variables are doubles.
        let ty = if value.ty.base == Base::Double { Type::of(Base::Double) } else { value.ty };
        let mut bound = self.call("set_user_variable", vec![constant(&name.to_lowercase()), value])?;
        bound.ty = ty;
        Ok(bound)
    }

    /// A parameter whose value says what it is: beside text it is text, beside a number one, even if the client sends all values as text.
    pub(super) fn beside(&self, bound: Bound, other: Type) -> Result<Bound> {
        let is_open = bound.ty.base == Base::Any && matches!(bound.expr, Expr::Param(_));
        if self.dialect != Dialect::Mysql || !is_open {
            return Ok(bound);
        }
        match other.base {
            Base::Unknown | Base::Any | Base::Scalar => Ok(bound),
            Base::Decimal => self.cast_to(bound, Type::of(Base::Decimal), Strictness::Comparison),
            _ if other.is_number() => self.cast_to(bound, Type::of(Base::Number), Strictness::Comparison),
            base => self.cast_to(bound, Type::of(base), Strictness::Explicit),
        }
    }

    /// Expressions of the parser that only this dialect gives a meaning. None: it is another one.
    pub(super) fn bind_mysql(&self, scope: &Scope<'_>, expr: &ast::Expr) -> Result<Option<Bound>> {
        use ast::Expr as E;
        if self.dialect != Dialect::Mysql {
            return Ok(None);
        }
        Ok(Some(match expr {
            E::RLike { negated, expr, pattern, .. } => {
                let (value, pattern) = (self.bind(scope, expr)?, self.bind(scope, pattern)?);
                let flags = if self.tells_case(&value, &pattern) { "c" } else { "" };
                let mut found = self.call("regexp_like", vec![value, pattern, constant(flags)])?;
                found.ty = Type::of(Base::Int8);
                match negated {
                    true => boolean(Expr::Not(Box::new(found.expr))),
                    false => found,
                }
            }
            // `_utf8mb4'...'` is text as it stands there, `_binary'...'` bytes.
            E::Prefixed { prefix, value } => {
                let value = self.bind(scope, value)?;
                match prefix.value.to_ascii_lowercase().as_str() {
                    "_binary" => self.cast_to(value, Type::of(Base::Bytes), Strictness::Explicit)?,
                    _ => value,
                }
            }
            E::Convert { expr, data_type, charset, .. } => {
                let value = self.bind(scope, expr)?;
                match (data_type, charset) {
                    (Some(to), _) => self.bind_cast(value, to)?,
                    (None, Some(charset)) if charset.to_string().eq_ignore_ascii_case("binary") => {
                        self.cast_to(value, Type::of(Base::Bytes), Strictness::Explicit)?
                    }
                    (None, _) => self.cast_to(value, Type::TEXT, Strictness::Explicit)?,
                }
            }
            E::MemberOf(member) => {
                let value = self.as_json(self.bind(scope, &member.value)?)?;
                let array = self.cast_to(self.bind(scope, &member.array)?, Type::TEXT, Strictness::Explicit)?;
                self.call("member_of", vec![value, array])?
            }
            E::MatchAgainst { .. } => {
                return Err(Error::unsupported("MATCH ... AGAINST")
                    .hint("There are no full-text indexes: LIKE finds parts of text."));
            }
            E::Interval(_) => return Err(Error::new(Condition::Syntax, "INTERVAL stands where no moment is moved")),
            E::BinaryOp { left, op: op @ (ast::BinaryOperator::Plus | ast::BinaryOperator::Minus), right } => {
                let is_plus = *op == ast::BinaryOperator::Plus;
                match (&**left, &**right) {
                    (moment, E::Interval(interval)) => self.bind_moved(scope, moment, interval, is_plus)?,
                    (E::Interval(interval), moment) if is_plus => self.bind_moved(scope, moment, interval, true)?,
                    _ => return Ok(None),
                }
            }
            E::BinaryOp { left, op: ast::BinaryOperator::Assignment, right } => {
                self.bind_keeping(scope, left, right)?
            }
            E::Extract { field, expr, .. } => {
                let name = field.to_string().to_lowercase();
                let value = self.bind(scope, expr)?;
                let is_signed = value.ty.base == Base::Time
                    && matches!(name.as_str(), "hour" | "minute" | "second" | "microsecond");
                if is_signed {
                    return self.call("extract_parts", vec![constant(&name.to_uppercase()), value]).map(Some);
                }
                match crate::respell::unit_of_parts(&name) {
                    Some(unit) => self.call("extract_parts", vec![constant(unit), value])?,
                    None => self.call(&name, vec![value])?,
                }
            }
            _ => return Ok(None),
        }))
    }

    /// A moment and an interval, whose amount may be any expression.
    fn bind_moved(
        &self,
        scope: &Scope<'_>,
        moment: &ast::Expr,
        interval: &ast::Interval,
        is_later: bool,
    ) -> Result<Bound> {
        let value = self.bind(scope, moment)?;
        let amount = self.bind(scope, &interval.value)?;
        let unit = interval.leading_field.as_ref().map_or_else(|| "DAY".to_string(), ToString::to_string);
        let unit = crate::respell::unit_of_parts(&unit).unwrap_or(&unit).to_string();
        self.move_moment(value, amount, &unit, is_later)
    }

    fn move_moment(&self, value: Bound, amount: Bound, unit: &str, is_later: bool) -> Result<Bound> {
        if value.ty.base == Base::Time {
            return self.move_time(value, amount, unit, is_later);
        }
        let is_text = !value.ty.is_moment();
        let has_clock = ["HOUR", "MINUTE", "SECOND"].iter().any(|part| unit.to_uppercase().contains(part));
        let ty = match value.ty.base {
            Base::Date if !has_clock => Type::of(Base::Date),
            _ => self.moved_type(&value, &amount, unit),
        };
        let name = match (is_text, is_later) {
            (true, true) => "later_text",
            (true, false) => "earlier_text",
            (false, true) => "later",
            (false, false) => "earlier",
        };
        let mut bound = self.call(name, vec![value, amount, constant(unit)])?;
        if !is_text {
            bound.ty = ty;
        }
        Ok(bound)
    }

    /// Calls whose arguments are no plain expressions. None: it is another one.
    pub(super) fn bind_own_call(
        &self,
        scope: &Scope<'_>,
        name: &str,
        given: &[ast::FunctionArg],
    ) -> Result<Option<Bound>> {
        if self.dialect != Dialect::Mysql {
            return Ok(None);
        }
        let exprs: Vec<&ast::Expr> = given
            .iter()
            .filter_map(|argument| match argument {
                ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(expr)) => Some(expr),
                _ => None,
            })
            .collect();
        if exprs.len() != given.len() {
            return Ok(None);
        }
        Ok(Some(match (name, exprs.as_slice()) {
            // The row that would have come, in ON DUPLICATE KEY UPDATE.
            ("values", [ast::Expr::Identifier(column)]) => self.resolve(scope, Some(new_row(scope)), &column.value)?,
            ("values", [ast::Expr::CompoundIdentifier(parts)]) => {
                let column = parts.last().map_or("", |part| part.value.as_str());
                self.resolve(scope, Some(new_row(scope)), column)?
            }
            ("date_add" | "adddate" | "date_sub" | "subdate", [moment, ast::Expr::Interval(interval)]) => {
                self.bind_moved(scope, moment, interval, name.ends_with("add") || name.starts_with("add"))?
            }
            ("adddate" | "subdate", [moment, days]) => {
                let (moment, days) = (self.bind(scope, moment)?, self.bind(scope, days)?);
                self.move_moment(moment, days, "DAY", name == "adddate")?
            }
            ("timestampadd", [ast::Expr::Identifier(unit), amount, moment]) => {
                let (moment, amount) = (self.bind(scope, moment)?, self.bind(scope, amount)?);
                self.move_moment(moment, amount, &unit.value, true)?
            }
            ("timestampdiff", [ast::Expr::Identifier(unit), a, b]) => {
                let arguments = vec![constant(&unit.value), self.bind(scope, a)?, self.bind(scope, b)?];
                self.call(name, arguments)?
            }
            ("get_format", [ast::Expr::Identifier(kind), form]) => {
                let arguments = vec![constant(&kind.value.to_ascii_lowercase()), self.bind(scope, form)?];
                self.call(name, arguments)?
            }
            ("extract", _) => return Ok(None),
            ("charset", [_]) => constant("utf8mb4"),
            ("collation", [_]) => constant("utf8mb4_unicode_ci"),
            ("binary", [value]) => {
                self.cast_to(self.bind(scope, value)?, Type::of(Base::Bytes), Strictness::Explicit)?
            }
            ("char", values) => {
                let values = values.iter().map(|value| self.bind(scope, value)).collect::<Result<_>>()?;
                self.call("char", values)?
            }
            ("interval", [value, bounds @ ..]) if !bounds.is_empty() => {
                self.bind_interval_call(scope, value, bounds)?
            }
            _ => return Ok(None),
        }))
    }

    /// The collation that a name of MySQL's means; none: texts are compared by their bytes.
    pub(crate) fn collation_of(&self, name: &str) -> Option<std::sync::Arc<tuple::Collation>> {
        self.database.catalog.collation_by_name(crate::mysql::collation_name(name)?)
    }

    /// That of texts that come from no column.
    pub(super) fn usual_collation(&self) -> CollationOption {
        self.collation_of("utf8mb4_unicode_ci")
    }

    /// The collation that two values are compared by: that of a column, before that of what the statement says itself. Bytes have none.
    pub(super) fn compared_by(&self, a: &Bound, b: &Bound) -> CollationOption {
        let either = || a.collation.clone().or_else(|| b.collation.clone());
        if self.dialect != Dialect::Mysql {
            return either();
        }
        let is_said =
            |bound: &Bound| matches!(bound.expr, Expr::Const(_) | Expr::Param(_)) && bound.collation.is_none();
        match (is_said(a), is_said(b)) {
            _ if a.ty.base == Base::Bytes || b.ty.base == Base::Bytes => None,
            (true, true) if a.ty.base == Base::Text || b.ty.base == Base::Text => self.usual_collation(),
            (true, _) => b.collation.clone(),
            (_, true) => a.collation.clone(),
            (false, false) if is_weak(a) && is_of_column(b) => b.collation.clone(),
            (false, false) if is_weak(b) && is_of_column(a) => a.collation.clone(),
            // One that tells case goes before one that does not.
            (false, false) if is_binary(a) || is_binary(b) => None,
            (false, false) => either(),
        }
    }

    /// The collation of a text that a function makes of its arguments.
    pub(super) fn collation_of_text(&self, arguments: &[Bound]) -> CollationOption {
        let has_column = arguments.iter().any(is_of_column);
        let is_binary =
            |bound: &Bound| is_binary(bound) && !(has_column && is_weak(bound)) || bound.ty.base == Base::Bytes;
        let found = arguments.iter().find_map(|argument| argument.collation.clone());
        match arguments.iter().any(is_binary) {
            true => None,
            false => found.or_else(|| self.usual_collation()),
        }
    }

    /// The collation of a value that is one of several.
    pub(super) fn collation_of_values(&self, values: &[Bound]) -> CollationOption {
        match self.dialect == Dialect::Mysql && values.iter().any(|value| value.ty.base == Base::Text) {
            true => self.collation_of_text(values),
            false => values.iter().find_map(|value| value.collation.clone()),
        }
    }

    /// True if a pattern, or a part that is looked for, is compared with regard to case.
    pub(super) fn tells_case(&self, value: &Bound, part: &Bound) -> bool {
        (value.ty.base == Base::Text || part.ty.base == Base::Text) && self.compared_by(value, part).is_none()
            || value.ty.base == Base::Bytes
            || part.ty.base == Base::Bytes
    }

    /// A day or a moment as the number of its digits: 20240131, 20240131235959.
    pub(super) fn as_digits(&self, bound: Bound) -> Result<Bound> {
        if bound.ty.base == Base::Time {
            return self.time_as_digits(bound);
        }
        if let Some(digits) = super::times::digits_of(&bound).filter(|digits| *digits > 0) {
            let digits = i64::from(digits);
            let ty = Type { base: Base::Decimal, length: 14 + digits as u32, scale: digits as u32 };
            let digits = Bound::new(Expr::Const(Value::Int(digits)), Type::of(Base::Int4));
            return self.call("digits_of_clock", vec![bound, digits]).map(|found| Bound { ty, ..found });
        }
        let name = if bound.ty.base == Base::Date { "digits_of_moment" } else { "digits_of_clock" };
        self.call(name, vec![bound])
    }

    /// FIELD and STRCMP, which compare their arguments.
    pub(super) fn compared_call(&self, name: &str, arguments: Vec<Bound>) -> Result<Bound> {
        use crate::expr::Comparison;
        let number = |value: i64| Expr::Const(Value::Int(value));
        let is_right = if name == "field" { arguments.len() >= 2 } else { arguments.len() == 2 };
        if !is_right {
            let what = format!("Incorrect parameter count in the call to native function '{name}'");
            return Err(Error::new(Condition::UndefinedFunction, what));
        }
        let as_base = |bound: Bound, base: Base| self.cast_to(bound, Type::of(base), Strictness::Explicit);
        let mut arguments = arguments;
        // Beside bytes texts are compared as such.
        let has_bytes = arguments.iter().any(|argument| argument.ty.base == Base::Bytes);
        if name == "strcmp" {
            arguments = arguments.into_iter().map(|bound| as_base(bound, Base::Text)).collect::<Result<_>>()?;
        } else {
            for argument in arguments.iter_mut().filter(|argument| argument.ty.base == Base::Json) {
                *argument = as_base(argument.clone(), Base::Text)?;
            }
            if arguments.iter().all(|argument| matches!(argument.ty.base, Base::Text | Base::Bytes | Base::Unknown)) {
                for argument in arguments.iter_mut().filter(|argument| argument.ty.base == Base::Bytes) {
                    *argument = as_base(argument.clone(), Base::Text)?;
                }
            }
            // All as texts, all as exact numbers, else all as doubles.
            let is_text = |bound: &Bound| {
                matches!(bound.ty.base, Base::Text | Base::Unknown | Base::Any | Base::Time) || bound.ty.is_moment()
            };
            let is_exact = |bound: &Bound| {
                bound.ty.is_number() && bound.ty.base != Base::Double
                    || bound.ty.base == Base::Bool
                    || bound.ty.base == Base::Unknown
            };
            if !arguments.iter().all(is_text) && !arguments.iter().all(is_exact) {
                arguments = arguments.into_iter().map(|bound| as_base(bound, Base::Double)).collect::<Result<_>>()?;
            }
        }
        let collation = if has_bytes { None } else { self.collation_of_values(&arguments) };
        let compared = |comparison: Comparison, a: Bound, b: Bound| -> Result<Expr> {
            Ok(match self.compare(comparison, a, b)? {
                Expr::Compare(comparison, a, b, _) => Expr::Compare(comparison, a, b, collation.clone()),
                other => other,
            })
        };
        let first = arguments.remove(0);
        let mut branches = Vec::with_capacity(arguments.len());
        let ordered = [(Comparison::Less, -1), (Comparison::Equal, 0), (Comparison::Greater, 1)];
        let otherwise = match name {
            "strcmp" => {
                for (comparison, value) in ordered {
                    branches.push((compared(comparison, first.clone(), arguments[0].clone())?, number(value)));
                }
                Expr::Const(Value::Null)
            }
            _ => {
                for (at, argument) in arguments.into_iter().enumerate() {
                    branches.push((compared(Comparison::Equal, first.clone(), argument)?, number(at as i64 + 1)));
                }
                number(0)
            }
        };
        Ok(Bound::new(Expr::Case(branches, Box::new(otherwise)), Type::of(Base::Int4)))
    }

    /// `INTERVAL(n, a, b, ...)`: how many of the rising numbers are not above the first one.
    fn bind_interval_call(&self, scope: &Scope<'_>, value: &ast::Expr, bounds: &[&ast::Expr]) -> Result<Bound> {
        let value = self.bind(scope, value)?;
        let number = |value: i64| Expr::Const(Value::Int(value));
        let mut branches = vec![(Expr::IsNull(Box::new(value.expr.clone())), number(-1))];
        for (at, bound) in bounds.iter().enumerate() {
            let is_less = self.compare(crate::expr::Comparison::Less, value.clone(), self.bind(scope, bound)?)?;
            branches.push((is_less, number(at as i64)));
        }
        Ok(Bound::new(Expr::Case(branches, Box::new(number(bounds.len() as i64))), Type::of(Base::Int8)))
    }

    /// A value for a column that is computed: refused where the row is made, or passed over.
    pub(super) fn given_to_computed(&self, table: &Table, number: usize) -> Expr {
        let column = &table.columns[number];
        Expr::Assigned(Box::new(Assigned {
            column: column.name.clone(),
            to: column.ty,
            choices: None,
            is_choice: false,
            refuses_null: false,
            computed_in: Some(table.name.clone()),
            is_lenient: self.is_lenient.get(),
            value: Expr::Const(Value::Null),
        }))
    }

    /// A value for a column. Constants are looked at here.
    pub(super) fn assigned_in_mysql(&self, table: &Table, number: usize, bound: Bound) -> Expr {
        let column = &table.columns[number];
        if matches!(bound.expr, Expr::Const(Value::Null)) {
            return bound.expr;
        }
        let choices = column.declared.as_deref().and_then(Choices::of);
        let is_choice = choices.is_some() && self.choices_of(&bound).is_some_and(|of| !of.is_set());
        if let (Expr::Slot(_), None) = (&bound.expr, &choices)
            && bound.ty == column.ty
        {
            return bound.expr;
        }
        let assigned = Assigned {
            column: column.name.clone(),
            to: column.ty,
            choices,
            is_choice,
            refuses_null: false,
            computed_in: None,
            is_lenient: self.is_lenient.get(),
            value: bound.expr,
        };
        if let Expr::Const(value) = &assigned.value
            && let Ok(value) = assigned.taken(value)
        {
            return Expr::Const(value);
        }
        Expr::Assigned(Box::new(assigned))
    }

    /// A value of a row of VALUES, on its way into a column of MySQL's that may not be null.
    pub(super) fn refusing_null(&self, table: &Table, number: usize, expr: Expr) -> Expr {
        let column = &table.columns[number];
        let is_generated = table.generated.is_some_and(|(field, _)| field == number);
        let refuses = self.dialect == Dialect::Mysql && !column.is_nullable && !is_generated && !self.is_lenient.get();
        match expr {
            Expr::Assigned(assigned) if refuses => {
                Expr::Assigned(Box::new(Assigned { refuses_null: true, ..*assigned }))
            }
            Expr::Const(Value::Null) if refuses => Expr::Assigned(Box::new(Assigned {
                column: column.name.clone(),
                to: column.ty,
                choices: None,
                is_choice: false,
                refuses_null: true,
                computed_in: None,
                is_lenient: false,
                value: expr,
            })),
            expr => expr,
        }
    }

    /// What a column that may not be null has where nothing is said: an error, where the session is strict.
    pub(super) fn implicit_default(&self, table: &Table, number: usize) -> Result<Expr> {
        let column = &table.columns[number];
        if column.is_nullable || table.generated.is_some_and(|(field, _)| field == number) {
            return Ok(Expr::Const(Value::Null));
        }
        if let Some(choices) =
            column.declared.as_deref().filter(|declared| declared.starts_with("enum(")).and_then(Choices::of)
        {
            return Ok(Expr::Const(choices.first()));
        }
        let is_lenient = Bound::new(Expr::Const(Value::Bool(self.is_lenient.get())), Type::BOOL);
        let value = Bound::new(Expr::Const(crate::mysql::assign::implicit(column.ty)), column.ty);
        Ok(self.call("implicit_default", vec![constant(&column.name), is_lenient, value])?.expr)
    }
}

/// What the row that would have come is called, which `AS new` may say: no name alone means a column of it.
fn new_row<'s>(scope: &'s Scope<'_>) -> &'s str {
    let relations = std::iter::successors(Some(scope), |scope| scope.parent).flat_map(|scope| &scope.relations);
    let mut news = relations.filter(|relation| relation.columns.iter().all(|column| column.is_hidden));
    news.next().map_or("excluded", |relation| relation.alias.as_str())
}

/// True for functions of text that make bytes of bytes.
pub(super) fn keeps_bytes(name: &str) -> bool {
    matches!(
        name,
        "concat"
            | "concat_ws"
            | "insert"
            | "left"
            | "lpad"
            | "ltrim"
            | "repeat"
            | "replace"
            | "reverse"
            | "right"
            | "rpad"
            | "rtrim"
            | "substring_index"
            | "trim"
    )
}

/// The function whose text tells letters apart by their case, but beside texts of columns.
pub(super) const WEAK: &str = "json_unquote";

/// True for such a text, and for what is made of such texts and of what the statement says itself.
fn is_weak(bound: &Bound) -> bool {
    fn is_it(expr: &Expr) -> bool {
        match expr {
            Expr::Call(function, _) if function.name == WEAK => true,
            Expr::Call(function, arguments) => !makes_own_text(function.name) && are_they(&mut arguments.iter()),
            Expr::Concat(a, b) => are_they(&mut [&**a, &**b].into_iter()),
            Expr::Coalesce(parts) => are_they(&mut parts.iter()),
            Expr::Case(branches, otherwise) => {
                are_they(&mut branches.iter().map(|(_, value)| value).chain([&**otherwise]))
            }
            _ => false,
        }
    }
    fn are_they(parts: &mut dyn Iterator<Item = &Expr>) -> bool {
        let mut is_any = false;
        for part in parts {
            match is_it(part) {
                true => is_any = true,
                false if matches!(part, Expr::Const(_)) => {}
                false => return false,
            }
        }
        is_any
    }
    is_it(&bound.expr)
}

/// True for a text of a column whose letters are not told apart by their case, or what is made of one.
fn is_of_column(bound: &Bound) -> bool {
    fn is_made_of_one(expr: &Expr) -> bool {
        match expr {
            Expr::Slot(_) => true,
            Expr::Call(function, arguments) => !makes_own_text(function.name) && arguments.iter().any(is_made_of_one),
            // CAST(... AS CHAR) counts as one.
            Expr::Cast(ty, ..) => ty.base == Base::Text,
            Expr::Concat(a, b) => is_made_of_one(a) || is_made_of_one(b),
            Expr::Coalesce(parts) => parts.iter().any(is_made_of_one),
            Expr::Case(branches, otherwise) => {
                branches.iter().any(|(_, value)| is_made_of_one(value)) || is_made_of_one(otherwise)
            }
            _ => false,
        }
    }
    bound.ty.base == Base::Text && bound.collation.is_some() && is_made_of_one(&bound.expr)
}

/// True for a text that stands in no statement and has no collation: its letters are told apart by their case.
fn is_binary(bound: &Bound) -> bool {
    bound.ty.base == Base::Text && bound.collation.is_none() && !matches!(bound.expr, Expr::Const(_) | Expr::Param(_))
}

/// True for functions whose text is none of their arguments'.
pub(super) fn makes_own_text(name: &str) -> bool {
    matches!(
        name,
        "hex"
            | "md5"
            | "sha"
            | "sha1"
            | "sha2"
            | "bin"
            | "oct"
            | "conv"
            | "format"
            | "date_format"
            | "time_format"
            | "dayname"
            | "monthname"
            | "to_base64"
            | "space"
            | "uuid"
            | "system_variable"
            | "timestampadd"
            | "later_text"
            | "earlier_text"
    )
}

/// True for functions that take a day as the text that it is shown as.
pub(super) fn reads_text(name: &str) -> bool {
    matches!(
        name,
        "concat"
            | "concat_ws"
            | "left"
            | "right"
            | "substr"
            | "substring"
            | "mid"
            | "replace"
            | "lower"
            | "lcase"
            | "upper"
            | "ucase"
            | "lpad"
            | "rpad"
            | "trim"
            | "ltrim"
            | "rtrim"
            | "reverse"
            | "repeat"
            | "length"
            | "octet_length"
            | "char_length"
            | "character_length"
            | "hex"
            | "md5"
            | "sha1"
            | "sha"
            | "sha2"
            | "crc32"
            | "locate"
            | "instr"
            | "quote"
            | "insert"
            | "substring_index"
            | "regexp_replace"
            | "regexp_like"
            | "json_quote"
    )
}

/// True for a format of STR_TO_DATE that is known now and has nothing of a clock: such a call gives a day.
/// True for a pattern of STR_TO_DATE that has a clock and no day.
pub(super) fn is_format_of_times(format: &Expr) -> bool {
    let Expr::Const(Value::Text(format)) = format else { return false };
    let mut marks = format.chars();
    let mut has_clock = false;
    while let Some(mark) = marks.next() {
        if mark != '%' {
            continue;
        }
        match marks.next() {
            Some('f' | 'H' | 'I' | 'S' | 'h' | 'i' | 'k' | 'l' | 'p' | 'r' | 's' | 'T') => has_clock = true,
            Some('%') | None => {}
            Some(_) => return false,
        }
    }
    has_clock
}

/// Digits of a second that a pattern of STR_TO_DATE reads. None: nobody knows which pattern it is.
pub(super) fn digits_of_format(format: &Expr) -> Option<u32> {
    match format {
        Expr::Const(Value::Text(format)) => Some(if format.contains("%f") { 6 } else { 0 }),
        _ => None,
    }
}

pub(super) fn is_format_of_days(format: &Expr) -> bool {
    let Expr::Const(Value::Text(format)) = format else { return false };
    let mut marks = format.chars();
    while let Some(mark) = marks.next() {
        if mark == '%' && marks.next().is_some_and(|of| "fHIShiklprsT".contains(of)) {
            return false;
        }
    }
    true
}
