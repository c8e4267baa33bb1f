//! Names of memories: unique, and in the order in which they were made.

use std::fmt;
use std::str::FromStr;

use crate::{Invalid, Timestamp};

/// The identity of one memory: a UUID version 7 (RFC 9562 §5.7), so that ids sort by the time of their making.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemoryId(pub u128);

impl fmt::Display for MemoryId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = self.0;
        write!(
            out,
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            n >> 96,
            (n >> 80) & 0xffff,
            (n >> 64) & 0xffff,
            (n >> 48) & 0xffff,
            n & 0xffff_ffff_ffff
        )
    }
}

impl fmt::Debug for MemoryId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

impl FromStr for MemoryId {
    type Err = Invalid;

    /// Reads the one form that we write: lower-case hex in five groups. Two spellings of one id would be two names.
    fn from_str(text: &str) -> Result<Self, Invalid> {
        read(text.as_bytes()).map(Self).ok_or_else(|| {
            Invalid::value("memory_id", "is not an id of ours", text, "Pass the id that remember returned")
        })
    }
}

/// The number that lower-case hex in groups of 8, 4, 4, 4 and 12 digits spells.
fn read(text: &[u8]) -> Option<u128> {
    let text: &[u8; 36] = text.try_into().ok()?;
    text.iter().enumerate().try_fold(0_u128, |number, (at, byte)| match (at, byte) {
        (8 | 13 | 18 | 23, byte) => (*byte == b'-').then_some(number),
        (_, b'0'..=b'9') => Some(number << 4 | u128::from(byte - b'0')),
        (_, b'a'..=b'f') => Some(number << 4 | u128::from(byte - b'a' + 10)),
        _ => None,
    })
}

/// Makes ids. Chance is an input: `random` gives 64 bits at each call.
pub struct IdSource {
    random: Box<dyn FnMut() -> u64 + Send>,
    last: (u64, u16),
}

impl IdSource {
    /// An id source over a source of random bits.
    pub fn new(random: impl FnMut() -> u64 + Send + 'static) -> Self {
        Self { random: Box::new(random), last: (0, 0) }
    }

    /// The next id at `now`: later than every id that this source gave before, even if the clock stands still.
    pub fn next(&mut self, now: Timestamp) -> MemoryId {
        let millis = (now.0.max(0) as u64) / 1000;
        let (last_millis, counter) = self.last;
        // RFC 9562 §6.2, method 1: a counter in the bits after the time keeps order within one millisecond.
        self.last = match counter.checked_add(1).filter(|next| *next < 0x1000) {
            _ if millis > last_millis => (millis, 0),
            Some(next) => (last_millis, next),
            None => (last_millis + 1, 0),
        };
        let (millis, counter) = self.last;
        let random = (self.random)() & 0x3fff_ffff_ffff_ffff;
        MemoryId(
            (u128::from(millis & 0xffff_ffff_ffff) << 80)
                | (0x7_u128 << 76)
                | (u128::from(counter) << 64)
                | (0x2_u128 << 62)
                | u128::from(random),
        )
    }
}

impl fmt::Debug for IdSource {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("IdSource").field("last", &self.last).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ids made under a clock that stands still, or steps back, still grow.
    #[test]
    fn ids_grow_whatever_the_clock_does() {
        let mut source = IdSource::new(|| 7);
        let mut ids: Vec<_> = (0..10_000).map(|_| source.next(Timestamp(1_000_000))).collect();
        ids.push(source.next(Timestamp(0)));
        assert!(ids.windows(2).all(|pair| pair[0] < pair[1]));
    }

    /// An id has one spelling.
    #[test]
    fn id_round_trips_in_one_form_only() {
        let id = IdSource::new(|| u64::MAX).next(Timestamp(1_700_000_000_000_000));
        assert_eq!(id.to_string().parse::<MemoryId>().unwrap(), id);
        assert!(id.to_string().to_uppercase().parse::<MemoryId>().is_err());
        assert!("".parse::<MemoryId>().is_err());
        let id = id.to_string();
        for at in 0..id.len() {
            for other in ["", "g", "-", "F", "é", "00"] {
                let broken = [&id[..at], other, &id[at + 1..]].concat();
                assert!(broken == id || broken.parse::<MemoryId>().is_err(), "{broken}");
            }
        }
    }
}
