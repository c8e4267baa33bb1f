//! Numbered, permanent steps of the schema. A released step is never edited.
//!
//! All steps that a store lacks are one transaction. Before the first of them a copy of the store is made beside the record,
//! as whole and durable as a backup is, and it stays until they are committed. Whoever is killed on the way leaves the old
//! store, which the next one brings to the newest version, or the new one with a copy, which the next one removes.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use memkura_model::Timestamp;
use rusqlite::{Connection, Row, TransactionBehavior, params};

use super::backup::copy_record;
use super::connection::{Options, Place, connect, private_file, sync_folder};
use super::guard::Header;
use super::leavings;
use super::log::beside;
use crate::StoreError;

/// Marks our databases in SQLite's header: "mkur".
const APPLICATION_ID: i64 = 0x6d6b_7572;

/// Steps of a schema, the first one first; a store's version is how many of them it has.
pub type Steps = &'static [&'static str];

/// The steps of this build.
pub const STEPS: Steps = &[include_str!("schema/0001_record.sql")];

/// What follows the record's name in that of the copy, and of a copy that is not complete yet.
const COPY: &str = ".old";
const INCOMPLETE: &str = ".old.new";

/// Refuses a file of another program, or of a newer release, by its header alone: nothing is touched.
pub fn refuse_foreign(header: Header, steps: Steps) -> Result<(), StoreError> {
    let Header { application_id, user_version, .. } = header;
    // A database that somebody has just begun to make says neither.
    match application_id {
        0 => Ok(()),
        ours if i64::from(ours) == APPLICATION_ID => refuse_unknown(i64::from(user_version), steps),
        other => Err(not_ours(i64::from(other))),
    }
}

fn refuse_unknown(found: i64, steps: Steps) -> Result<(), StoreError> {
    let known = steps.len() as i64;
    match found {
        ..0 => Err(StoreError::NotAStore(format!("the database has schema version {found}, which no release makes"))),
        _ if found > known => Err(StoreError::SchemaTooNew { found, known }),
        _ => Ok(()),
    }
}

fn not_ours(application: i64) -> StoreError {
    StoreError::NotAStore(format!("the database has application id {application}, not memkura's"))
}

/// Brings the schema of the record at `place` to the newest version. Writes nothing when it is there already.
pub fn migrate(
    connection: &mut Connection,
    place: &Place,
    options: &Options,
    steps: Steps,
    now: Timestamp,
) -> Result<(), StoreError> {
    let known = steps.len() as i64;
    if see_ours(connection, steps)? == known {
        // What cannot be removed now is the next time.
        let _ = remove_copies(place);
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have done it while we waited for the lock.
    let found = checked_version(&transaction, steps)?;
    if (1..known).contains(&found)
        && let Place::File(record) = place
    {
        // From now on nobody else writes, so that the copy lacks nothing.
        keep_copy(record, options)?;
    }
    for step in &steps[found as usize..] {
        transaction.execute_batch(step)?;
    }
    if found == 0 {
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        let mut settings = transaction.prepare("INSERT INTO setting (name, value) VALUES (?1, ?2)")?;
        settings.execute(params!["store_id", random_name::<16>()?])?;
        settings.execute(params!["created_at", now.to_string()])?;
    }
    transaction.pragma_update(None, "user_version", known)?;
    transaction.commit()?;
    if found > 0 {
        let _ = remove_copies(place);
    }
    Ok(())
}

/// Refuses a database that is not ours, as [`checked_version`] does, in one read transaction: another process may be making
/// the store at this moment.
pub fn see_ours(connection: &mut Connection, steps: Steps) -> Result<i64, StoreError> {
    checked_version(&*connection.transaction()?, steps)
}

/// Puts a copy of the record, whole, durable and for its owner alone, beside it. One that is there already is of a
/// migration that was cut short, and stays until this one takes its place: the record has been written to since, or has been
/// damaged.
fn keep_copy(record: &Path, options: &Options) -> Result<(), StoreError> {
    let (incomplete, copy) = (beside(record, INCOMPLETE), beside(record, COPY));
    let failed = |error| StoreError::io(format!("copying the record to {}", copy.display()), error);
    leavings::remove(&incomplete)?;
    let file = private_file().create_new(true).open(&incomplete).map_err(failed)?;
    // The connection that is about to change the record cannot do this within its transaction; another one sees the record
    // as it was committed.
    let reader = connect(&Place::File(record.to_owned()), options)?;
    let published = copy_record(&reader, &incomplete)
        .and_then(|()| file.sync_all().map_err(failed))
        .and_then(|()| fs::rename(&incomplete, &copy).map_err(failed))
        .and_then(|()| sync_folder(record.parent().unwrap_or(Path::new(""))));
    if published.is_err() {
        // What cannot be removed now is, when the migration is tried again.
        let _ = fs::remove_file(&incomplete);
    }
    published
}

/// Removes what a migration left beside a record that is of the newest version.
///
/// # Errors
/// When it cannot be removed.
pub fn remove_copies(place: &Place) -> Result<(), StoreError> {
    let Place::File(record) = place else { return Ok(()) };
    [COPY, INCOMPLETE].into_iter().try_for_each(|name| leavings::remove(&beside(record, name)))
}

/// Refuses a database that is not of the newest version, where it cannot be brought there.
pub fn see_current(connection: &Connection, steps: Steps) -> Result<(), StoreError> {
    if checked_version(connection, steps)? == steps.len() as i64 { Ok(()) } else { Err(StoreError::ReadOnly) }
}

/// The version of a database that is ours, as it should be, and not newer than this build.
pub fn checked_version(connection: &Connection, steps: Steps) -> Result<i64, StoreError> {
    let application: i64 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let found: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let fresh = application == 0 && found == 0 && tables == 0;
    if !fresh && application != APPLICATION_ID {
        return Err(not_ours(application));
    }
    refuse_unknown(found, steps)?;
    refuse_tampered(connection, &steps[..found as usize])?;
    Ok(found)
}

/// Refuses a database whose schema is not to the letter what `steps` make: a file may come from a
/// stranger, and no trigger, view or index of theirs may run. Reading the schema runs nothing.
fn refuse_tampered(connection: &Connection, steps: &[&str]) -> Result<(), StoreError> {
    let own = Connection::open_in_memory()?;
    for step in steps {
        own.execute_batch(step)?;
    }
    let (expected, found) = (objects(&own)?, objects(connection)?);
    match expected.symmetric_difference(&found).next() {
        None => Ok(()),
        Some(Object { kind, name, .. }) => Err(StoreError::Tampered(format!("{kind} {name:?}"))),
    }
}

/// Something that a schema defines.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Object {
    kind: String,
    name: String,
    table: String,
    sql: Option<String>,
    /// How many rows say the same: SQLite takes a second one of them for a correction of the first.
    times: i64,
}

/// What `ANALYZE` leaves behind is data, and may come at any time. A name that begins like this is no sign of it: SQLite runs
/// what a row says, whatever it is called.
const STATISTICS: [(&str, &str); 2] = [
    ("sqlite_stat1", "CREATE TABLE sqlite_stat1(tbl,idx,stat)"),
    ("sqlite_stat4", "CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)"),
];

impl Object {
    fn is_statistics(&self) -> bool {
        let is_made_by = |(name, sql)| self.name == name && self.table == name && self.sql.as_deref() == Some(sql);
        self.kind == "table" && self.times == 1 && STATISTICS.into_iter().any(is_made_by)
    }
}

fn objects(connection: &Connection) -> Result<BTreeSet<Object>, StoreError> {
    let schema = "SELECT type, name, tbl_name, sql, count(*) FROM sqlite_schema GROUP BY 1, 2, 3, 4";
    let mut schema = connection.prepare(schema)?;
    let mut rows = schema.query([])?;
    let mut objects = BTreeSet::new();
    while let Some(row) = rows.next()? {
        // SQLite writes nothing but text there, and reads bytes as if they were text.
        objects.insert(object(row).map_err(|_| StoreError::Tampered("schema".to_owned()))?);
    }
    objects.retain(|object| !object.is_statistics());
    Ok(objects)
}

fn object(row: &Row<'_>) -> rusqlite::Result<Object> {
    Ok(Object { kind: row.get(0)?, name: row.get(1)?, table: row.get(2)?, sql: row.get(3)?, times: row.get(4)? })
}

/// `N` random bytes from the system, as hex: a name that nothing else has.
pub fn random_name<const N: usize>() -> Result<String, StoreError> {
    use std::fmt::Write as _;

    let mut bytes = [0_u8; N];
    getrandom::fill(&mut bytes)
        .map_err(|error| StoreError::io("asking the system for random bytes", std::io::Error::other(error)))?;
    Ok(bytes.iter().fold(String::new(), |mut hex, byte| {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    }))
}

#[cfg(test)]
mod tests;
