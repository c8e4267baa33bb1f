//! The sealed part: one immutable tantivy segment, memory-mapped, holding postings and nothing else.
//!
//! tantivy stores and reads the postings; we score them ourselves, since its BM25 has fixed parameters and counts deleted
//! documents. Each document carries the row and version that it was made from, so whoever opens the segment
//! can tell, document by document, whether the record still says the same.

use std::collections::BTreeMap;
use std::path::Path;

use tantivy::directory::{Directory, MmapDirectory, RamDirectory};
use tantivy::postings::Postings;
use tantivy::schema::{FAST, Field, IndexRecordOption, Schema, TextFieldIndexing, TextOptions};
use tantivy::tokenizer::TokenizerManager;
use tantivy::{DocSet, Index, InvertedIndexReader, SegmentReader, TERMINATED, TantivyDocument, Term};

use super::terms::{TERMS, Terms, joined};
use crate::IndexError;

/// What a sealed document was made from, and its length in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SealedDocument {
    /// The record's number for the row.
    pub row: i64,
    /// The version that was analysed.
    pub version: i64,
    /// The document's length in tokens.
    pub length: u32,
}

/// An open segment.
pub struct Sealed {
    reader: SegmentReader,
    postings: std::sync::Arc<InvertedIndexReader>,
    text: Field,
    documents: Vec<SealedDocument>,
}

impl std::fmt::Debug for Sealed {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Sealed").field("documents", &self.documents.len()).finish_non_exhaustive()
    }
}

/// Memory for one segment's postings while it is written: far more than any partition needs, so it stays one segment.
const WRITER_BYTES: usize = 512 << 20;

/// The terms of the documents to seal, in the order of the documents.
pub type ToSeal = Vec<(SealedDocument, Vec<(String, u32)>)>;

struct Fields {
    schema: Schema,
    text: Field,
    row: Field,
    version: Field,
    length: Field,
}

fn fields() -> Fields {
    let mut builder = Schema::builder();
    let indexing = TextFieldIndexing::default()
        .set_tokenizer(TERMS)
        .set_fieldnorms(false)
        .set_index_option(IndexRecordOption::WithFreqs);
    let text = builder.add_text_field("text", TextOptions::default().set_indexing_options(indexing));
    let row = builder.add_i64_field("row", FAST);
    let version = builder.add_i64_field("version", FAST);
    let length = builder.add_u64_field("length", FAST);
    Fields { schema: builder.build(), text, row, version, length }
}

impl Sealed {
    /// Writes `documents` as one segment into the empty folder `folder`, or into memory without one, and opens it.
    ///
    /// # Errors
    /// When the folder cannot be written.
    pub fn write(folder: Option<&Path>, documents: ToSeal) -> Result<Self, IndexError> {
        let fields = fields();
        let directory: Box<dyn Directory> = match folder {
            Some(folder) => {
                Box::new(MmapDirectory::open(folder).map_err(|error| IndexError::Sealed(error.to_string()))?)
            }
            None => Box::new(RamDirectory::create()),
        };
        let tokenizers = TokenizerManager::default();
        tokenizers.register(TERMS, Terms::default());
        let builder = Index::builder().schema(fields.schema.clone()).tokenizers(tokenizers);
        let mut writer = builder.single_segment_index_writer::<TantivyDocument>(directory, WRITER_BYTES)?;
        for (document, terms) in documents {
            let mut entry = TantivyDocument::new();
            entry.add_text(fields.text, joined(&terms));
            entry.add_i64(fields.row, document.row);
            entry.add_i64(fields.version, document.version);
            entry.add_u64(fields.length, u64::from(document.length));
            writer.add_document(entry)?;
        }
        Self::from_index(&writer.finalize()?)
    }

    /// Opens the segment in `folder`, whose files have been found to be what was written.
    ///
    /// # Errors
    /// When there is none, or it cannot be read.
    pub fn open(folder: &Path) -> Result<Self, IndexError> {
        Self::from_index(&Index::open_in_dir(folder)?)
    }

    fn from_index(index: &Index) -> Result<Self, IndexError> {
        let segments = index.searchable_segments()?;
        let [segment] = segments.as_slice() else {
            return Err(IndexError::Sealed(format!("{} segments where one was written", segments.len())));
        };
        let reader = SegmentReader::open(segment)?;
        let text = index.schema().get_field("text")?;
        let postings = reader.inverted_index(text)?;
        let columns = reader.fast_fields();
        let (row, version, length) = (columns.i64("row")?, columns.i64("version")?, columns.u64("length")?);
        let documents = (0..reader.max_doc()).map(|document| {
            Some(SealedDocument {
                row: row.first(document)?,
                version: version.first(document)?,
                length: length.first(document)? as u32,
            })
        });
        let documents = documents
            .collect::<Option<Vec<_>>>()
            .ok_or_else(|| IndexError::Sealed("a document has no row".to_owned()))?;
        Ok(Self { reader, postings, text, documents })
    }

    /// The documents, in the order in which they were sealed.
    #[must_use]
    pub fn documents(&self) -> &[SealedDocument] {
        &self.documents
    }

    /// Calls `each` with the number and frequency of every document that has `term`, in order.
    ///
    /// # Errors
    /// When the segment cannot be read.
    pub fn walk(&self, term: &str, each: &mut dyn FnMut(u32, u32)) -> Result<(), IndexError> {
        let term = Term::from_field_text(self.text, term);
        if let Some(mut postings) = self.postings.read_postings(&term, IndexRecordOption::WithFreqs)? {
            let mut document = postings.doc();
            while document != TERMINATED {
                each(document, postings.term_freq());
                document = postings.advance();
            }
        }
        Ok(())
    }

    /// The terms of each document that `keep` wants, for sealing them again with others.
    ///
    /// # Errors
    /// When the segment cannot be read.
    pub fn forward(&self, keep: &dyn Fn(u32) -> bool) -> Result<BTreeMap<u32, Vec<(String, u32)>>, IndexError> {
        let mut forward: BTreeMap<u32, Vec<(String, u32)>> = (0..self.reader.max_doc())
            .filter(|document| keep(*document))
            .map(|document| (document, Vec::new()))
            .collect();
        if forward.is_empty() {
            return Ok(forward);
        }
        let mut terms = self.postings.terms().stream()?;
        while terms.advance() {
            let term = String::from_utf8_lossy(terms.key()).into_owned();
            self.walk(&term, &mut |document, frequency| {
                if let Some(list) = forward.get_mut(&document) {
                    list.push((term.clone(), frequency));
                }
            })?;
        }
        Ok(forward)
    }
}
