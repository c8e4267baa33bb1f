//! Vectors made later: back-filling what an embedder failed on, and moving to another embedder.
//!
//! The texts go out, the vectors come in; the embedder itself runs outside, with no lock held. A move builds the new
//! vectors beside the old ones and takes over when every text has one, so it can stop at any point and go on later.

use memkura_model::limits::DIMENSIONS_MAX;
use memkura_model::{Invalid, Timestamp};
use memkura_store::{Embedder, EmbedderState, PendingEmbedding, Writer};

use crate::open::locked;
use crate::remember::check_vectors;
use crate::{Embedding, Engine, EngineError};

/// The store's embedder, and how the engine's own one relates to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbedderStatus {
    /// The embedder that recall uses.
    pub bound: Option<Embedder>,
    /// The one whose vectors are being made beside it.
    pub building: Option<Embedder>,
    /// Whether the engine was opened with another embedder than the bound one.
    pub is_other: bool,
}

/// How far the vectors of an embedder have come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReindexProgress {
    /// Texts in use.
    pub total: i64,
    /// Texts that have a vector.
    pub done: i64,
    /// Texts that the embedder failed on and that have none.
    pub failed: i64,
    /// Why it failed, each reason with its count, most frequent first.
    pub reasons: Vec<(String, i64)>,
    /// Whether recall uses these vectors.
    pub is_bound: bool,
}

impl Engine {
    /// The embedder whose vectors recall uses now; read from the record only when it has changed.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub fn bound_embedder(&self) -> Result<Option<Embedder>, EngineError> {
        let _inside = self.enter()?;
        self.catch_up()?;
        Ok(locked(&self.following).bound.clone())
    }

    /// The store's embedder, and what is being built beside it.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub fn embedder(&self) -> Result<EmbedderStatus, EngineError> {
        let _inside = self.enter()?;
        self.record.read(|reader| {
            let bound = reader.embedder(EmbedderState::Bound)?;
            let building = reader.embedder(EmbedderState::Building)?;
            let is_other = self
                .wanted()
                .as_ref()
                .zip(bound.as_ref())
                .is_some_and(|((name, dimensions), bound)| !bound.is_by(name, *dimensions));
            Ok(EmbedderStatus { bound, building, is_other })
        })
    }

    /// Begins, or goes on with, making vectors by the embedder of this fingerprint and dimension.
    ///
    /// # Errors
    /// When the dimension cannot be one, or the record cannot be written.
    pub fn begin_reindex(&self, name: &str, dimensions: usize, now: Timestamp) -> Result<ReindexProgress, EngineError> {
        let _inside = self.enter()?;
        let now = self.steady(now);
        if dimensions == 0 || dimensions > DIMENSIONS_MAX {
            return Err(Invalid::value(
                "embedder",
                format!("has a dimension outside 1 to {DIMENSIONS_MAX}"),
                dimensions,
                "Check the embedder's dim",
            )
            .into());
        }
        let embedder = self.record.write(|writer| target(writer, name, dimensions, now))?;
        self.catch_up()?;
        self.progress(&embedder, now)
    }

    /// Up to `limit` texts in use after row `after` that still need a vector by the embedder `name`; none when the store has no
    /// use for its vectors.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub fn pending_embeddings(
        &self,
        name: &str,
        after: i64,
        limit: usize,
        now: Timestamp,
    ) -> Result<Vec<PendingEmbedding>, EngineError> {
        let _inside = self.enter()?;
        let now = self.steady(now);
        self.record.read(|reader| {
            let Some(embedder) = in_use(reader, name)? else { return Ok(Vec::new()) };
            Ok(reader.pending_embeddings(embedder.number, after, limit, now)?)
        })
    }

    /// Takes vectors that the embedder `name` made for pending texts, each as (row, text version, embedding). Returns how
    /// many still had that text; none when another process has moved the store to another embedder (I11).
    ///
    /// # Errors
    /// When a vector cannot be taken, or the record cannot be written; none was taken then.
    pub fn store_embeddings(&self, name: &str, items: &[(i64, i64, Embedding)]) -> Result<usize, EngineError> {
        let _inside = self.enter()?;
        let taken = self.record.write(|writer| {
            let Some(embedder) = in_use(writer, name)? else { return Ok(0) };
            let mut taken = 0;
            for (row, text_version, embedding) in items {
                check_vectors(embedding, embedder.dimensions)?;
                taken += usize::from(put(writer, &embedder, *row, *text_version, embedding)?);
            }
            Ok::<_, EngineError>(taken)
        })?;
        self.follow_own_write();
        Ok(taken)
    }

    /// Ends a round of re-embedding with the embedder `name`: when every text has its vector, recall uses the new ones from
    /// here on. `None` when another process has begun with another embedder meanwhile.
    ///
    /// # Errors
    /// When the record cannot be written.
    pub fn finish_reindex(&self, name: &str, now: Timestamp) -> Result<Option<ReindexProgress>, EngineError> {
        let _inside = self.enter()?;
        let now = self.steady(now);
        let embedder = self.record.write(|writer| {
            let Some(embedder) = working(writer)?.filter(|embedder| embedder.name == name) else { return Ok(None) };
            let (total, done) = writer.embedding_progress(embedder.number, now)?;
            if embedder.state == EmbedderState::Building && total == done {
                writer.bind_built_embedder()?;
            }
            Ok::<_, EngineError>(Some(embedder))
        })?;
        if let Some(embedder) = &embedder {
            self.want_if_bound(embedder)?;
        }
        self.catch_up()?;
        embedder.map(|embedder| self.progress(&embedder, now)).transpose()
    }

    fn progress(&self, embedder: &Embedder, now: Timestamp) -> Result<ReindexProgress, EngineError> {
        let is_bound = locked(&self.following).bound.as_ref().is_some_and(|bound| bound.number == embedder.number);
        self.record.read(|reader| {
            let (total, done) = reader.embedding_progress(embedder.number, now)?;
            let (failed, reasons) = reader.embedding_problems(embedder.number, now)?;
            Ok(ReindexProgress { total, done, failed, reasons, is_bound })
        })
    }
}

/// The embedder that vectors are being made by: the one being built, or else the bound one.
fn working(reader: &memkura_store::Reader<'_>) -> Result<Option<Embedder>, EngineError> {
    let building = reader.embedder(EmbedderState::Building)?;
    Ok(if building.is_some() { building } else { reader.embedder(EmbedderState::Bound)? })
}

/// The embedder called `name`, if recall uses its vectors or will.
fn in_use(reader: &memkura_store::Reader<'_>, name: &str) -> Result<Option<Embedder>, EngineError> {
    let building = reader.embedder(EmbedderState::Building)?.filter(|embedder| embedder.name == name);
    Ok(match building {
        Some(building) => Some(building),
        None => reader.embedder(EmbedderState::Bound)?.filter(|embedder| embedder.name == name),
    })
}

/// The embedder of this fingerprint, entered if the store does not know it. Another half-built one gives way.
fn target(writer: &Writer<'_>, name: &str, dimensions: usize, now: Timestamp) -> Result<Embedder, EngineError> {
    let bound = writer.embedder(EmbedderState::Bound)?;
    let building = writer.embedder(EmbedderState::Building)?;
    if let Some(building) = building {
        if building.is_by(name, dimensions) {
            return Ok(building);
        }
        writer.remove_embedder(building.number)?;
    }
    match bound {
        Some(bound) if bound.is_by(name, dimensions) => Ok(bound),
        Some(_) => Ok(writer.add_embedder(name, dimensions, EmbedderState::Building, now)?),
        None => Ok(writer.add_embedder(name, dimensions, EmbedderState::Bound, now)?),
    }
}

fn put(
    writer: &Writer<'_>,
    embedder: &Embedder,
    row: i64,
    text_version: i64,
    embedding: &Embedding,
) -> Result<bool, EngineError> {
    let vectors = match embedding {
        Embedding::Vectors { values, .. } => Ok(values.as_slice()),
        Embedding::Failed(reason) => Err(reason.as_str()),
        Embedding::None => return Ok(false),
    };
    let taken = writer.put_vectors(embedder, row, text_version, vectors)?;
    if taken && vectors.is_ok() && embedder.state == EmbedderState::Bound {
        writer.mark_embedded(row)?;
    }
    Ok(taken)
}
