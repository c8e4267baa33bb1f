//! Everything that is read from the record.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use memkura_model::{Action, Change, Context, Memory, MemoryId, Origin, Timestamp, exact_hash};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::columns::{MEMORY, MEMORY_COUNT, memory_from, named, parsed, time};
use super::embedding::each_float;
use crate::StoreError;

/// One read transaction.
#[derive(Debug)]
pub struct Reader<'a> {
    pub(super) connection: &'a Connection,
}

/// One state in the history of a memory.
#[derive(Debug, Clone, PartialEq)]
pub struct Revision {
    /// The memory as it was.
    pub memory: Memory,
    /// What brought it to this state.
    pub action: String,
    /// The door that the change came through.
    pub door: String,
    /// When the next state replaced it; `None` for the current one.
    pub replaced_at: Option<Timestamp>,
}

/// What the record holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Memories in use.
    pub memories: i64,
    /// Memories out of use, kept for their history.
    pub retired: i64,
    /// Memories in use without a vector.
    pub unembedded: i64,
    /// Memories that were in use until they expired.
    pub expired: i64,
    /// Earlier states.
    pub revisions: i64,
}

impl<'a> Reader<'a> {
    pub(super) const fn new(connection: &'a Connection) -> Self {
        Self { connection }
    }

    /// What the store says of itself under `name`, such as `store_id`.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub fn setting(&self, name: &str) -> Result<Option<String>, StoreError> {
        let mut statement = self.connection.prepare_cached("SELECT value FROM setting WHERE name = ?1")?;
        Ok(statement.query_row([name], |row| row.get(0)).optional()?)
    }

    /// The number of the newest change; 0 in a new store.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub fn last_change(&self) -> Result<i64, StoreError> {
        let mut statement = self.connection.prepare_cached("SELECT coalesce(max(number), 0) FROM change")?;
        Ok(statement.query_row([], |row| row.get(0))?)
    }

    /// Whether no change after number `after` has been dropped from the log.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub fn has_changes_since(&self, after: i64) -> Result<bool, StoreError> {
        let mut statement = self.connection.prepare_cached("SELECT coalesce(min(number), 1) FROM change")?;
        let oldest: i64 = statement.query_row([], |row| row.get(0))?;
        Ok(oldest <= after + 1)
    }

    /// Whether change `number` is in the log.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub fn has_change(&self, number: i64) -> Result<bool, StoreError> {
        Ok(self.connection.prepare_cached("SELECT 1 FROM change WHERE number = ?1")?.exists([number])?)
    }

    /// The names of the sealed indexes of a context that this record knows: the last, and the one before. An older copy of
    /// the record that was put back does not know those that were made since, whatever was written to it.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub fn seals(&self, context: &Context) -> Result<Vec<String>, StoreError> {
        let known = self.setting(&seals_of(context))?.unwrap_or_default();
        Ok(known.split_whitespace().map(str::to_owned).collect())
    }

    /// The changes after number `after`, oldest first.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub fn changes_after(&self, after: i64) -> Result<Vec<Change>, StoreError> {
        let mut statement = self
            .connection
            .prepare_cached("SELECT number, context, row, memory_id FROM change WHERE number > ?1 ORDER BY number")?;
        let changes = statement.query_map([after], |row| {
            Ok(Change { number: row.get(0)?, context: row.get(1)?, row: row.get(2)?, memory_id: parsed(row, 3)? })
        })?;
        Ok(changes.collect::<Result<_, _>>()?)
    }

    /// The rows of a context that changed after change number `after`.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub fn rows_changed(&self, context: &Context, after: i64) -> Result<BTreeSet<i64>, StoreError> {
        let mut statement =
            self.connection.prepare_cached("SELECT row FROM change WHERE number > ?1 AND context = ?2")?;
        let rows = statement.query_map([after, context.number], |row| row.get(0))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The context called `name`.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub fn context(&self, name: &str) -> Result<Option<Context>, StoreError> {
        let mut statement =
            self.connection.prepare_cached("SELECT number, name, origin FROM context WHERE name = ?1")?;
        Ok(statement.query_row([name], context_from).optional()?)
    }

    /// The context with this number.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub fn context_numbered(&self, number: i64) -> Result<Option<Context>, StoreError> {
        let mut statement =
            self.connection.prepare_cached("SELECT number, name, origin FROM context WHERE number = ?1")?;
        Ok(statement.query_row([number], context_from).optional()?)
    }

    /// Every context, by name.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub fn contexts(&self) -> Result<Vec<Context>, StoreError> {
        let mut statement = self.connection.prepare_cached("SELECT number, name, origin FROM context ORDER BY name")?;
        Ok(statement.query_map([], context_from)?.collect::<Result<_, _>>()?)
    }

    /// The memory with this id in this context, whatever its status.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub fn by_id(&self, context: &Context, id: MemoryId) -> Result<Option<Memory>, StoreError> {
        let sql = format!("SELECT {MEMORY} FROM memory WHERE memory_id = ?1 AND context = ?2");
        self.one(context, &sql, params![id.to_string(), context.number])
    }

    /// The memory that a folded key names in this context and scope.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub fn by_key(&self, context: &Context, scope: &str, key_folded: &str) -> Result<Option<Memory>, StoreError> {
        let sql = format!(
            "SELECT {MEMORY} FROM memory WHERE context = ?1 AND scope = ?2 AND key_folded = ?3 AND key IS NOT NULL AND status <> 'retired'"
        );
        self.one(context, &sql, params![context.number, scope, key_folded])
    }

    /// The memories in use that say the same in the same words, the newest `limit` of them, newest first.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub fn by_fingerprint(
        &self,
        context: &Context,
        fingerprint: u128,
        limit: usize,
    ) -> Result<Vec<Memory>, StoreError> {
        let sql = format!(
            "SELECT {MEMORY} FROM memory WHERE context = ?1 AND fingerprint = ?2 AND status IN ('active', 'stale') ORDER BY row DESC LIMIT ?3"
        );
        self.many(context, &sql, params![context.number, fingerprint.to_be_bytes(), limit as i64])
    }

    /// The rows with these numbers that are there, in the given order.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub fn rows(&self, context: &Context, rows: &[i64]) -> Result<Vec<Memory>, StoreError> {
        let sql = format!("SELECT {MEMORY} FROM memory WHERE row = ?1 AND context = ?2");
        let mut statement = self.connection.prepare_cached(&sql)?;
        let name = Arc::from(context.name.as_str());
        let found = rows.iter().filter_map(|row| {
            statement.query_row(params![row, context.number], |row| memory_from(row, &name)).optional().transpose()
        });
        Ok(found.collect::<Result<_, _>>()?)
    }

    /// Every row of a context that is in use or was superseded, in the order of writing, with the vectors of its present text
    /// by one embedder.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub fn indexed(
        &self,
        context: &Context,
        embedder: Option<i64>,
        mut each: impl FnMut(&Memory, Option<&[f32]>),
    ) -> Result<(), StoreError> {
        let vectors = "(SELECT vectors FROM embedding WHERE embedder = ?2 AND row = memory.row AND \
             text_version = memory.text_version)";
        let name = Arc::from(context.name.as_str());
        let mut kept = Vec::new();
        self.each_indexed(&format!("{MEMORY}, {vectors}"), params![context.number, embedder], |row| {
            let blob = row.get_ref(MEMORY_COUNT)?.as_blob_or_null()?;
            kept.clear();
            kept.extend(blob.into_iter().flat_map(each_float));
            each(&memory_from(row, &name)?, blob.map(|_| &*kept));
            Ok(ControlFlow::Continue(()))
        })
    }

    /// As [`Reader::indexed`], with what brought each row to its present state, until `each` has had enough.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub fn present(
        &self,
        context: &Context,
        mut each: impl FnMut(Revision) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let name = Arc::from(context.name.as_str());
        self.each_indexed(&format!("{MEMORY}, last_action, last_door, NULL"), [context.number], |row| {
            Ok(each(revision_from(row, &name)?))
        })
    }

    /// Reads `columns` of every row whose context is the first of `values` and that a search can find.
    fn each_indexed(
        &self,
        columns: &str,
        values: impl rusqlite::Params,
        mut each: impl FnMut(&Row<'_>) -> rusqlite::Result<ControlFlow<()>>,
    ) -> Result<(), StoreError> {
        let sql = format!(
            "SELECT {columns} FROM memory WHERE context = ?1 AND (status <> 'retired' OR superseded_by IS NOT NULL) ORDER BY row"
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        let mut rows = statement.query(values)?;
        while let Some(row) = rows.next()? {
            if each(row)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// The number of the context, whichever it is, that has the memory with this id, or had it until it was purged.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub fn context_of(&self, id: MemoryId) -> Result<Option<i64>, StoreError> {
        let sql = "SELECT context FROM memory WHERE memory_id = ?1 \
             UNION ALL SELECT context FROM purged WHERE memory_id = ?1 LIMIT 1";
        let mut statement = self.connection.prepare_cached(sql)?;
        Ok(statement.query_row([id.to_string()], |row| row.get(0)).optional()?)
    }

    /// Every row of a context, retired ones included, in the order of writing.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub fn every(&self, context: &Context) -> Result<Vec<Memory>, StoreError> {
        self.many(context, &format!("SELECT {MEMORY} FROM memory WHERE context = ?1 ORDER BY row"), [context.number])
    }

    /// Up to `limit` rows of a context, after row `after`, that nothing brings up any more: their last change was to forget
    /// them, or they have expired at `now`.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub fn forgotten_or_expired(
        &self,
        context: &Context,
        after: i64,
        limit: usize,
        now: Timestamp,
    ) -> Result<Vec<Memory>, StoreError> {
        let sql = format!(
            "SELECT {MEMORY} FROM memory WHERE context = ?1 AND row > ?2 \
             AND (status = 'retired' AND last_action = ?3 OR expires_at <= ?4) ORDER BY row LIMIT ?5"
        );
        let forget = Action::Forget.as_str();
        self.many(context, &sql, params![context.number, after, forget, now.to_string(), limit as i64])
    }

    /// Every row of a context in the state that it had at `at`.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub fn as_of(&self, context: &Context, at: Timestamp) -> Result<Vec<Memory>, StoreError> {
        let sql = format!(
            "SELECT {MEMORY} FROM memory WHERE context = ?1 AND updated_at <= ?2 \
             UNION ALL SELECT {MEMORY} FROM revision WHERE context = ?1 AND updated_at <= ?2 AND replaced_at > ?2 ORDER BY row"
        );
        self.many(context, &sql, params![context.number, at.to_string()])
    }

    /// The states of the memory at a row, oldest first.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub fn history(&self, context: &Context, row: i64) -> Result<Vec<Revision>, StoreError> {
        let sql = format!(
            "SELECT {MEMORY}, last_action, last_door, replaced_at FROM revision WHERE row = ?1 AND context = ?2 \
             UNION ALL SELECT {MEMORY}, last_action, last_door, NULL FROM memory WHERE row = ?1 AND context = ?2 ORDER BY version"
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        let name = Arc::from(context.name.as_str());
        let revisions = statement.query_map(params![row, context.number], |row| revision_from(row, &name))?;
        Ok(revisions.collect::<Result<_, _>>()?)
    }

    /// When, and through which door, the memory with this id was purged from this context.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub fn purged(&self, context: &Context, id: MemoryId) -> Result<Option<(Timestamp, String)>, StoreError> {
        let mut statement = self
            .connection
            .prepare_cached("SELECT purged_at, door FROM purged WHERE memory_id = ?1 AND context = ?2")?;
        Ok(statement
            .query_row(params![id.to_string(), context.number], |row| Ok((time(row, 0)?, row.get(1)?)))
            .optional()?)
    }

    /// The memory that an earlier write with this idempotency word made.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub fn by_idempotency(&self, context: &Context, word: &str) -> Result<Option<MemoryId>, StoreError> {
        let mut statement = self
            .connection
            .prepare_cached("SELECT memory_id FROM idempotency WHERE context = ?1 AND word_hash = ?2")?;
        Ok(statement
            .query_row(params![context.number, exact_hash(word).to_be_bytes()], |row| parsed(row, 0))
            .optional()?)
    }

    /// What the record holds at `now`, in one context or in all.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub fn totals(&self, context: Option<&Context>, now: Timestamp) -> Result<Totals, StoreError> {
        let number = context.map(|context| context.number);
        // Instants are written in one width, so that their texts compare as they do.
        let memories = "SELECT count(*) FILTER (WHERE in_use), count(*) FILTER (WHERE status = 'retired'), \
             count(*) FILTER (WHERE in_use AND embedded = 0), \
             count(*) FILTER (WHERE status <> 'retired' AND expires_at <= ?2) \
             FROM (SELECT *, status IN ('active', 'stale') AND (expires_at IS NULL OR expires_at > ?2) AS in_use \
                   FROM memory WHERE ?1 IS NULL OR context = ?1)";
        let totals = self.connection.query_row(memories, params![number, now.to_string()], |row| {
            Ok(Totals {
                memories: row.get(0)?,
                retired: row.get(1)?,
                unembedded: row.get(2)?,
                expired: row.get(3)?,
                revisions: 0,
            })
        })?;
        let revisions = "SELECT count(*) FROM revision WHERE ?1 IS NULL OR context = ?1";
        Ok(Totals { revisions: self.connection.query_row(revisions, [number], |row| row.get(0))?, ..totals })
    }

    fn one(&self, context: &Context, sql: &str, values: impl rusqlite::Params) -> Result<Option<Memory>, StoreError> {
        let name = Arc::from(context.name.as_str());
        Ok(self.connection.prepare_cached(sql)?.query_row(values, |row| memory_from(row, &name)).optional()?)
    }

    fn many(&self, context: &Context, sql: &str, values: impl rusqlite::Params) -> Result<Vec<Memory>, StoreError> {
        let name = Arc::from(context.name.as_str());
        Ok(self
            .connection
            .prepare_cached(sql)?
            .query_map(values, |row| memory_from(row, &name))?
            .collect::<Result<_, _>>()?)
    }
}

/// The state in a row that was read with [`MEMORY`], the action and the door that brought it about, and its end.
fn revision_from(row: &Row<'_>, context_id: &Arc<str>) -> rusqlite::Result<Revision> {
    let is_replaced = row.get_ref(MEMORY_COUNT + 2)?.as_str_or_null()?.is_some();
    Ok(Revision {
        memory: memory_from(row, context_id)?,
        action: row.get(MEMORY_COUNT)?,
        door: row.get(MEMORY_COUNT + 1)?,
        replaced_at: if is_replaced { Some(time(row, MEMORY_COUNT + 2)?) } else { None },
    })
}

fn context_from(row: &Row<'_>) -> rusqlite::Result<Context> {
    Ok(Context { number: row.get(0)?, name: row.get(1)?, origin: named(row, 2, |text| Origin::parse(text).ok())? })
}

/// The setting that names the sealed indexes of a context.
pub(super) fn seals_of(context: &Context) -> String {
    format!("seals of context {}", context.number)
}
