//! Recalling: the best memories for a query, and why.

use std::collections::HashMap;

use memkura_index::vector::{Plan, UnitQuery};
use memkura_index::{Found, OutOfOrder, Partition, Query, TermShare};
use memkura_model::limits::{K_MAX, QUERY_BYTES_MAX};
use memkura_model::recall::{Curve, Fusion, Weights};
use memkura_model::{Context, Filter, Invalid, InvalidKind, Memory, Timestamp, check_normalised};
use memkura_store::Embedder;

use crate::error::invalid_vector;
use crate::open::{locked, read};
use crate::remember::wrong_length;
use crate::{Engine, EngineError};

/// Which kinds of evidence a recall looks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Legs {
    /// Shared words.
    pub text: bool,
    /// Near meaning.
    pub vector: bool,
    /// Exact keys.
    pub key: bool,
}

impl Default for Legs {
    fn default() -> Self {
        Self { text: true, vector: true, key: true }
    }
}

/// What is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Recall {
    /// The words of the query.
    pub query: Option<String>,
    /// The query's vector.
    pub embedding: Option<Vec<f32>>,
    /// The embedder that made the vector; `None` when the caller did.
    pub made_by: Option<String>,
    /// Most hits.
    pub k: usize,
    /// Hits to pass over.
    pub offset: usize,
    /// What a hit must be.
    pub filter: Filter,
    /// Which evidence counts.
    pub legs: Legs,
    /// The past instant whose memories are asked.
    pub as_of: Option<Timestamp>,
    /// The least raw cosine of a hit that no exact key names.
    pub min_similarity: Option<f64>,
    /// How the legs become one order.
    pub fusion: Fusion,
    /// How much each leg counts; the fusion's own weights when not given.
    pub weights: Option<Weights>,
    /// How freshness is lost.
    pub curve: Curve,
    /// Whether turns of a session share in their neighbours' words and meaning.
    pub neighbours: bool,
    /// Whether memories that were replaced count too.
    pub include_superseded: bool,
    /// Whether each hit says which terms gave what.
    pub explain: bool,
}

impl Default for Recall {
    fn default() -> Self {
        Self {
            query: None,
            embedding: None,
            made_by: None,
            k: 10,
            offset: 0,
            filter: Filter::everything(),
            legs: Legs::default(),
            as_of: None,
            min_similarity: None,
            fusion: Fusion::default(),
            weights: None,
            curve: Curve::default(),
            neighbours: true,
            include_superseded: false,
            explain: false,
        }
    }
}

/// One memory that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// The memory.
    pub memory: Memory,
    /// Why it is here.
    pub found: Found,
    /// What each term of the query gave; empty unless asked for.
    pub terms: Vec<TermShare>,
}

/// The answer to a recall.
#[derive(Debug, Clone, PartialEq)]
pub struct Recalled {
    /// The hits, best first.
    pub hits: Vec<Hit>,
    /// Which legs took part: `hybrid`, `text`, `vector` or `key`.
    pub mode: &'static str,
    /// What was missing, as `leg:reason`; empty when nothing was.
    pub degraded: Vec<&'static str>,
    /// Memories that passed the filter.
    pub matching: u64,
    /// How the vector leg went about it.
    pub plan: Option<Plan>,
    /// The text score that no memory can exceed.
    pub mass: f64,
}

/// What a recall needs besides its words: the checked vector, and what is missing.
pub(crate) struct Prepared {
    unit: Option<UnitQuery>,
    degraded: Vec<&'static str>,
}

/// How often a recall looks again when another process changes its hits under it.
const TRIES: usize = 3;

impl Engine {
    /// Recalls the best memories of a context.
    ///
    /// # Errors
    /// When the query is blank or an argument cannot be taken, or the record cannot be read.
    pub fn recall(&self, context_id: &str, recall: &Recall, now: Timestamp) -> Result<Recalled, EngineError> {
        let _inside = self.enter()?;
        let now = self.steady(now);
        check(recall)?;
        let context = self.context(context_id)?;
        self.catch_up()?;
        let Some(context) = context else {
            let bound = locked(&self.following).bound.clone();
            return Ok(nothing(recall, self.prepare(recall, bound.as_ref())?));
        };
        match recall.as_of {
            Some(then) => self.recall_as_of(&context, recall, then),
            None => self.recall_now(&context, recall, now),
        }
    }

    fn recall_now(&self, context: &Context, recall: &Recall, now: Timestamp) -> Result<Recalled, EngineError> {
        for attempt in 1.. {
            let loaded = self.partition(context)?;
            let prepared = self.prepare(recall, loaded.bound.as_ref())?;
            let query = prepared.query(recall, now);
            let (results, terms) = {
                let partition = read(&loaded.partition);
                let results = partition.search(&query);
                let terms = terms(&partition, recall, &query, &results.found);
                (results, terms)
            };
            let mut found: Vec<(Found, Vec<TermShare>)> =
                results.found.into_iter().zip(terms).skip(recall.offset).collect();
            let rows: Vec<i64> = found.iter().map(|(found, _)| found.row).collect();
            let mut memories: HashMap<i64, Memory> = self.record.read(|reader| {
                Ok::<_, EngineError>(
                    reader.rows(context, &rows)?.into_iter().map(|memory| (memory.row, memory)).collect(),
                )
            })?;
            // The index may be a moment behind another process. What leaves is checked against the record itself (I6, I10).
            memories.retain(|_, memory| shows(memory, recall, now) && recall.filter.matches(memory));
            if memories.len() < found.len() && attempt < TRIES {
                self.catch_up()?;
                continue;
            }
            found.retain(|(found, _)| memories.contains_key(&found.row));
            let hits = found
                .into_iter()
                .filter_map(|(found, terms)| Some(Hit { memory: memories.remove(&found.row)?, found, terms }));
            let hits = hits.collect();
            return Ok(Recalled {
                hits,
                mode: prepared.mode(recall),
                degraded: prepared.degraded,
                matching: results.matching,
                plan: results.plan,
                mass: results.mass,
            });
        }
        unreachable!("the loop returns at the last attempt")
    }

    /// A recall over the record as it was: the states of that moment, indexed for this one search.
    fn recall_as_of(&self, context: &Context, recall: &Recall, then: Timestamp) -> Result<Recalled, EngineError> {
        let bound = locked(&self.following).bound.clone();
        let prepared = self.prepare(recall, bound.as_ref())?;
        let mut partition = Partition::new(bound.as_ref().map(|embedder| embedder.dimensions));
        let mut memories: HashMap<i64, Memory> = self.record.read(|reader| {
            let mut memories = HashMap::new();
            for memory in reader.as_of(context, then)? {
                let vectors = match &bound {
                    Some(embedder) => reader.vector(memory.row, memory.text_version, embedder.number)?,
                    None => None,
                };
                // Rows come in the order of their numbers, so none can be out of order.
                let _: Result<(), OutOfOrder> = partition.put(&memory, vectors.as_deref());
                memories.insert(memory.row, memory);
            }
            Ok::<_, EngineError>(memories)
        })?;
        let query = prepared.query(recall, then);
        let results = partition.search(&query);
        let terms = terms(&partition, recall, &query, &results.found);
        let hits = results.found.into_iter().zip(terms).skip(recall.offset);
        let hits = hits
            .filter_map(|(found, terms)| Some(Hit { memory: memories.remove(&found.row)?, found, terms }))
            .collect();
        Ok(Recalled {
            hits,
            mode: prepared.mode(recall),
            degraded: prepared.degraded,
            matching: results.matching,
            plan: results.plan,
            mass: results.mass,
        })
    }

    /// Checks the query's vector against the embedder whose vectors it will be compared with, and says what is missing.
    pub(crate) fn prepare(&self, recall: &Recall, bound: Option<&Embedder>) -> Result<Prepared, EngineError> {
        let mut prepared = self.prepare_vector(recall, bound)?;
        // By text alone nothing has a cosine that could reach the least one asked for.
        if recall.min_similarity.is_some() && prepared.mode(recall) == "text" && prepared.degraded.is_empty() {
            prepared.degraded.push("vector:no_embedder");
        }
        Ok(prepared)
    }

    fn prepare_vector(&self, recall: &Recall, bound: Option<&Embedder>) -> Result<Prepared, EngineError> {
        let mut prepared = Prepared { unit: None, degraded: Vec::new() };
        if !recall.legs.vector {
            // There is nothing else to search by.
            if recall.query.is_none() {
                prepared.degraded.push("vector:leg_off");
            }
            return Ok(prepared);
        }
        let Some(bound) = bound else {
            if recall.embedding.is_some() || self.wanted().is_some() || !recall.legs.text {
                prepared.degraded.push("vector:unembedded");
            }
            return Ok(prepared);
        };
        let is_other = match &recall.made_by {
            Some(made_by) => *made_by != bound.name,
            None => self.wanted().is_some_and(|(name, dimensions)| !bound.is_by(&name, dimensions)),
        };
        match &recall.embedding {
            _ if is_other => prepared.degraded.push("vector:embedder_changed"),
            None if recall.query.is_none() => {}
            None if self.wanted().is_none() => prepared.degraded.push("vector:no_embedder"),
            None => prepared.degraded.push("vector:embedder_failed"),
            Some(vector) if vector.len() != bound.dimensions => {
                return Err(wrong_length(vector.len(), bound.dimensions).into());
            }
            Some(vector) => match UnitQuery::new(vector, bound.dimensions) {
                Ok(unit) => prepared.unit = Some(unit),
                Err(error) if recall.query.is_none() => return Err(invalid_vector("embedding", &error).into()),
                Err(_) => prepared.degraded.push("vector:query_invalid"),
            },
        }
        Ok(prepared)
    }
}

impl Prepared {
    pub(crate) fn query<'a>(&'a self, recall: &'a Recall, now: Timestamp) -> Query<'a> {
        Query {
            text: recall.query.as_deref().filter(|_| recall.legs.text),
            vector: self.unit.as_ref(),
            keys: recall.query.as_deref().filter(|_| recall.legs.key),
            filter: &recall.filter,
            now,
            k: recall.k + recall.offset,
            fusion: recall.fusion,
            weights: recall.weights.unwrap_or(Weights::of(recall.fusion)),
            curve: recall.curve,
            neighbours: recall.neighbours,
            include_superseded: recall.include_superseded,
            min_similarity: recall.min_similarity,
        }
    }

    fn mode(&self, recall: &Recall) -> &'static str {
        match (recall.query.is_some() && recall.legs.text, self.unit.is_some()) {
            (true, true) => "hybrid",
            (true, false) => "text",
            (false, true) => "vector",
            (false, false) if recall.legs.vector => "vector",
            (false, false) => "key",
        }
    }
}

fn nothing(recall: &Recall, prepared: Prepared) -> Recalled {
    Recalled {
        hits: Vec::new(),
        mode: prepared.mode(recall),
        degraded: prepared.degraded,
        matching: 0,
        plan: None,
        mass: 0.0,
    }
}

fn shows(memory: &Memory, recall: &Recall, now: Timestamp) -> bool {
    memory.is_visible(now) || (recall.include_superseded && memory.superseded_by.is_some() && !memory.has_expired(now))
}

fn terms(partition: &Partition, recall: &Recall, query: &Query<'_>, found: &[Found]) -> Vec<Vec<TermShare>> {
    let shares = |found: &Found| if recall.explain { partition.term_shares(query, found.ordinal) } else { Vec::new() };
    found.iter().map(shares).collect()
}

/// Checks what is asked, before anything is read.
pub(crate) fn check(recall: &Recall) -> Result<(), Invalid> {
    let blank = recall.query.as_deref().is_none_or(|query| query.trim().is_empty());
    if blank && (recall.query.is_some() || recall.embedding.is_none()) {
        let query = format!("{:?}", recall.query.as_deref().unwrap_or_default());
        return Err(Invalid::new(
            InvalidKind::EmptyQuery,
            "query",
            "has nothing to search for",
            query,
            "Give a query or an embedding, or use list",
        ));
    }
    let bytes = recall.query.as_ref().map_or(0, String::len);
    if bytes > QUERY_BYTES_MAX {
        return Err(Invalid::too_long("query", bytes, QUERY_BYTES_MAX));
    }
    recall.query.as_deref().map_or(Ok(()), |query| check_normalised("query", query))?;
    for (field, hits) in [("k", recall.k), ("offset", recall.offset)] {
        if hits > K_MAX {
            return Err(Invalid::over_limit(field, hits, K_MAX, "hits"));
        }
    }
    if let Some(least) = recall.min_similarity.filter(|least| !(-1.0..=1.0).contains(least)) {
        return Err(Invalid::value("min_similarity", "lies outside -1 to 1", least, "It is compared with raw cosines"));
    }
    recall.weights.map_or(Ok(()), |weights| weights.check().map(|_| ()))
}
