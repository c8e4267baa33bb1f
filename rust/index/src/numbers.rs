//! Numbers in a row, in memory or where a file of them is mapped.

use std::ops::Deref;
use std::sync::Arc;

use bytemuck::Pod;

use crate::mapped::Mapped;

/// Numbers in a row.
#[derive(Debug, Clone)]
pub enum Numbers<T> {
    /// In memory.
    Owned(Vec<T>),
    /// In a file. That they all lie there was seen when this was made.
    Mapped {
        /// The file.
        file: Arc<Mapped>,
        /// The byte at which they begin.
        start: usize,
        /// How many they are.
        count: usize,
    },
}

impl<T> Default for Numbers<T> {
    fn default() -> Self {
        Self::Owned(Vec::new())
    }
}

impl<T: Pod> Numbers<T> {
    /// The `count` numbers from byte `start` of `file` on; `None` when they are not all there.
    pub fn mapped(file: &Arc<Mapped>, start: usize, count: usize) -> Option<Self> {
        file.numbers::<T>(start, count)?;
        Some(Self::Mapped { file: Arc::clone(file), start, count })
    }

    /// The numbers, to add to them: a copy is made of those that are mapped.
    pub fn to_mut(&mut self) -> &mut Vec<T> {
        if let Self::Mapped { .. } = self {
            *self = Self::Owned(self.to_vec());
        }
        match self {
            Self::Owned(numbers) => numbers,
            Self::Mapped { .. } => unreachable!("a copy was just made"),
        }
    }
}

impl<T> Numbers<T> {
    /// Bytes of memory that they take, which those of a mapped file do not.
    pub fn footprint(&self) -> usize {
        match self {
            Self::Owned(numbers) => size_of_val(numbers.as_slice()),
            Self::Mapped { .. } => 0,
        }
    }
}

impl<T: Pod> Deref for Numbers<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self {
            Self::Owned(numbers) => numbers,
            Self::Mapped { file, start, count } => file.numbers(*start, *count).unwrap_or_default(),
        }
    }
}

/// Reads rows of numbers that lie one after another in a file.
#[derive(Debug)]
pub struct Sections {
    file: Arc<Mapped>,
    at: usize,
}

impl Sections {
    /// From the beginning of `file` on.
    pub fn of(file: Mapped) -> Self {
        Self { file: Arc::new(file), at: 0 }
    }

    /// The next `count` numbers; `None` when there are not as many.
    pub fn next<T: Pod>(&mut self, count: u64) -> Option<Numbers<T>> {
        let count = usize::try_from(count).ok()?;
        let numbers = Numbers::mapped(&self.file, self.at, count)?;
        self.at += count * size_of::<T>();
        Some(numbers)
    }

    /// Whether all of the file was read.
    pub fn are_read(&self) -> bool {
        self.at == self.file.bytes().len()
    }
}
