//! Rows of files, out and in.

use memkura_engine as engine;
use memkura_engine::{Drafted, Embedding, Kept, Leaving};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::arguments;
use crate::clock;
use crate::embedding::Embedded;
use crate::ending::call;
use crate::error::Fault;
use crate::memory::{PyReceipt, state_fields};

/// A row's context, its id in the store that it came from, the words of its states, and when it ends.
pub type Named<'py> = (String, Option<String>, Vec<String>, Option<Bound<'py, PyAny>>);
/// A word for what is known of a row, and the id of the memory that it is known as.
pub type Standing = (&'static str, Option<String>);
/// What was known of a row, and what was written.
pub type Taken = (&'static str, PyReceipt);

/// Rows as the engine takes them, and for each memory the fields whose text had to be mended.
type Given<Row> = (Vec<Row>, Vec<Vec<String>>);

/// Calls `sink` with the states as dictionaries, unless there are none.
pub fn hand_over(py: Python<'_>, sink: &Py<PyAny>, piece: &[Leaving]) -> PyResult<()> {
    if piece.is_empty() {
        return Ok(());
    }
    let rows = PyList::empty(py);
    for Leaving { state, origin } in piece {
        let row = state_fields(py, state)?;
        row.set_item("origin", origin.as_str())?;
        if state.replaced_at.is_some() {
            clock::put(&row, "replaced_at", state.replaced_at)?;
        }
        rows.append(row)?;
    }
    call(sink.bind(py), &PyTuple::new(py, [rows])?)?;
    Ok(())
}

/// A row as the engine looks it up; an id of another form is none of ours.
pub fn named((context_id, memory_id, words, end): Named<'_>) -> Result<engine::Named, Fault> {
    let expires_at = end.map(|end| clock::from_python(&end, "expires_at")).transpose()?;
    Ok(engine::Named { context_id, memory_id: memory_id.and_then(|id| id.parse().ok()), words, expires_at })
}

/// What is known of a row, in a word.
pub fn standing(standing: engine::Standing) -> Standing {
    match standing {
        engine::Standing::New => ("new", None),
        engine::Standing::Expired => ("expired", None),
        engine::Standing::Here(id) => ("here", Some(id.to_string())),
        engine::Standing::Forgotten(id) => ("forgotten", Some(id.to_string())),
        engine::Standing::Purged(id) => ("purged", Some(id.to_string())),
    }
}

/// The answers of the engine, with what was mended of the texts on the way in.
pub fn taken(taken: Vec<engine::Taken>, mended: Vec<Vec<String>>) -> Vec<Taken> {
    let both = taken.into_iter().zip(mended);
    both.map(|((known, receipt), mended)| (standing(known).0, PyReceipt::new(receipt, mended))).collect()
}

/// Drafts with their vectors and the ids that they had elsewhere; and the fields whose text had to be mended.
pub fn drafts(
    drafts: &Bound<'_, PyAny>,
    embedded: Vec<Embedded<'_>>,
    ids: Vec<Option<String>>,
) -> Result<Given<Drafted>, Fault> {
    let rows = arguments::with_vectors(drafts, embedded, 0, arguments::draft)?;
    let rows = rows.into_iter().zip(ids.into_iter().chain(std::iter::repeat(None))).map(
        |((draft, embedding, warnings), id)| {
            (Drafted { draft, memory_id: id.and_then(|id| id.parse().ok()), embedding }, warnings)
        },
    );
    Ok(rows.unzip())
}

/// States of an owner's file with their vectors; and for each memory the fields whose text had to be mended.
pub fn states(states: &Bound<'_, PyAny>, embedded: Vec<Embedded<'_>>) -> Result<Given<(Kept, Embedding)>, Fault> {
    let mut rows = Vec::new();
    let mut mended = Vec::new();
    for (kept, embedding, warnings) in arguments::with_vectors(states, embedded, 0, arguments::kept)? {
        if kept.replaced_at.is_none() {
            mended.push(warnings);
        }
        rows.push((kept, embedding));
    }
    Ok((rows, mended))
}
