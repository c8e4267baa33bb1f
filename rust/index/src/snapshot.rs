//! A snapshot: a whole partition as files that are read in one go, with nothing analysed, encoded or looked up again.
//!
//! ```text
//! rows      one column after another, of fixed width, in the order of rows
//! state     superseded memories; the values that filters ask for; the shape of the vectors
//! codes     signs, scales and codes of the vectors (see `vector::kept`), mapped
//! vectors   the vectors as f32, mapped
//! text      the texts (see `text::sealed`), the document of ordinal n being number n, mapped
//! ```
//!
//! Ordinals are numbered anew, without those of memories that are gone. What follows from the rest is not kept: keys and
//! sessions are values, and are entered again from there.
//!
//! No file is believed. Each must have the length and checksum that the manifest says, and what it says must make sense
//! together: lengths add up, numbers lie within what they count, rows ascend, texts are those of the rows.

use std::borrow::Cow;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use memkura_model::filter::{Field, Number, Scalar};
use serde::{Deserialize, Serialize};

use crate::IndexError;
use crate::column::Column;
use crate::contents::{Contents, damaged, sum_of};
use crate::mapped::Mapped;
use crate::partition::Partition;
use crate::text::{Sealed, ToSeal};
use crate::vector::Vectors;
use crate::vector::kept::{Kept, Shape, ToKeep};

const ROWS: &str = "rows";
const STATE: &str = "state";
const CODES: &str = "codes";
const VECTORS: &str = "vectors";
const TEXT: &str = "text";

/// A partition on its way to disk: a copy, so that writing it needs no lock.
#[derive(Debug)]
pub struct Snapshot {
    pub(crate) texts: ToSeal,
    pub(crate) columns: Vec<Column>,
    pub(crate) state: Vec<u8>,
    pub(crate) vectors: Option<ToKeep>,
    /// How often the partition had been changed.
    pub(crate) edits: u64,
}

/// What is of no fixed width.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct State<'a> {
    pub superseded: Vec<u32>,
    #[serde(borrow)]
    pub facets: FacetsState<'a>,
    pub vectors: Option<Shape>,
}

/// The values of all fields, in the order of fields and values.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct FacetsState<'a> {
    /// Each field, with how many of the values are its own.
    #[serde(borrow)]
    pub fields: Vec<(FieldState<'a>, u32)>,
    #[serde(borrow)]
    pub values: Vec<ScalarState<'a>>,
    /// How many values each ordinal has.
    pub counts: Vec<u32>,
    /// The numbers of those values, ordinal by ordinal.
    pub entered: Vec<u32>,
}

/// A field of values.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum FieldState<'a> {
    /// By the name that filters use.
    Named(Cow<'a, str>),
    Metadata(Cow<'a, str>),
}

/// A value.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ScalarState<'a> {
    Bool(bool),
    Int(i64),
    Float(f64),
    #[serde(borrow)]
    Text(Cow<'a, str>),
    Composite,
}

impl<'a> FieldState<'a> {
    pub fn of(field: &'a Field) -> Self {
        match field {
            Field::Text(field) => Self::Named(field.as_str().into()),
            Field::Tags => Self::Named("tags".into()),
            Field::Number(field) => Self::Named(field.as_str().into()),
            Field::Time(field) => Self::Named(field.as_str().into()),
            Field::Metadata(path) => Self::Metadata(path.into()),
        }
    }

    pub fn into_field(self) -> Option<Field> {
        match self {
            Self::Named(name) => Field::named(&name),
            Self::Metadata(path) => Some(Field::Metadata(path.into_owned())),
        }
    }
}

impl<'a> ScalarState<'a> {
    pub fn of(scalar: &'a Scalar) -> Self {
        match scalar {
            Scalar::Bool(value) => Self::Bool(*value),
            Scalar::Number(Number::Int(value)) => Self::Int(*value),
            Scalar::Number(Number::Float(value)) => Self::Float(*value),
            Scalar::Text(text) => Self::Text(text.into()),
            Scalar::Composite => Self::Composite,
        }
    }

    pub fn into_scalar(self) -> Scalar {
        match self {
            Self::Bool(value) => Scalar::Bool(value),
            Self::Int(value) => Scalar::Number(Number::Int(value)),
            Self::Float(value) => Scalar::Number(Number::Float(value)),
            Self::Text(text) => Scalar::Text(text.into_owned()),
            Self::Composite => Scalar::Composite,
        }
    }
}

impl State<'_> {
    pub fn to_bytes(&self) -> Result<Vec<u8>, IndexError> {
        postcard::to_stdvec(self).map_err(|error| IndexError::Sealed(error.to_string()))
    }
}

impl Snapshot {
    /// Writes the snapshot into the empty folder `folder`, or keeps its texts alone in memory without one.
    ///
    /// # Errors
    /// When the folder cannot be written.
    pub fn write(self, folder: Option<&Path>) -> Result<Written, IndexError> {
        let Self { texts, columns, state, vectors, edits } = self;
        let rows = columns.iter().map(|column| (column.row, column.version)).collect();
        let (mut text, mut kept) = (texts.seal(), None);
        if let Some(folder) = folder {
            write_file(&folder.join(ROWS), |file| {
                columns.iter().try_for_each(|column| file.write_all(&column.to_bytes()))
            })?;
            write_file(&folder.join(STATE), |file| file.write_all(&state))?;
            if let Some(vectors) = vectors {
                write_file(&folder.join(CODES), |file| vectors.write_codes(file))?;
                write_file(&folder.join(VECTORS), |file| vectors.write_exact(file))?;
                kept = Kept::new(just_written(folder, CODES)?, just_written(folder, VECTORS)?, vectors.shape());
                if kept.is_none() {
                    return Err(damaged(&folder.join(CODES)));
                }
            }
            write_file(&folder.join(TEXT), |file| text.write(file))?;
            text = Sealed::read(just_written(folder, TEXT)?).ok_or_else(|| damaged(&folder.join(TEXT)))?;
        }
        Ok(Written { text, vectors: kept, rows, edits })
    }
}

/// The texts and vectors of a snapshot that was written, for [`Partition::take_sealed`](crate::Partition::take_sealed).
#[derive(Debug)]
pub struct Written {
    pub(crate) text: Sealed,
    /// None when they were not written to disk.
    pub(crate) vectors: Option<Kept>,
    /// The row and version of each document.
    pub(crate) rows: Vec<(i64, i64)>,
    pub(crate) edits: u64,
}

/// A file of a snapshot, mapped: the system holds it then, and takes back what nobody reads.
fn just_written(folder: &Path, name: &str) -> Result<Mapped, IndexError> {
    let path = folder.join(name);
    Mapped::open(&path, sum_of(&path)?)
}

fn write_file(path: &Path, write: impl FnOnce(&mut BufWriter<File>) -> std::io::Result<()>) -> Result<(), IndexError> {
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = BufWriter::new(options.open(path)?);
    write(&mut file)?;
    Ok(file.into_inner().map_err(std::io::IntoInnerError::into_error)?.sync_all()?)
}

/// The files of a snapshot, each of which has been found to be what was written.
pub(crate) struct Opened {
    rows: Mapped,
    state: Mapped,
    text: Sealed,
    /// The codes, and f32.
    vectors: Option<(Mapped, Mapped)>,
}

impl Opened {
    /// Opens the files of `contents` in `folder`.
    ///
    /// # Errors
    /// When one is missing, or is not what was written.
    pub fn read(folder: &Path, contents: &Contents) -> Result<Self, IndexError> {
        if let Some(name) = contents.keys().find(|name| !is_plain(name)) {
            return Err(damaged(Path::new(name)));
        }
        let open = |name: &str| {
            let path = folder.join(name);
            Mapped::open(&path, *contents.get(name).ok_or_else(|| damaged(&path))?)
        };
        let vectors = || {
            let is_there = contents.contains_key(CODES);
            Ok::<_, IndexError>(if is_there { Some((open(CODES)?, open(VECTORS)?)) } else { None })
        };
        // The vectors are most of the bytes: they are summed up while the rest is read.
        let (vectors, text, rows, state) = std::thread::scope(|scope| {
            let vectors = std::thread::Builder::new().name("memkura-open".to_owned()).spawn_scoped(scope, vectors);
            let text = open(TEXT).and_then(|file| Sealed::read(file).ok_or_else(|| damaged(&folder.join(TEXT))));
            let (rows, state) = (open(ROWS), open(STATE));
            (vectors.map(std::thread::ScopedJoinHandle::join), text, rows, state)
        });
        let vectors = vectors?.map_err(|_| damaged(&folder.join(VECTORS)))??;
        Ok(Self { rows: rows?, state: state?, text: text?, vectors })
    }

    /// The partition of these files, with vectors of `dimensions` numbers; `None` when they do not fit each other.
    pub fn into_partition(self, dimensions: Option<usize>) -> Option<Partition> {
        let state: State<'_> = postcard::from_bytes(self.state.bytes()).ok()?;
        let shape = state.vectors;
        if shape.map(|shape| shape.dim) != dimensions.map(|dim| dim as u64) || shape.is_some() != self.vectors.is_some()
        {
            return None;
        }
        let vectors = match shape.zip(self.vectors) {
            Some((shape, (codes, exact))) => Some(Vectors::kept(Kept::new(codes, exact, shape)?)),
            None => None,
        };
        let (columns, rest) = self.rows.bytes().as_chunks::<{ Column::BYTES }>();
        let columns: Vec<Column> = columns.iter().map(Column::from_bytes).collect();
        let fits = rest.is_empty()
            && columns.is_sorted_by(|one, other| one.row < other.row)
            && shape.is_none_or(|shape| shape.ordinals == columns.len() as u64);
        if fits { Partition::from_snapshot(columns, state, self.text, vectors) } else { None }
    }
}

/// Whether a name is that of a file in the folder itself.
fn is_plain(name: &str) -> bool {
    name != "." && name != ".." && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}
