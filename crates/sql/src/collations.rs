//! Collations by their names, also by those that PostgreSQL has them under.

use crate::dialect::Dialect;
use database::Database;
use std::sync::Arc;
use tuple::Collation;

/// What PostgreSQL's names of the collations of ICU end with.
const OF_ICU: &str = "-x-icu";

/// The number of the collation that text has without any.
const USUAL: i64 = 100;
/// Numbers of collations of ICU begin here.
const FIRST_OF_ICU: i64 = 12_000;
/// Collations that are there from the start have numbers below this one.
const BUILT_IN: u32 = 400;

/// Languages that sort as the root collation says.
const LIKE_ROOT: [&str; 8] = ["und", "de", "en", "fr", "it", "nl", "pt", "ru"];

/// The collation of a name, as it is written or in small letters. `sv-x-icu` of PostgreSQL is the one of its language that tells letters, accents and case.
pub(crate) fn find(database: &Database, dialect: Dialect, name: &str) -> Option<Arc<Collation>> {
    let by_name = |name: &str| database.catalog.collation_by_name(name);
    by_name(name).or_else(|| by_name(&name.to_lowercase())).or_else(|| {
        let language = name.strip_suffix(OF_ICU).filter(|_| dialect == Dialect::Postgres)?;
        let language = language.split('-').next()?;
        match LIKE_ROOT.contains(&language) {
            true => by_name("unicode"),
            false => by_name(&format!("unicode_{language}_s3")),
        }
    })
}

/// The name that PostgreSQL has for a collation, the other way round. None: it has none.
fn name_in_postgres(collation: &Collation) -> Option<String> {
    let language = match collation.name() {
        "unicode" => "und",
        name => name.strip_prefix("unicode_")?.strip_suffix("_s3").filter(|language| !language.contains('_'))?,
    };
    Some(format!("{language}{OF_ICU}"))
}

/// The number of a collation in PostgreSQL's catalog; of those that it has no name for that of the usual one.
pub(crate) fn number_in_postgres(collation: Option<&Collation>) -> i64 {
    let named = collation.filter(|collation| name_in_postgres(collation).is_some());
    named.map_or(USUAL, |collation| FIRST_OF_ICU + i64::from(collation.id()))
}

/// `pg_collation`.
pub(crate) fn rows(database: &Database) -> Vec<(i64, String, &'static str)> {
    let mut rows =
        vec![(USUAL, "default".to_string(), "d"), (950, "C".to_string(), "c"), (951, "POSIX".to_string(), "c")];
    for collation in (0..BUILT_IN).filter_map(|id| database.catalog.collation(id)) {
        if let Some(name) = name_in_postgres(&collation) {
            rows.push((number_in_postgres(Some(&collation)), name, "i"));
        }
    }
    rows
}
