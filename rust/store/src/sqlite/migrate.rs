//! Numbered, permanent steps of the schema. A released step is never edited.

use std::collections::BTreeSet;

use memkura_model::Timestamp;
use rusqlite::{Connection, TransactionBehavior, params};

use super::guard::Header;
use crate::StoreError;

/// Marks our databases in SQLite's header: "mkur".
const APPLICATION_ID: i64 = 0x6d6b_7572;

const STEPS: &[&str] = &[include_str!("schema/0001_record.sql")];

/// Refuses a file of another program, or of a newer release, by its header alone: nothing is touched.
pub fn refuse_foreign(header: Header) -> Result<(), StoreError> {
    let Header { application_id, user_version, .. } = header;
    // A database that somebody has just begun to make says neither.
    match application_id {
        0 => Ok(()),
        ours if i64::from(ours) == APPLICATION_ID => refuse_unknown(i64::from(user_version)),
        other => Err(not_ours(i64::from(other))),
    }
}

fn refuse_unknown(found: i64) -> Result<(), StoreError> {
    let known = STEPS.len() as i64;
    match found {
        ..0 => Err(StoreError::NotAStore(format!("the database has schema version {found}, which no release makes"))),
        _ if found > known => Err(StoreError::SchemaTooNew { found, known }),
        _ => Ok(()),
    }
}

fn not_ours(application: i64) -> StoreError {
    StoreError::NotAStore(format!("the database has application id {application}, not memkura's"))
}

/// Brings the schema to the newest version. Writes nothing when it is there already.
pub fn migrate(connection: &mut Connection, now: Timestamp) -> Result<(), StoreError> {
    let known = STEPS.len() as i64;
    if see_ours(connection)? == known {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have done it while we waited for the lock.
    let found = checked_version(&transaction)?;
    for step in &STEPS[found as usize..] {
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
    Ok(())
}

/// Refuses a database that is not ours, as [`checked_version`] does, in one read transaction: another process may be making
/// the store at this moment.
pub fn see_ours(connection: &mut Connection) -> Result<i64, StoreError> {
    checked_version(&*connection.transaction()?)
}

/// Refuses a database that is not of the newest version, where it cannot be brought there.
pub fn see_current(connection: &Connection) -> Result<(), StoreError> {
    if checked_version(connection)? == STEPS.len() as i64 { Ok(()) } else { Err(StoreError::ReadOnly) }
}

/// The version of a database that is ours, as it should be, and not newer than this build.
pub fn checked_version(connection: &Connection) -> Result<i64, StoreError> {
    let application: i64 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let found: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let fresh = application == 0 && found == 0 && tables == 0;
    if !fresh && application != APPLICATION_ID {
        return Err(not_ours(application));
    }
    refuse_unknown(found)?;
    refuse_tampered(connection, found)?;
    Ok(found)
}

/// Refuses a database whose schema is not to the letter what the steps up to `version` make: a file may come from a
/// stranger, and no trigger, view or index of theirs may run. Reading the schema runs nothing.
fn refuse_tampered(connection: &Connection, version: i64) -> Result<(), StoreError> {
    let own = Connection::open_in_memory()?;
    for step in &STEPS[..version as usize] {
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
    sql: Option<String>,
}

fn objects(connection: &Connection) -> Result<BTreeSet<Object>, StoreError> {
    // Statistics that `ANALYZE` leaves behind are data.
    let schema = "SELECT type, name, sql FROM sqlite_schema WHERE name NOT GLOB 'sqlite_stat*'";
    let mut schema = connection.prepare(schema)?;
    let objects = schema.query_map([], |row| Ok(Object { kind: row.get(0)?, name: row.get(1)?, sql: row.get(2)? }))?;
    Ok(objects.collect::<Result<_, _>>()?)
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
