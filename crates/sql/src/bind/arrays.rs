//! Arrays in expressions, and the types that stand for objects of the catalog.

use super::expressions::not;
use super::{Binder, Bound, Output, Scope};
use crate::aggregates::{Aggregate, AggregateCall};
use crate::array::each::Each;
use crate::cast::Strictness;
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::expr::{Asked, Comparison, Expr};
use crate::plan::Plan;
use crate::types::{Base, Type};
use crate::value::Value;
use crate::written::written;
use sqlparser::ast::{self, BinaryOperator};

impl Binder<'_> {
    /// An expression as an array. A parameter of which nothing is known is one.
    pub(super) fn as_array(&self, bound: Bound) -> Result<Bound> {
        match bound.ty.base {
            Base::Array | Base::Any => Ok(bound),
            Base::Unknown => self.cast_to(bound, Type::of(Base::Array), Strictness::Explicit),
            _ => {
                let what = format!("operator or function for arrays does not exist: {}", bound.ty);
                Err(Error::new(Condition::UndefinedFunction, what))
            }
        }
    }

    /// The elements of an array as a query of one column, whose values are of a type.
    pub(super) fn elements_of(&self, scope: &Scope<'_>, array: &ast::Expr, ty: Type) -> Result<super::Query> {
        let array = self.bind(scope, array)?;
        let array = match (array.ty.base, self.dialect) {
            (other, Dialect::Postgres) if !matches!(other, Base::Array | Base::Any | Base::Unknown) => {
                return Err(Error::new(Condition::NoArray, "op ANY/ALL (array) requires array on right side"));
            }
            (Base::Unknown, Dialect::Postgres) if ty.base != Base::Unknown => {
                self.cast_to(array, Type::array_of(ty), Strictness::Explicit)?
            }
            _ => self.as_array(array)?,
        };
        // Elements of a type that is known keep it: who compares them looks at both.
        let own = array.ty.element();
        let is_known = self.dialect == Dialect::Postgres && !matches!(own.base, Base::Any | Base::Unknown);
        let ty = if is_known { own } else { ty };
        let array = array.expr;
        let (slot, output) = (self.new_slot(), self.new_slot());
        let element = Expr::Cast(ty.without_length(), Strictness::Explicit, Box::new(Expr::Slot(slot)));
        let plan = Plan::Map(Box::new(Plan::Unnest { array, slot }), vec![(output, element)]);
        let outputs = vec![Output { name: "element".to_string(), slot: output, ty, collation: None, item: None }];
        Ok(super::Query { plan, outputs })
    }

    /// A cast to a type that stands for an object of the catalog: `'t'::regclass`, `oid::regclass`. None: it is another type.
    pub(super) fn cast_to_object(
        &self,
        value: Bound,
        declared: &ast::DataType,
    ) -> Result<std::result::Result<Bound, Bound>> {
        let mut name = declared.to_string().to_ascii_lowercase();
        if name != "\"char\"" && !name.ends_with(".\"char\"") {
            name = name.replace('"', "");
        }
        let name = name.trim_start_matches("pg_catalog.");
        // TypeORM quotes it. `"char"` is another type than `char`.
        let name = match name.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
            Some(inner) if inner != "char" => inner,
            _ => name,
        };
        let is_text = matches!(value.ty.base, Base::Text | Base::Unknown);
        let function = match (name, is_text) {
            ("regclass", true) => "regclass_number",
            ("regclass", false) => "regclass_name",
            ("regtype", true) => "regtype_number",
            ("regtype", false) => "regtype_name",
            ("regnamespace", true) => "regnamespace_number",
            ("regnamespace", false) => "regnamespace_name",
            ("regproc" | "regprocedure" | "regrole", _) => {
                return Ok(Ok(self.cast_to(value, Type::TEXT, Strictness::Explicit)?));
            }
            ("oid" | "xid", _) => return Ok(Ok(self.cast_to(value, Type::of(Base::Int8), Strictness::Explicit)?)),
            ("\"char\"" | "name" | "cstring", _) => {
                return Ok(Ok(self.cast_to(value, Type::TEXT, Strictness::Explicit)?));
            }
            (name, _) if name == "int2vector" || name == "oidvector" => {
                let array = self.as_array(value)?;
                return Ok(Ok(Bound { ty: Type::array_of(Type::of(Base::Int8)), ..array }));
            }
            _ => return Ok(Err(value)),
        };
        Ok(Ok(self.call(function, vec![value])?))
    }

    /// What was cast to `regclass` or `regtype` is its number among others, and its name where it is shown or becomes text.
    pub(super) fn named_object(&self, value: Bound, expr: &ast::Expr) -> Result<Bound> {
        let mut inner = expr;
        while let ast::Expr::Nested(nested) = inner {
            inner = nested;
        }
        let ast::Expr::Cast { data_type, .. } = inner else { return Ok(value) };
        let function = match name_of_type(data_type).as_str() {
            _ if self.dialect != Dialect::Postgres || value.ty.base != Base::Int8 => return Ok(value),
            "regclass" => "regclass_name",
            "regtype" => "regtype_name",
            "regnamespace" => "regnamespace_name",
            _ => return Ok(value),
        };
        self.call(function, vec![value])
    }

    /// The columns of a whole query, which a client is shown.
    pub(super) fn show_objects(&self, mut query: super::Query, body: &ast::SetExpr) -> Result<super::Query> {
        let ast::SetExpr::Select(select) = body else { return Ok(query) };
        let is_wild = |item: &ast::SelectItem| {
            !matches!(item, ast::SelectItem::UnnamedExpr(_) | ast::SelectItem::ExprWithAlias { .. })
        };
        let mut shown = Vec::new();
        for (number, item) in select.projection.iter().enumerate() {
            let (ast::SelectItem::UnnamedExpr(expr) | ast::SelectItem::ExprWithAlias { expr, .. }) = item else {
                continue;
            };
            let rest = select.projection.len() - number;
            let at = match select.projection[..number].iter().any(is_wild) {
                false => number,
                true if select.projection[number..].iter().any(is_wild) => continue,
                true => query.outputs.len().saturating_sub(rest),
            };
            let Some(output) = query.outputs.get_mut(at) else { continue };
            let value = Bound::new(Expr::Slot(output.slot), output.ty);
            let named = self.named_object(value, expr)?;
            if named.ty != output.ty {
                let slot = self.new_slot();
                (output.slot, output.ty) = (slot, named.ty);
                shown.push((slot, named.expr));
            }
        }
        if !shown.is_empty() {
            query.plan = Plan::Map(Box::new(query.plan), shown);
        }
        Ok(query)
    }

    /// `ARRAY[...]`.
    pub(super) fn bind_array(&self, scope: &Scope<'_>, items: &[ast::Expr]) -> Result<Bound> {
        let mut bound = Vec::with_capacity(items.len());
        for item in items {
            bound.push(match item {
                // Arrays within arrays need not say that they are some.
                ast::Expr::Array(array) => self.bind_array(scope, &array.elem)?,
                item => self.bind(scope, item)?,
            });
        }
        let (bound, ty) = self.alike(bound, "ARRAY")?;
        let element = if ty.base == Base::Unknown { Type::TEXT } else { ty };
        let ty = if bound.is_empty() { Type::of(Base::Array) } else { Type::array_of(element) };
        let mut array = self.call("make_array", bound)?;
        array.ty = ty;
        Ok(array)
    }

    /// `array(SELECT ...)`.
    pub(super) fn bind_array_of_query(&self, scope: &Scope<'_>, query: &ast::Query) -> Result<Bound> {
        let source = written(self.dialect, query);
        let mut query = self.bind_query(query, Some(scope))?;
        let [output] = query.outputs.as_slice() else {
            return Err(Error::new(Condition::ColumnCount, "subquery must return only one column"));
        };
        let ty = Type::array_of(output.ty);
        let slot = self.new_slot();
        let call = AggregateCall {
            aggregate: Aggregate::Array,
            arguments: vec![Expr::Slot(output.slot)],
            result: ty,
            ..AggregateCall::any_of(output.slot, slot)
        };
        query.plan = Plan::Aggregate { input: Box::new(query.plan), groups: Vec::new(), calls: vec![call] };
        query.outputs = vec![Output { name: "array".to_string(), slot, ty, collation: None, item: None }];
        let found = Bound::new(self.make_subquery(query, Asked::Scalar, source), ty);
        let none = Bound::new(Expr::Const(Value::Document([0x90].as_slice().into())), ty);
        let mut array = self.call("coalesce", vec![found, none])?;
        array.ty = ty;
        Ok(array)
    }

    /// `array[1]`, `array[1:2]`, and the same of JSON.
    pub(super) fn bind_subscripts(
        &self,
        scope: &Scope<'_>,
        root: &ast::Expr,
        chain: &[ast::AccessExpr],
    ) -> Result<Bound> {
        // `t.a[1]`: the name goes on behind what the parser takes for the root.
        let dots =
            chain.iter().take_while(|access| matches!(access, ast::AccessExpr::Dot(ast::Expr::Identifier(_)))).count();
        let mut names: Vec<ast::Ident> = match root {
            ast::Expr::Identifier(name) if dots > 0 => vec![name.clone()],
            ast::Expr::CompoundIdentifier(names) if dots > 0 => names.clone(),
            _ => Vec::new(),
        };
        let check = |root: Bound| match root.ty.base {
            Base::Unknown | Base::Text if self.dialect == Dialect::Postgres && !root.ty.is_name() => {
                let what = format!("cannot subscript type {} because it does not support subscripting", root.ty);
                Err(Error::new(Condition::TypeMismatch, what))
            }
            _ => Ok(root),
        };
        let (root, chain) = match names.is_empty() {
            true => (check(self.bind(scope, root)?)?, chain),
            false => {
                names.extend(chain[..dots].iter().filter_map(|access| match access {
                    ast::AccessExpr::Dot(ast::Expr::Identifier(name)) => Some(name.clone()),
                    _ => None,
                }));
                (self.bind(scope, &ast::Expr::CompoundIdentifier(names))?, &chain[dots..])
            }
        };
        let mut subscripts = Vec::with_capacity(chain.len());
        for access in chain {
            match access {
                ast::AccessExpr::Subscript(subscript) => subscripts.push(subscript),
                ast::AccessExpr::Dot(_) => return Err(Error::unsupported(format!("'{access}'"))),
            }
        }
        if root.ty.base == Base::Json {
            let mut found = root;
            for subscript in subscripts {
                let ast::Subscript::Index { index } = subscript else {
                    return Err(Error::new(Condition::TypeMismatch, "jsonb subscript does not support slices"));
                };
                let index = self.bind(scope, index)?;
                found = self.json_member(found, index, false)?;
            }
            return Ok(found);
        }
        if let (Base::Text, [ast::Subscript::Index { index }]) = (root.ty.base, subscripts.as_slice()) {
            // A name of the catalog is an array of characters, counted from 0.
            let index = self.cast_to(self.bind(scope, index)?, Type::of(Base::Int8), Strictness::Explicit)?;
            return self.call("character_of_name", vec![root, index]);
        }
        let root = self.as_array(root)?;
        let ty = root.ty;
        let number = |expr: Option<&ast::Expr>| -> Result<Bound> {
            match expr {
                Some(expr) => self.cast_to(self.bind(scope, expr)?, Type::of(Base::Int4), Strictness::Explicit),
                None => Ok(Bound::new(Expr::Const(Value::Null), Type::of(Base::Int4))),
            }
        };
        let is_slice = subscripts.iter().any(|subscript| matches!(subscript, ast::Subscript::Slice { .. }));
        let mut arguments = vec![root];
        for subscript in subscripts {
            match subscript {
                ast::Subscript::Index { index } if is_slice => {
                    arguments.push(number(None)?);
                    arguments.push(number(Some(index))?);
                }
                ast::Subscript::Index { index } => arguments.push(number(Some(index))?),
                ast::Subscript::Slice { lower_bound, upper_bound, stride: None } => {
                    arguments.push(number(lower_bound.as_ref())?);
                    arguments.push(number(upper_bound.as_ref())?);
                }
                other => return Err(Error::unsupported(format!("'[{other}]'"))),
            }
        }
        let mut found = self.call(if is_slice { "array_slice" } else { "array_element" }, arguments)?;
        found.ty = if is_slice { ty } else { ty.element() };
        Ok(found)
    }

    /// Both as arrays of one type. Errors: their elements have none, or another one where they have to be of one type.
    fn both_arrays(&self, sign: &str, a: Bound, b: Bound) -> Result<(Bound, Bound, Type)> {
        let refused = || self.no_operator(sign, a.ty, b.ty);
        let ty = match (a.ty.base, b.ty.base) {
            (Base::Array, Base::Array) => {
                let has_one = sign == "||" || are_alike(a.ty, b.ty);
                a.ty.common(b.ty).filter(|_| has_one).ok_or_else(refused)?
            }
            (Base::Array, Base::Unknown | Base::Any) => a.ty,
            (Base::Unknown | Base::Any, Base::Array) => b.ty,
            _ => return Err(refused()),
        };
        let cast = |bound: Bound| match bound.ty == ty {
            true => Ok(bound),
            false => self.cast_to(bound, ty, Strictness::Explicit),
        };
        Ok((cast(a)?, cast(b)?, ty))
    }

    /// `||` with an array on a side. None: there is none.
    pub(super) fn concat_arrays(&self, a: &Bound, b: &Bound) -> Result<Option<Bound>> {
        let (a, b) = (a.clone(), b.clone());
        let (name, a, b, ty) = match (a.ty.base, b.ty.base) {
            (Base::Array, Base::Array | Base::Unknown) | (Base::Unknown, Base::Array) => {
                let (a, b, ty) = self.both_arrays("||", a, b)?;
                ("array_cat", a, b, ty)
            }
            (Base::Array, _) => {
                let refused = self.no_operator("||", a.ty, b.ty);
                let Some((a, b)) = self.with_element(a, b)? else { return Err(refused) };
                let ty = a.ty;
                ("array_append", a, b, ty)
            }
            (_, Base::Array) => {
                let refused = self.no_operator("||", a.ty, b.ty);
                let Some((b, a)) = self.with_element(b, a)? else { return Err(refused) };
                let ty = b.ty;
                ("array_prepend", a, b, ty)
            }
            _ => return Ok(None),
        };
        let mut found = self.call(name, vec![a, b])?;
        found.ty = ty;
        Ok(Some(found))
    }

    /// An array and a value beside its elements, both of one type. None: there is none that both have.
    fn with_element(&self, array: Bound, value: Bound) -> Result<Option<(Bound, Bound)>> {
        let element = array.ty.element();
        if element.base == Base::Any || value.ty.base == Base::Any {
            return Ok(Some((array, value)));
        }
        let Some(common) = element.common(value.ty) else { return Ok(None) };
        let array = match common.base == element.base {
            true => array,
            false => self.cast_to(array, Type::array_of(common), Strictness::Explicit)?,
        };
        let value = match value.ty.base == common.base {
            true => value,
            false => self.cast_to(value, array.ty.element(), Strictness::Explicit)?,
        };
        Ok(Some((array, value)))
    }

    /// `@>`, `<@` and `&&` of arrays. None: no side is one.
    pub(super) fn compare_arrays(&self, name: &str, a: &Bound, b: &Bound) -> Result<Option<Bound>> {
        if a.ty.base != Base::Array && b.ty.base != Base::Array {
            return Ok(None);
        }
        let (a, b, _) = self.both_arrays(name, a.clone(), b.clone())?;
        Ok(Some(match name {
            "@>" => self.call("array_contains", vec![a, b])?,
            "<@" => self.call("array_contains", vec![b, a])?,
            _ => self.call("array_overlaps", vec![a, b])?,
        }))
    }

    /// Calls of functions of arrays whose arguments have to fit. None: it is another one.
    pub(super) fn bind_array_call(&self, name: &str, arguments: &mut Vec<Bound>) -> Result<Option<Bound>> {
        let array_at = match (name, arguments.len()) {
            ("array_to_string", 2..=3)
            | ("array_append" | "array_remove" | "array_cat" | "array_positions", 2)
            | ("array_position", 2..=3)
            | ("array_replace", 3)
            | ("array_length" | "array_upper" | "array_lower" | "trim_array", 2)
            | ("cardinality" | "array_ndims" | "array_dims", 1) => 0,
            ("array_prepend", 2) => 1,
            ("array_fill", 2) => {
                let element = arguments.remove(0);
                let element = match element.ty.base {
                    Base::Unknown => self.cast_to(element, Type::TEXT, Strictness::Explicit)?,
                    _ => element,
                };
                let ty = Type::array_of(element.ty);
                let counts = self.as_array(arguments.remove(0))?;
                let mut found = self.call("array_fill", vec![element, counts])?;
                found.ty = ty;
                return Ok(Some(found));
            }
            _ => return Ok(None),
        };
        let array = arguments.remove(array_at);
        let array = match array.ty.base {
            // Of elements as what stands beside it, else of texts.
            Base::Unknown if self.dialect == Dialect::Postgres && !matches!(array.expr, Expr::Param(_)) => {
                let known = arguments.iter().map(|other| other.ty).find(|ty| ty.base != Base::Unknown);
                let ty = known.map_or(Type::array_of(Type::TEXT), Type::array_of);
                self.cast_to(array, ty, Strictness::Explicit)?
            }
            _ => array,
        };
        let mut array = self.as_array(array)?;
        let takes_elements = matches!(
            name,
            "array_append" | "array_remove" | "array_prepend" | "array_position" | "array_positions" | "array_replace"
        );
        for at in (0..arguments.len()).filter(|_| takes_elements) {
            let is_start = name == "array_position" && at == 1;
            if !is_start && !matches!(arguments[at].ty.base, Base::Unknown | Base::Array) {
                let types = [array.ty, arguments[at].ty];
                let Some((wider, value)) = self.with_element(array, arguments[at].clone())? else {
                    let what = format!("function {name}({}, {}) does not exist", types[0], types[1]);
                    return Err(Error::new(Condition::UndefinedFunction, what));
                };
                (array, arguments[at]) = (wider, value);
            }
        }
        let ty = array.ty;
        arguments.insert(array_at, array);
        if name == "array_to_string" {
            let (array, ty) = match self.is_zoned && ty.element().base == Base::TimestampTz {
                // As a clock shows them here.
                true => {
                    let texts = Type::array_of(Type::TEXT);
                    (self.cast_to(arguments.remove(array_at), texts, Strictness::Explicit)?, texts)
                }
                false => (arguments.remove(array_at), ty),
            };
            arguments.insert(array_at, array);
            let code = Bound::new(Expr::Const(Value::Int(ty.code())), Type::of(Base::Int8));
            arguments.insert(2, code);
            return self.call("array_text", std::mem::take(arguments)).map(Some);
        }
        let wanted = if name == "array_cat" { ty } else { ty.element() };
        if (takes_elements || name == "array_cat") && wanted.base != Base::Any {
            for at in 0..arguments.len() {
                let is_start = name == "array_position" && at == 2;
                if at != array_at && !is_start && arguments[at].ty != wanted {
                    let value = arguments.remove(at);
                    arguments.insert(at, self.cast_to(value, wanted, Strictness::Explicit)?);
                }
            }
        }
        let gives_array = matches!(
            name,
            "array_append" | "array_remove" | "array_prepend" | "array_replace" | "array_cat" | "trim_array"
        );
        let mut found = self.call(name, std::mem::take(arguments))?;
        if gives_array {
            found.ty = ty;
        }
        Ok(Some(found))
    }

    /// A comparison of values with each row of a query, or with any.
    pub(super) fn among(
        &self,
        values: Vec<Bound>,
        mut query: super::Query,
        comparison: Comparison,
        all: bool,
        source: String,
    ) -> Result<Expr> {
        if query.outputs.len() != values.len() {
            let what = format!("the subquery has {} columns, {} wanted", query.outputs.len(), values.len());
            return Err(Error::new(Condition::ColumnCount, what));
        }
        let mut collation = None;
        let mut wanted = Vec::with_capacity(values.len());
        for (value, output) in values.into_iter().zip(&mut query.outputs) {
            let column =
                Bound { collation: output.collation.clone(), ..Bound::new(Expr::Slot(output.slot), output.ty) };
            let (value, column) = self.unify(value, column, comparison.sign())?;
            if !matches!(column.expr, Expr::Slot(_)) {
                let slot = self.new_slot();
                let plan = std::mem::replace(&mut query.plan, crate::plan::Plan::Nothing);
                query.plan = crate::plan::Plan::Map(Box::new(plan), vec![(slot, column.expr)]);
                output.slot = slot;
            }
            collation = value.collation.or(column.collation);
            wanted.push(value.expr);
        }
        let asked = Asked::Quantified { values: wanted, comparison, all, collation };
        Ok(self.make_subquery(query, asked, source))
    }

    /// The same with each element of an array.
    pub(super) fn bind_among_elements(
        &self,
        scope: &Scope<'_>,
        left: &ast::Expr,
        array: &ast::Expr,
        comparison: Comparison,
        all: bool,
    ) -> Result<Expr> {
        let value = self.bind(scope, left)?;
        let query = self.elements_of(scope, array, value.ty)?;
        if let Some(of) = query.outputs.first().map(|output| output.ty)
            && self.dialect == Dialect::Postgres
            && value.ty.base != Base::Unknown
            && value.ty.common(of).is_none()
        {
            return Err(self.no_operator(comparison.sign(), value.ty, of));
        }
        let found = self.among(vec![value], query, comparison, all, written(self.dialect, array))?;
        // Of no array nothing is known. What the statement lists or is given stays plain, so that an index finds it.
        let mut inner = array;
        while let ast::Expr::Nested(expr) | ast::Expr::Cast { expr, .. } = inner {
            inner = expr;
        }
        if matches!(inner, ast::Expr::Value(value) if value.value == ast::Value::Null) {
            return Ok(Expr::Const(Value::Null));
        }
        if !all && matches!(inner, ast::Expr::Value(_) | ast::Expr::Array(_)) {
            return Ok(found);
        }
        let is_missing = Expr::IsNull(Box::new(self.bind(scope, array)?.expr));
        Ok(Expr::Case(vec![(is_missing, Expr::Const(Value::Null))], Box::new(found)))
    }

    /// An array as one of other elements, where the cast of an element takes more than its value. Err: as it is, for whoever casts all others.
    pub(super) fn cast_elements(
        &self,
        bound: Bound,
        to: Type,
        strictness: Strictness,
    ) -> Result<std::result::Result<Bound, Bound>> {
        let is_text = matches!(bound.ty.base, Base::Text | Base::Unknown | Base::Any);
        if self.dialect != Dialect::Postgres || to.base != Base::Array || !is_text && bound.ty.base != Base::Array {
            return Ok(Err(bound));
        }
        let of = match (is_text, &bound.expr) {
            (false, _) => bound.ty.element(),
            // Of a client's there are elements already.
            (true, Expr::Param(_)) => Type::of(Base::Any),
            (true, _) => Type::TEXT,
        };
        let is_open = !is_text && matches!(of.base, Base::Any | Base::Unknown);
        let wanted = to.element();
        let is_null = matches!(bound.expr, Expr::Const(Value::Null));
        if of == wanted || is_open || is_null || matches!(wanted.base, Base::Any | Base::Unknown) {
            return Ok(Err(bound));
        }
        let slot = self.new_slot();
        // What cannot be cast so is refused as an array.
        let Ok(element) = self.cast_to(Bound::new(Expr::Slot(slot), of), wanted, strictness) else {
            return Ok(Err(bound));
        };
        let is_plain = match &element.expr {
            Expr::Slot(_) => true,
            Expr::Cast(_, _, inner) => matches!(**inner, Expr::Slot(_)),
            _ => false,
        };
        if is_plain {
            return Ok(Err(bound));
        }
        let array = match (is_text, bound.expr) {
            (false, expr) => expr,
            (true, Expr::Const(Value::Text(text))) => {
                // One that is none is refused now.
                crate::parse_value(Dialect::Postgres, &text, to)?;
                Expr::Const(crate::array::parse_array(&text, Type::TEXT)?)
            }
            (true, expr) => Expr::Cast(Type::array_of(of), Strictness::Explicit, Box::new(expr)),
        };
        let each = Each { array, of, to: wanted, slot, element: element.expr };
        Ok(Ok(Bound { expr: Expr::Each(Box::new(each)), ty: to, collation: bound.collation }))
    }

    /// CAST.
    pub(super) fn bind_cast(&self, value: Bound, declared: &ast::DataType) -> Result<Bound> {
        let value = match self.dialect {
            Dialect::Postgres => match self.cast_to_object(value, declared)? {
                Ok(done) => return Ok(done),
                Err(value) => value,
            },
            _ => value,
        };
        let named = self.type_named(declared)?;
        if named.user.is_some() {
            return self.cast_to_named(value, &named);
        }
        let to = named.ty;
        let is_clock = to.is_moment()
            && (value.ty.is_number()
                || matches!(value.ty.base, Base::Interval | Base::Bool | Base::Time | Base::TimeTz))
            || to.is_clock() && (value.ty.is_number() || matches!(value.ty.base, Base::Date | Base::Bool))
            || to.base == Base::TimeTz && matches!(value.ty.base, Base::Timestamp | Base::Interval);
        let is_span =
            to.base == Base::Interval && (value.ty.is_number() || value.ty.is_moment() || value.ty.base == Base::Bool);
        let is_moment = value.ty.is_moment() || value.ty.is_clock() || value.ty.base == Base::Interval;
        let is_other = match to.base {
            _ if self.dialect != Dialect::Postgres => false,
            _ if to.is_coded() || value.ty.is_coded() => !super::net::casts(value.ty, to),
            _ if to.is_moment() => value.ty.is_clock(),
            Base::Interval => value.ty.base == Base::TimeTz,
            _ if to.is_number() => is_moment || matches!(value.ty.base, Base::Uuid | Base::Array | Base::Time),
            Base::Bool => {
                is_moment
                    || matches!(value.ty.base, Base::Uuid | Base::Array | Base::Decimal | Base::Double | Base::Time)
            }
            Base::Uuid => {
                is_moment || value.ty.is_number() || matches!(value.ty.base, Base::Bool | Base::Array | Base::Time)
            }
            Base::Time => {
                value.ty.is_number() || matches!(value.ty.base, Base::Date | Base::Bool | Base::Uuid | Base::Array)
            }
            _ => false,
        };
        if self.dialect == Dialect::Postgres && (is_clock || is_span || is_other) {
            let what = format!("cannot cast type {} to {to}", value.ty);
            return Err(Error::new(Condition::CannotCoerce, what));
        }
        let digits = super::exact::known_digits(&value);
        let mut found = self.cast_to(value, to, Strictness::Explicit)?;
        if self.dialect == Dialect::Mysql && to.base == Base::Int8 && digits.base == Base::Decimal {
            found.ty.length = digits.length;
        }
        Ok(found)
    }

    /// Operators that compare with regular expressions.
    pub(super) fn bind_match(
        &self,
        scope: &Scope<'_>,
        left: &ast::Expr,
        op: &BinaryOperator,
        right: &ast::Expr,
    ) -> Result<Bound> {
        let name = match op {
            BinaryOperator::PGRegexMatch | BinaryOperator::Regexp => "~",
            BinaryOperator::PGRegexIMatch => "~*",
            BinaryOperator::PGRegexNotMatch => "!~",
            BinaryOperator::PGRegexNotIMatch => "!~*",
            BinaryOperator::PGCustomBinaryOperator(parts) => parts.last().map_or("", String::as_str),
            _ => "",
        };
        let (is_negated, folds_case) = match name {
            "~" => (false, self.dialect == Dialect::Mysql),
            "~*" => (false, true),
            "!~" => (true, false),
            "!~*" => (true, true),
            "=" => {
                return self.bind(
                    scope,
                    &ast::Expr::BinaryOp {
                        left: Box::new(left.clone()),
                        op: BinaryOperator::Eq,
                        right: Box::new(right.clone()),
                    },
                );
            }
            _ => {
                let (a, b) = (self.bind(scope, left)?, self.bind(scope, right)?);
                return self.bind_document_operator(op, a, b);
            }
        };
        let (left, right) = (self.bind(scope, left)?, self.bind(scope, right)?);
        let folds_case = folds_case && !(self.dialect == Dialect::Mysql && self.tells_case(&left, &right));
        let function = if folds_case { "regexp_like_folded" } else { "regexp_like" };
        let matched = self.call(function, vec![left, right])?;
        Ok(if is_negated { not(matched.expr) } else { matched })
    }
}

/// True for arrays that compare with each other: those of one type of elements, as far as it is known.
pub(super) fn are_alike(a: Type, b: Type) -> bool {
    let is_open = |ty: Type| ty.is_vector() || matches!(ty.element().base, Base::Any | Base::Unknown);
    let are_other = a.element().base == Base::Enum && a != b;
    is_open(a) || is_open(b) || a.element().base == b.element().base && !are_other
}

/// The name of a type as it stands in a cast, without its schema.
fn name_of_type(declared: &ast::DataType) -> String {
    let name = declared.to_string().to_ascii_lowercase().replace('"', "");
    name.trim_start_matches("pg_catalog.").to_string()
}

/// True for the types by which an object of the catalog goes by its number.
pub(super) fn is_number_of_object(declared: &ast::DataType) -> bool {
    let name = name_of_type(declared);
    name.starts_with("reg")
        || matches!(name.as_str(), "oid" | "xid" | "int" | "int4" | "int8" | "integer" | "bigint" | "numeric")
}
