//! Everything that is written to the record. Each write of a memory also writes its change (I2).

use memkura_model::{Action, Context, Door, Memory, MemoryId, Origin, Timestamp, exact_hash, fingerprint, fold};
use rusqlite::{Connection, ToSql, params};

use super::Reader;
use super::columns::{STATE, json_list};
use super::reader::seals_of;
use crate::StoreError;

/// One write transaction. It reads as a [`Reader`] does, and sees what it has itself written.
#[derive(Debug)]
pub struct Writer<'a> {
    reader: Reader<'a>,
}

impl<'a> std::ops::Deref for Writer<'a> {
    type Target = Reader<'a>;

    fn deref(&self) -> &Reader<'a> {
        &self.reader
    }
}

impl<'a> Writer<'a> {
    pub(super) const fn new(connection: &'a Connection) -> Self {
        Self { reader: Reader::new(connection) }
    }

    /// The context called `name`, made with `origin` if there is none.
    ///
    /// # Errors
    /// When the record cannot be written.
    pub fn context_or_new(&self, name: &str, origin: Origin, now: Timestamp) -> Result<Context, StoreError> {
        if let Some(context) = self.context(name)? {
            return Ok(context);
        }
        let mut statement =
            self.connection.prepare_cached("INSERT INTO context (name, origin, created_at) VALUES (?1, ?2, ?3)")?;
        let number = statement.insert(params![name, origin.as_str(), now.to_string()])?;
        Ok(Context { number, name: name.to_owned(), origin })
    }

    /// Writes a new memory and returns the number of its row (`memory.row` is not looked at).
    ///
    /// # Errors
    /// When the record cannot be written.
    pub fn insert(&self, memory: &Memory, door: Door) -> Result<i64, StoreError> {
        self.insert_as(memory, Action::Remember, door)
    }

    /// As [`Writer::insert`], of a memory that `action` brought to this state in the store that it comes from.
    ///
    /// # Errors
    /// When the record cannot be written.
    pub fn insert_as(&self, memory: &Memory, action: Action, door: Door) -> Result<i64, StoreError> {
        let sql = format!("INSERT INTO memory ({STATE}) VALUES ({MARKS})");
        let mut statement = self.connection.prepare_cached(&sql)?;
        with_columns(None, memory, action, door, |columns| statement.execute(columns))?;
        let row = self.connection.last_insert_rowid();
        self.log(memory.context, row, memory.memory_id)?;
        Ok(row)
    }

    /// Writes an earlier state of the row `memory.row`, which another one replaced at `replaced_at`.
    ///
    /// # Errors
    /// When the record cannot be written, or has this version of the row.
    pub fn insert_revision(
        &self,
        memory: &Memory,
        action: Action,
        door: Door,
        replaced_at: Timestamp,
    ) -> Result<(), StoreError> {
        let sql = format!("INSERT INTO revision ({STATE}, replaced_at) VALUES ({MARKS}, ?36)");
        let mut statement = self.connection.prepare_cached(&sql)?;
        let replaced_at = replaced_at.to_string();
        with_columns(Some(memory.row), memory, action, door, |columns| {
            statement.execute(&*[columns, &[&replaced_at]].concat())
        })?;
        Ok(())
    }

    /// Keeps the row's present state as a revision and writes `memory` over it.
    ///
    /// # Errors
    /// When the record cannot be written.
    pub fn replace(&self, memory: &Memory, action: Action, door: Door) -> Result<(), StoreError> {
        let keep = format!("INSERT INTO revision ({STATE}, replaced_at) SELECT {STATE}, ?2 FROM memory WHERE row = ?1");
        self.connection.prepare_cached(&keep)?.execute(params![memory.row, memory.updated_at.to_string()])?;
        // An update in place: replacing the row would give it a new number.
        // The state that is replaced must be the one that was kept.
        let put = format!("UPDATE memory SET ({STATE}) = ({MARKS}) WHERE row = ?1 AND version = ?30 - 1");
        let mut put = self.connection.prepare_cached(&put)?;
        if with_columns(Some(memory.row), memory, action, door, |columns| put.execute(columns))? != 1 {
            return Err(StoreError::Damaged { table: "memory", column: "version", row: memory.row });
        }
        self.log(memory.context, memory.row, memory.memory_id)
    }

    /// Erases a memory with its revisions and vectors; that it was purged is all that stays.
    ///
    /// # Errors
    /// When the record cannot be written.
    pub fn purge(&self, memory: &Memory, door: Door, now: Timestamp) -> Result<(), StoreError> {
        let id = memory.memory_id.to_string();
        let mark = "INSERT OR REPLACE INTO purged (memory_id, context, purged_at, door) VALUES (?1, ?2, ?3, ?4)";
        self.connection.execute(mark, params![id, memory.context, now.to_string(), door.source_type().as_str()])?;
        for table in ["embedding", "revision", "memory"] {
            self.connection.execute(&format!("DELETE FROM {table} WHERE row = ?1"), [memory.row])?;
        }
        self.log(memory.context, memory.row, memory.memory_id)
    }

    /// Notes that a write with this idempotency word made `id`.
    ///
    /// # Errors
    /// When the record cannot be written.
    pub fn note_idempotency(&self, context: &Context, word: &str, id: MemoryId) -> Result<(), StoreError> {
        let mut statement = self
            .connection
            .prepare_cached("INSERT INTO idempotency (context, word_hash, memory_id) VALUES (?1, ?2, ?3)")?;
        statement.execute(params![context.number, exact_hash(word).to_be_bytes(), id.to_string()])?;
        Ok(())
    }

    /// Drops all but the newest `kept` changes from the log. Whoever has not followed them must build its index again.
    ///
    /// # Errors
    /// When the record cannot be written.
    pub fn trim_changes(&self, kept: i64) -> Result<(), StoreError> {
        let sql = "DELETE FROM change WHERE number <= (SELECT max(number) FROM change) - ?1";
        self.connection.prepare_cached(sql)?.execute([kept])?;
        Ok(())
    }

    /// Notes that an index of a context is about to be sealed under `name`, in the place of `current`: see [`Reader::seals`].
    ///
    /// # Errors
    /// When the record cannot be written.
    pub fn note_seal(&self, context: &Context, name: &str, current: Option<&str>) -> Result<(), StoreError> {
        // Until the new one is in its place, and when it never comes there, the one that is goes on being known.
        let known = self.seals(context)?.into_iter().find(|known| Some(known.as_str()) == current);
        let names = std::iter::once(name).chain(known.as_deref()).collect::<Vec<_>>().join(" ");
        let sql = "INSERT INTO setting (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = ?2";
        self.connection.prepare_cached(sql)?.execute([seals_of(context), names])?;
        Ok(())
    }

    /// Lets an idempotency word be used anew.
    ///
    /// # Errors
    /// When the record cannot be written.
    pub fn forget_idempotency(&self, context: &Context, word: &str) -> Result<(), StoreError> {
        let mut statement =
            self.connection.prepare_cached("DELETE FROM idempotency WHERE context = ?1 AND word_hash = ?2")?;
        statement.execute(params![context.number, exact_hash(word).to_be_bytes()])?;
        Ok(())
    }

    /// Tells the indexes to look at a row again.
    pub(super) fn log(&self, context: i64, row: i64, id: MemoryId) -> Result<(), StoreError> {
        let mut statement =
            self.connection.prepare_cached("INSERT INTO change (context, row, memory_id) VALUES (?1, ?2, ?3)")?;
        statement.execute(params![context, row, id.to_string()])?;
        Ok(())
    }
}

/// Places for the columns of [`STATE`].
const MARKS: &str = "?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, \
     ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32, ?33, ?34, ?35";

/// Lets `work` have the values of [`STATE`], in its order.
fn with_columns<T>(
    row: Option<i64>,
    memory: &Memory,
    action: Action,
    door: Door,
    work: impl FnOnce(&[&dyn ToSql]) -> T,
) -> T {
    let fingerprint = fingerprint(&memory.summary, memory.content.as_deref()).to_be_bytes();
    let time = |instant: Option<Timestamp>| instant.map(|instant| instant.to_string());
    work(params![
        row,
        memory.memory_id.to_string(),
        memory.context,
        memory.kind,
        memory.scope,
        memory.key,
        memory.key.as_deref().map(fold),
        memory.summary,
        memory.content,
        json_list(&memory.tags),
        memory.metadata.as_str(),
        memory.delivery_mode.as_str(),
        memory.trigger.as_ref().map(memkura_model::Metadata::as_str),
        memory.importance,
        memory.confidence,
        memory.proof,
        memory.status.as_str(),
        memory.source_type.as_str(),
        memory.trust_tier.as_str(),
        json_list(&memory.derived_from),
        memory.superseded_by.map(|id| id.to_string()),
        memory.session,
        time(memory.event_time),
        time(memory.expires_at),
        memory.created_at.to_string(),
        memory.updated_at.to_string(),
        time(memory.last_seen),
        memory.access_count,
        memory.decay_rate,
        memory.version,
        memory.text_version,
        memory.embedded,
        fingerprint,
        action.as_str(),
        door.source_type().as_str(),
    ])
}
