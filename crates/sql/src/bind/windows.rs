//! Window functions: where they may stand, what their windows are, and the steps that compute them.

use super::{Binder, Bound, Scope};
use crate::aggregates::{self, AggregateCall};
use crate::cast::Strictness;
use crate::dialect::{Dialect, EXCLUDE_MARK};
use crate::error::{Condition, Error, Result};
use crate::expr::{Expr, Slot};
use crate::plan::{Plan, SortKey};
use crate::types::{Base, Type};
use crate::value::Value;
use crate::window::{self, Excluded, Frame, Units, WindowCall, WindowFunction, WindowStep};
use hashbrown::HashSet;
use sqlparser::ast;
use std::cell::{Cell, RefCell};

/// Windows of one query.
const WINDOWS_MAX: usize = 100;

/// The windows of a query block.
pub(super) struct Windows {
    /// WINDOW name AS (...).
    named: Vec<(String, ast::NamedWindowExpr)>,
    found: RefCell<Vec<Window>>,
    /// What is bound may have window functions.
    pub(super) is_allowed: Cell<bool>,
    /// What is bound stands within one.
    is_within: Cell<bool>,
}

/// A window and what is computed over it.
pub(super) struct Window {
    partition: Vec<Bound>,
    order: Vec<(Bound, bool, bool)>,
    calls: Vec<Call>,
}

struct Call {
    function: WindowFunction,
    arguments: Vec<Expr>,
    filter: Option<Expr>,
    frame: Frame,
    slot: Slot,
}

/// Partition, order and frame of a window that a statement writes.
#[derive(Default)]
struct Written<'q> {
    partition: &'q [ast::Expr],
    order: Vec<&'q ast::OrderByExpr>,
    excluded: Option<Excluded>,
    frame: Option<&'q ast::WindowFrame>,
}

impl Window {
    /// Hands every expression to `change`, which gives another one.
    pub(super) fn replace(&mut self, change: &mut dyn FnMut(Expr) -> Expr) {
        let mut one = |expr: &mut Expr| *expr = change(std::mem::replace(expr, Expr::Const(Value::Null)));
        self.partition.iter_mut().for_each(|bound| one(&mut bound.expr));
        self.order.iter_mut().for_each(|(bound, ..)| one(&mut bound.expr));
        for call in &mut self.calls {
            call.arguments.iter_mut().chain(&mut call.filter).for_each(&mut one);
        }
    }

    fn expressions(&self) -> impl Iterator<Item = &Expr> {
        let calls = self.calls.iter().flat_map(|call| call.arguments.iter().chain(&call.filter));
        let own = self.partition.iter().chain(self.order.iter().map(|(bound, ..)| bound));
        own.map(|bound| &bound.expr).chain(calls)
    }
}

impl Windows {
    /// Those of a block that names these.
    pub(super) fn new(dialect: Dialect, named: &[ast::NamedWindowDefinition]) -> Result<Self> {
        let mut known: Vec<(String, ast::NamedWindowExpr)> = Vec::new();
        for ast::NamedWindowDefinition(name, window) in named {
            let name = dialect.fold(name);
            if known.iter().any(|(other, _)| dialect.is_same(other, &name)) {
                let what = match dialect {
                    Dialect::Mysql => format!("Window '{name}' is defined twice."),
                    _ => format!("window \"{name}\" is already defined"),
                };
                return Err(Error::new(Condition::Windowing, what).mysql(3591));
            }
            known.push((name, window.clone()));
        }
        Ok(Windows {
            named: known,
            found: RefCell::default(),
            is_allowed: Cell::new(true),
            is_within: Cell::new(false),
        })
    }

    /// What was found.
    pub(super) fn into_found(self) -> Vec<Window> {
        self.found.into_inner()
    }
}

impl Binder<'_> {
    fn misplaced_window(&self, name: &str) -> Error {
        let message = match self.dialect {
            Dialect::Postgres => "window functions are not allowed here".to_string(),
            Dialect::Mysql => format!("You cannot use the window function '{name}' in this context.'"),
            Dialect::Tarantool => format!("misuse of window function {}()", name.to_uppercase()),
        };
        Error::new(Condition::Windowing, message)
    }

    /// A call with OVER: the place where its value will be.
    pub(super) fn bind_window(
        &self,
        scope: &Scope<'_>,
        name: &str,
        function: &ast::Function,
        over: &ast::WindowType,
    ) -> Result<Bound> {
        if scope.in_aggregate.get() && self.dialect == Dialect::Postgres {
            let what = "aggregate function calls cannot contain window function calls";
            return Err(Error::new(Condition::Grouping, what));
        }
        let windows = match &scope.windows {
            Some(windows) if windows.is_allowed.get() && !scope.in_aggregate.get() => windows,
            _ => return Err(self.misplaced_window(name)),
        };
        if windows.is_within.get() {
            return Err(Error::new(Condition::Windowing, "window function calls cannot be nested"));
        }
        windows.is_within.set(true);
        let bound = self.bind_window_call(scope, windows, name, function, over);
        windows.is_within.set(false);
        bound
    }

    fn bind_window_call(
        &self,
        scope: &Scope<'_>,
        windows: &Windows,
        name: &str,
        function: &ast::Function,
        over: &ast::WindowType,
    ) -> Result<Bound> {
        let written = match over {
            ast::WindowType::WindowSpec(spec) => self.written(windows, spec, 0)?,
            ast::WindowType::NamedWindow(name) => self.named_window(windows, name, 0)?,
        };
        let mut partition = Vec::with_capacity(written.partition.len());
        for expr in written.partition {
            partition.push(self.known_type(self.bind(scope, expr)?)?);
        }
        let mut order = Vec::with_capacity(written.order.len());
        for key in &written.order {
            let is_descending = key.options.sort == Some(ast::OrderBySort::Desc);
            let nulls_first = key.options.nulls_first.unwrap_or(is_descending != self.dialect.has_nulls_first());
            order.push((self.known_type(self.bind(scope, &key.expr)?)?, is_descending, nulls_first));
        }
        let frame = self.bind_frame(&written, &order)?;
        let (kind, arguments, result) = self.bind_window_function(scope, name, function)?;
        let filter = function.filter.as_ref().map(|filter| self.condition(scope, filter)).transpose()?;
        if filter.is_some() && !matches!(kind, WindowFunction::Aggregate(_)) {
            return Err(Error::unsupported("FILTER of window functions that are no aggregates"));
        }
        let collation = arguments.first().and_then(|bound| bound.collation.clone());
        let slot = self.new_slot();
        let arguments = arguments.into_iter().map(|bound| bound.expr).collect();
        let call = Call { function: kind, arguments, filter, frame, slot };
        let mut found = windows.found.borrow_mut();
        let is_same = |window: &&mut Window| {
            let like = |a: &Bound, b: &Bound| a.expr.is_like(&b.expr);
            window.partition.len() == partition.len()
                && window.order.len() == order.len()
                && window.partition.iter().zip(&partition).all(|(a, b)| like(a, b))
                && window.order.iter().zip(&order).all(|(a, b)| like(&a.0, &b.0) && (a.1, a.2) == (b.1, b.2))
        };
        let count = found.len();
        match found.iter_mut().find(is_same) {
            Some(window) => window.calls.push(call),
            None if count >= WINDOWS_MAX => {
                let what = format!("a query has at most {WINDOWS_MAX} windows");
                return Err(Error::new(Condition::LimitExceeded, what));
            }
            None => found.push(Window { partition, order, calls: vec![call] }),
        }
        Ok(Bound { collation, ..Bound::new(Expr::Slot(slot), result) })
    }

    /// A literal that nothing has given a type is text.
    pub(super) fn known_type(&self, bound: Bound) -> Result<Bound> {
        match bound.ty.base {
            Base::Unknown => self.cast_to(bound, Type::TEXT, Strictness::Explicit),
            _ => Ok(bound),
        }
    }

    fn named_window<'w>(&self, windows: &'w Windows, name: &ast::Ident, depth: usize) -> Result<Written<'w>> {
        let name = self.dialect.fold(name);
        let known = windows.named.iter().find(|(known, _)| self.dialect.is_same(known, &name));
        let unknown = || {
            let what = match self.dialect {
                Dialect::Mysql => format!("Window name '{name}' is not defined."),
                _ => format!("window \"{name}\" does not exist"),
            };
            Error::new(Condition::UndefinedObject, what).mysql(3579)
        };
        match known.filter(|_| depth <= windows.named.len()) {
            Some((_, ast::NamedWindowExpr::WindowSpec(spec))) => self.written(windows, spec, depth + 1),
            Some((_, ast::NamedWindowExpr::NamedWindow(other))) => self.named_window(windows, other, depth + 1),
            None => Err(unknown()),
        }
    }

    fn written<'w>(&self, windows: &'w Windows, spec: &'w ast::WindowSpec, depth: usize) -> Result<Written<'w>> {
        let mut written = match &spec.window_name {
            None => Written::default(),
            Some(name) => {
                let below = self.named_window(windows, name, depth)?;
                let overrides = |what: &str| {
                    let message = format!("cannot override {what} of window \"{name}\"");
                    Err(Error::new(Condition::Windowing, message))
                };
                if !spec.partition_by.is_empty() {
                    return overrides("PARTITION BY clause");
                }
                if !below.order.is_empty() && !spec.order_by.is_empty() {
                    return overrides("ORDER BY clause");
                }
                if below.frame.is_some() {
                    let what = format!("cannot copy window \"{name}\" because it has a frame clause");
                    return Err(Error::new(Condition::Windowing, what));
                }
                below
            }
        };
        if !spec.partition_by.is_empty() {
            written.partition = &spec.partition_by;
        }
        for key in &spec.order_by {
            match &key.expr {
                ast::Expr::Identifier(ident) if ident.value.starts_with(EXCLUDE_MARK) => {
                    written.excluded = Some(match &ident.value[EXCLUDE_MARK.len_utf8()..] {
                        "current" => Excluded::Current,
                        "group" => Excluded::Group,
                        "ties" => Excluded::Ties,
                        _ => Excluded::Nothing,
                    });
                }
                _ => written.order.push(key),
            }
        }
        written.frame = spec.window_frame.as_ref().or(written.frame);
        Ok(written)
    }

    fn bind_frame(&self, written: &Written<'_>, order: &[(Bound, bool, bool)]) -> Result<Frame> {
        let excluded = written.excluded.unwrap_or(Excluded::Nothing);
        let Some(frame) = written.frame else { return Ok(Frame { excluded, ..Frame::usual() }) };
        let units = match frame.units {
            ast::WindowFrameUnits::Rows => Units::Rows,
            ast::WindowFrameUnits::Range => Units::Range,
            ast::WindowFrameUnits::Groups => Units::Groups,
        };
        if self.dialect == Dialect::Mysql && (units == Units::Groups || excluded != Excluded::Nothing) {
            return Err(Error::unsupported("GROUPS and EXCLUDE of a window").mysql(1235));
        }
        if units == Units::Groups && order.is_empty() {
            return Err(Error::new(Condition::Windowing, "GROUPS mode requires an ORDER BY clause"));
        }
        let current = ast::WindowFrameBound::CurrentRow;
        let end = frame.end_bound.as_ref().unwrap_or(&current);
        let place = |bound: &ast::WindowFrameBound| match bound {
            ast::WindowFrameBound::Preceding(None) => 0,
            ast::WindowFrameBound::Preceding(Some(_)) => 1,
            ast::WindowFrameBound::CurrentRow => 2,
            ast::WindowFrameBound::Following(Some(_)) => 3,
            ast::WindowFrameBound::Following(None) => 4,
        };
        let refused = match (place(&frame.start_bound), place(end)) {
            (4, _) => Some("frame start cannot be UNBOUNDED FOLLOWING"),
            (_, 0) => Some("frame end cannot be UNBOUNDED PRECEDING"),
            (2, 1) => Some("frame starting from current row cannot have preceding rows"),
            (3, 1) => Some("frame starting from following row cannot have preceding rows"),
            (3, 2) => Some("frame starting from following row cannot end with current row"),
            _ => None,
        };
        if let Some(what) = refused {
            return Err(Error::new(Condition::Windowing, what).mysql(3585));
        }
        let start = self.bind_bound(units, &frame.start_bound, order)?;
        let end = self.bind_bound(units, end, order)?;
        let is_zoned = self.is_zoned
            && units == Units::Range
            && order.first().is_some_and(|(key, ..)| key.ty.base == Base::TimestampTz);
        Ok(Frame { units, start, end, excluded, is_zoned })
    }

    fn bind_bound(
        &self,
        units: Units,
        bound: &ast::WindowFrameBound,
        order: &[(Bound, bool, bool)],
    ) -> Result<window::Bound> {
        use ast::WindowFrameBound as B;
        let (expr, is_before) = match bound {
            B::CurrentRow => return Ok(window::Bound::Current),
            B::Preceding(None) => return Ok(window::Bound::First),
            B::Following(None) => return Ok(window::Bound::Last),
            B::Preceding(Some(expr)) => (expr, true),
            B::Following(Some(expr)) => (expr, false),
        };
        let scope = Scope::new(None);
        let offset = match &**expr {
            ast::Expr::Interval(interval) => self.bind_interval(interval)?,
            expr => self.bind(&scope, expr)?,
        };
        let offset = match units {
            Units::Rows | Units::Groups if offset.ty.base == Base::Unknown => {
                self.cast_to(offset, Type::of(Base::Int8), Strictness::Explicit)?
            }
            Units::Rows | Units::Groups => offset,
            Units::Range => {
                let [(key, ..)] = order else {
                    let what = "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column";
                    return Err(Error::new(Condition::Windowing, what).mysql(3587));
                };
                let is_open = |ty: Type| matches!(ty.base, Base::Any | Base::Scalar);
                let wanted = match key.ty.base {
                    _ if key.ty.is_moment() || key.ty.is_clock() || key.ty.base == Base::Interval => {
                        Type::of(Base::Interval)
                    }
                    base => Type::of(base),
                };
                let offset = match offset.ty.base {
                    Base::Unknown => self.cast_to(offset, wanted, Strictness::Explicit)?,
                    _ => offset,
                };
                let fits = offset.ty.is_number() && key.ty.is_number()
                    || offset.ty.base == Base::Interval && wanted.base == Base::Interval
                    || is_open(offset.ty)
                    || is_open(key.ty);
                if !fits {
                    let what = format!(
                        "RANGE with offset PRECEDING/FOLLOWING is not supported for column type {} and offset type {}",
                        key.ty, offset.ty
                    );
                    return Err(Error::new(Condition::Unsupported, what).mysql(3588));
                }
                match key.ty.is_clock() {
                    // Of days and months nothing counts there.
                    true => self.call("span_of_clock", vec![offset])?,
                    false => offset,
                }
            }
        };
        Ok(if is_before { window::Bound::Before(offset.expr) } else { window::Bound::Behind(offset.expr) })
    }

    /// The function, its arguments, and the type of its value.
    fn bind_window_function(
        &self,
        scope: &Scope<'_>,
        name: &str,
        function: &ast::Function,
    ) -> Result<(WindowFunction, Vec<Bound>, Type)> {
        use WindowFunction as F;
        let int = |wide: Base| Type::of(if self.dialect == Dialect::Tarantool { Base::Integer } else { wide });
        let (kind, wanted, result) = match name {
            "row_number" => (F::RowNumber, 0..=0, Some(int(Base::Int8))),
            "rank" => (F::Rank, 0..=0, Some(int(Base::Int8))),
            "dense_rank" => (F::DenseRank, 0..=0, Some(int(Base::Int8))),
            "percent_rank" => (F::PercentRank, 0..=0, Some(Type::of(Base::Double))),
            "cume_dist" => (F::CumeDist, 0..=0, Some(Type::of(Base::Double))),
            "ntile" => (F::Ntile, 1..=1, Some(int(Base::Int4))),
            "lag" => (F::Neighbour { is_behind: false }, 1..=3, None),
            "lead" => (F::Neighbour { is_behind: true }, 1..=3, None),
            "first_value" => (F::First, 1..=1, None),
            "last_value" => (F::Last, 1..=1, None),
            "nth_value" => (F::Nth, 2..=2, None),
            _ => return self.bind_window_aggregate(scope, name, function),
        };
        if function.null_treatment == Some(ast::NullTreatment::IgnoreNulls) {
            return Err(Error::unsupported("IGNORE NULLS"));
        }
        let mut arguments = Vec::new();
        if let ast::FunctionArguments::List(list) = &function.args {
            if list.duplicate_treatment == Some(ast::DuplicateTreatment::Distinct) {
                return Err(Error::unsupported("DISTINCT of window functions"));
            }
            for argument in &list.args {
                let ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(expr)) = argument else {
                    return Err(Error::unsupported(format!("'{name}({argument})'")));
                };
                arguments.push(self.bind(scope, expr)?);
            }
            if let Some(clause) = list.clauses.first() {
                return Err(Error::unsupported(format!("'{clause}' of a window function")));
            }
        }
        if !wanted.contains(&arguments.len()) {
            let types: Vec<String> = arguments.iter().map(|argument| argument.ty.to_string()).collect();
            let what = format!("function {name}({}) does not exist", types.join(", "));
            return Err(Error::new(Condition::UndefinedFunction, what).mysql(1582));
        }
        let as_number = |arguments: &mut Vec<Bound>, at: usize| -> Result<()> {
            if arguments.get(at).is_some_and(|bound| !bound.ty.is_integer()) {
                let bound = arguments.remove(at);
                let bound = self.cast_to(bound, Type::of(Base::Int8), Strictness::Explicit)?;
                arguments.insert(at, bound);
            }
            Ok(())
        };
        as_number(&mut arguments, if matches!(kind, F::Ntile) { 0 } else { 1 })?;
        let result = match result {
            Some(result) => result,
            None => {
                let default = (arguments.len() == 3).then(|| arguments.pop()).flatten();
                let value = self.known_type(arguments.remove(0))?;
                let (value, default, ty) = match default {
                    None => {
                        let ty = value.ty;
                        (value, None, ty)
                    }
                    Some(default) => {
                        let (mut both, ty) = self.alike(vec![value, default], &name.to_uppercase())?;
                        let default = both.pop();
                        (both.remove(0), default, ty)
                    }
                };
                arguments.insert(0, value);
                arguments.extend(default);
                ty
            }
        };
        Ok((kind, arguments, result))
    }

    fn bind_window_aggregate(
        &self,
        scope: &Scope<'_>,
        name: &str,
        function: &ast::Function,
    ) -> Result<(WindowFunction, Vec<Bound>, Type)> {
        let list = match &function.args {
            ast::FunctionArguments::List(list) => Some(list),
            _ => None,
        };
        let is_star = list.is_some_and(|list| {
            matches!(list.args.as_slice(), [ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Wildcard)])
                || self.dialect == Dialect::Tarantool && list.args.is_empty()
        });
        let Some(aggregate) = aggregates::find(self.dialect, name, is_star && name == "count") else {
            let message = match self.dialect {
                Dialect::Postgres => {
                    format!("OVER specified, but {name} is not a window function nor an aggregate function")
                }
                _ => format!("{name}() may not be used as a window function"),
            };
            return Err(Error::new(Condition::NotUpdatable, message));
        };
        if aggregate.is_of_ordered_set() {
            return Err(Error::unsupported(format!("OVER for ordered-set aggregate {name}")));
        }
        let plain = ast::Function { filter: None, ..function.clone() };
        let (call, arguments) = self.bind_aggregate_parts(scope, aggregate, name, &plain, list)?;
        if call.is_distinct {
            return Err(Error::unsupported("DISTINCT of window functions"));
        }
        if !call.order.is_empty() {
            return Err(Error::unsupported("aggregate ORDER BY of window functions"));
        }
        let result = call.result;
        // Its arguments stand in places of the rows that are kept.
        let call = AggregateCall { arguments: Vec::new(), ..call };
        Ok((WindowFunction::Aggregate(Box::new(call)), arguments, result))
    }

    /// Puts steps behind a plan that compute windows. `reads` are the expressions of what comes behind them.
    pub(super) fn plan_windows<'e>(
        &self,
        mut plan: Plan,
        windows: Vec<Window>,
        reads: impl Iterator<Item = &'e Expr>,
    ) -> Plan {
        let mut later: HashSet<Slot> = HashSet::new();
        let note = |expr: &Expr, later: &mut HashSet<Slot>| {
            expr.slots(&mut |slot| {
                later.insert(slot);
            });
        };
        reads.for_each(|expr| note(expr, &mut later));
        for (number, window) in windows.iter().enumerate() {
            if number > 0 {
                window.expressions().for_each(|expr| note(expr, &mut later));
            }
        }
        for window in windows {
            let mut computed: Vec<(Slot, Expr)> = Vec::new();
            let mut place = |expr: Expr| match expr {
                Expr::Slot(slot) => slot,
                expr => match computed.iter().find(|(_, known)| known.is_like(&expr)) {
                    Some((slot, _)) => *slot,
                    None => {
                        let slot = self.new_slot();
                        computed.push((slot, expr));
                        slot
                    }
                },
            };
            let mut own: Vec<Slot> = Vec::new();
            let mut partition = Vec::new();
            for bound in window.partition {
                partition.push(place(super::select::canonical(bound.expr, &bound.collation)));
            }
            let mut order = Vec::new();
            for (bound, is_descending, nulls_first) in window.order {
                let slot = place(bound.expr);
                order.push(SortKey { slot, is_descending, nulls_first, collation: bound.collation });
            }
            let mut calls = Vec::new();
            for call in window.calls {
                let arguments: Vec<Slot> = call.arguments.into_iter().map(&mut place).collect();
                let filter = call.filter.map(&mut place);
                own.extend(arguments.iter().copied().chain(filter));
                calls.push(WindowCall {
                    function: call.function,
                    arguments,
                    filter,
                    frame: call.frame,
                    slot: call.slot,
                });
            }
            own.extend(partition.iter().copied().chain(order.iter().map(|key| key.slot)));
            let mut filled: HashSet<Slot> = HashSet::new();
            plan.fills(&mut |slot| {
                filled.insert(slot);
            });
            let mut slots: Vec<Slot> = later.intersection(&filled).copied().chain(own).collect();
            slots.sort_unstable();
            slots.dedup();
            if !computed.is_empty() {
                plan = Plan::Map(Box::new(plan), computed);
            }
            plan = Plan::Window(Box::new(WindowStep { input: plan, partition, order, slots, calls }));
        }
        plan
    }
}
