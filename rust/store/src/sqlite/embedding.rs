//! Embedders and the vectors that they made.

use memkura_model::{MemoryId, Timestamp};
use rusqlite::{OptionalExtension, Row, params};

use super::columns::{named, parsed};
use super::{Reader, Writer};
use crate::StoreError;

/// An embedder that vectors of this store were made by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Embedder {
    /// The record's number for it.
    pub number: i64,
    /// Its fingerprint: model, and recipe of the text given to it.
    pub name: String,
    /// Components of each of its vectors.
    pub dimensions: usize,
    /// Whether recall uses it.
    pub state: EmbedderState,
}

impl Embedder {
    /// Whether its vectors are those of the embedder with this fingerprint and dimension.
    #[must_use]
    pub fn is_by(&self, name: &str, dimensions: usize) -> bool {
        self.name == name && self.dimensions == dimensions
    }
}

/// Whether recall uses an embedder's vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmbedderState {
    /// Recall uses its vectors.
    Bound,
    /// Its vectors are being made beside the bound one's.
    Building,
}

impl EmbedderState {
    /// The name that the record uses.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bound => "bound",
            Self::Building => "building",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        [Self::Bound, Self::Building].into_iter().find(|state| state.as_str() == text)
    }
}

/// A text that has no vector yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingEmbedding {
    /// The record's number for the row.
    pub row: i64,
    /// The text version that a vector must describe.
    pub text_version: i64,
    /// The summary.
    pub summary: String,
    /// The content.
    pub content: Option<String>,
}

impl Reader<'_> {
    /// The embedder in `state`.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub fn embedder(&self, state: EmbedderState) -> Result<Option<Embedder>, StoreError> {
        let mut statement =
            self.connection.prepare_cached("SELECT number, name, dimensions, state FROM embedder WHERE state = ?1")?;
        Ok(statement.query_row([state.as_str()], embedder_from).optional()?)
    }

    /// The vectors of one text version of a row.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub fn vector(&self, row: i64, text_version: i64, embedder: i64) -> Result<Option<Vec<f32>>, StoreError> {
        let sql = "SELECT vectors FROM embedding WHERE embedder = ?1 AND row = ?2 AND text_version = ?3";
        let mut statement = self.connection.prepare_cached(sql)?;
        let found = statement
            .query_row(params![embedder, row, text_version], |row| Ok(row.get_ref(0)?.as_blob_or_null()?.map(floats)));
        Ok(found.optional()?.flatten())
    }

    /// Up to `limit` texts in use at `now`, of any context, after row `after`, that have no vector by this embedder. What has
    /// expired is shown to nobody any more, and to no embedder.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub fn pending_embeddings(
        &self,
        embedder: i64,
        after: i64,
        limit: usize,
        now: Timestamp,
    ) -> Result<Vec<PendingEmbedding>, StoreError> {
        let sql = "SELECT row, text_version, summary, content FROM memory m WHERE row > ?2 AND status IN ('active', 'stale') \
             AND (expires_at IS NULL OR expires_at > ?4) \
             AND NOT EXISTS (SELECT 1 FROM embedding e WHERE e.embedder = ?1 AND e.row = m.row \
                             AND e.text_version = m.text_version AND e.vectors IS NOT NULL) \
             ORDER BY row LIMIT ?3";
        let mut statement = self.connection.prepare_cached(sql)?;
        let pending = statement.query_map(params![embedder, after, limit as i64, now.to_string()], |row| {
            Ok(PendingEmbedding {
                row: row.get(0)?,
                text_version: row.get(1)?,
                summary: row.get(2)?,
                content: row.get(3)?,
            })
        })?;
        Ok(pending.collect::<Result<_, _>>()?)
    }

    /// Texts in use at `now`, and how many of them have a vector by this embedder.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub fn embedding_progress(&self, embedder: i64, now: Timestamp) -> Result<(i64, i64), StoreError> {
        let sql = "SELECT count(*), count(e.vectors) FROM memory m LEFT JOIN embedding e \
             ON e.embedder = ?1 AND e.row = m.row AND e.text_version = m.text_version WHERE m.status IN ('active', 'stale') \
             AND (m.expires_at IS NULL OR m.expires_at > ?2)";
        Ok(self.connection.query_row(sql, params![embedder, now.to_string()], |row| Ok((row.get(0)?, row.get(1)?)))?)
    }

    /// How many texts in use at `now` this embedder failed on, and why: the most frequent reasons, each with its count.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub fn embedding_problems(&self, embedder: i64, now: Timestamp) -> Result<(i64, Vec<(String, i64)>), StoreError> {
        /// More reasons than a person would read.
        const REASONS_MAX: usize = 16;
        let sql = "SELECT e.problem, count(*) FROM embedding e JOIN memory m ON m.row = e.row AND m.text_version = e.text_version \
             WHERE e.embedder = ?1 AND e.problem IS NOT NULL AND m.status IN ('active', 'stale') \
             AND (m.expires_at IS NULL OR m.expires_at > ?2) GROUP BY e.problem ORDER BY 2 DESC, 1";
        let mut statement = self.connection.prepare_cached(sql)?;
        let reasons = statement.query_map(params![embedder, now.to_string()], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let mut reasons: Vec<(String, i64)> = reasons.collect::<Result<_, _>>()?;
        let failed = reasons.iter().map(|(_, count)| count).sum();
        reasons.truncate(REASONS_MAX);
        Ok((failed, reasons))
    }
}

impl Writer<'_> {
    /// Enters an embedder in `state`.
    ///
    /// # Errors
    /// When the record cannot be written.
    pub fn add_embedder(
        &self,
        name: &str,
        dimensions: usize,
        state: EmbedderState,
        now: Timestamp,
    ) -> Result<Embedder, StoreError> {
        let mut statement = self
            .connection
            .prepare_cached("INSERT INTO embedder (name, dimensions, state, created_at) VALUES (?1, ?2, ?3, ?4)")?;
        let number = statement.insert(params![name, dimensions as i64, state.as_str(), now.to_string()])?;
        Ok(Embedder { number, name: name.to_owned(), dimensions, state })
    }

    /// Removes an embedder with all of its vectors.
    ///
    /// # Errors
    /// When the record cannot be written.
    pub fn remove_embedder(&self, number: i64) -> Result<(), StoreError> {
        self.connection.execute("DELETE FROM embedding WHERE embedder = ?1", [number])?;
        self.connection.execute("DELETE FROM embedder WHERE number = ?1", [number])?;
        Ok(())
    }

    /// Makes recall use the embedder that was being built. The one bound before goes, with its vectors.
    ///
    /// # Errors
    /// When the record cannot be written.
    pub fn bind_built_embedder(&self) -> Result<(), StoreError> {
        if let Some(old) = self.embedder(EmbedderState::Bound)? {
            self.remove_embedder(old.number)?;
        }
        self.connection.execute("UPDATE embedder SET state = 'bound' WHERE state = 'building'", [])?;
        let embedded = "UPDATE memory SET embedded = EXISTS (SELECT 1 FROM embedding e JOIN embedder b ON b.number = e.embedder \
             WHERE b.state = 'bound' AND e.row = memory.row AND e.text_version = memory.text_version AND e.vectors IS NOT NULL)";
        self.connection.execute(embedded, [])?;
        Ok(())
    }

    /// Writes the vectors of a row's present text, or why there are none. A failure never takes the place of
    /// vectors that are there. Says whether anything was written.
    ///
    /// # Errors
    /// When the record cannot be written.
    pub fn put_vectors(
        &self,
        embedder: &Embedder,
        row: i64,
        text_version: i64,
        vectors: Result<&[f32], &str>,
    ) -> Result<bool, StoreError> {
        let sql = "INSERT INTO embedding (row, text_version, embedder, vectors, problem) \
             SELECT row, text_version, ?3, ?4, ?5 FROM memory WHERE row = ?1 AND text_version = ?2 \
             ON CONFLICT (embedder, row, text_version) DO UPDATE SET vectors = excluded.vectors, problem = excluded.problem \
             WHERE excluded.vectors IS NOT NULL OR embedding.vectors IS NULL";
        let bytes = vectors.ok().map(bytes);
        let written = self.connection.prepare_cached(sql)?.execute(params![
            row,
            text_version,
            embedder.number,
            bytes,
            vectors.err()
        ])?;
        Ok(written == 1)
    }

    /// Drops the notes of why texts have no vectors. An older build noted what the embedder said, which may quote any text
    /// that it was given; the texts wait for their vectors all the same.
    ///
    /// # Errors
    /// When the record cannot be written.
    pub fn drop_problems(&self) -> Result<(), StoreError> {
        self.connection.execute("DELETE FROM embedding WHERE problem IS NOT NULL", [])?;
        Ok(())
    }

    /// Notes that a row's present text has a vector by the bound embedder, and tells the indexes.
    ///
    /// # Errors
    /// When the record cannot be written.
    pub fn mark_embedded(&self, row: i64) -> Result<(), StoreError> {
        let mut statement = self
            .connection
            .prepare_cached("UPDATE memory SET embedded = 1 WHERE row = ?1 RETURNING context, memory_id")?;
        let (context, id): (i64, MemoryId) = statement.query_row([row], |row| Ok((row.get(0)?, parsed(row, 1)?)))?;
        self.log(context, row, id)
    }
}

fn embedder_from(row: &Row<'_>) -> rusqlite::Result<Embedder> {
    let dimensions: i64 = row.get(2)?;
    Ok(Embedder {
        number: row.get(0)?,
        name: row.get(1)?,
        dimensions: dimensions as usize,
        state: named(row, 3, EmbedderState::parse)?,
    })
}

fn bytes(floats: &[f32]) -> Vec<u8> {
    floats.iter().flat_map(|float| float.to_le_bytes()).collect()
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    each_float(bytes).collect()
}

/// The numbers of a blob of vectors.
pub(super) fn each_float(bytes: &[u8]) -> impl Iterator<Item = f32> {
    bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes))
}
