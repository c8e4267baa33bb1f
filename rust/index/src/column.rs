//! What ordering, ranges and checking need to know of a memory without reading the record.

use memkura_model::filter::{Number, NumberField, TimeField};
use memkura_model::{Memory, MemoryId, Timestamp};

/// The numbers and instants of one memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Column {
    pub row: i64,
    pub memory_id: MemoryId,
    /// The version whose text is indexed; 0 when none is.
    pub version: i64,
    /// The text version that the vectors describe; 0 when there are none.
    pub embedded_version: i64,
    pub importance: f64,
    pub confidence: f64,
    pub decay_rate: f64,
    pub access_count: i64,
    pub fresh_from: Timestamp,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub expires_at: Option<Timestamp>,
    pub event_time: Option<Timestamp>,
    pub last_seen: Option<Timestamp>,
}

/// Stands for "no instant": no calendar that a time is read from reaches back so far.
const NEVER: i64 = i64::MIN;

impl Column {
    /// Bytes of a column in a snapshot.
    pub const BYTES: usize = 15 * 8;

    pub fn of(memory: &Memory) -> Self {
        Self {
            row: memory.row,
            memory_id: memory.memory_id,
            version: memory.version,
            embedded_version: 0,
            importance: memory.importance,
            confidence: memory.confidence,
            decay_rate: memory.decay_rate,
            access_count: memory.access_count,
            fresh_from: memory.fresh_from(),
            created_at: memory.created_at,
            updated_at: memory.updated_at,
            expires_at: memory.expires_at,
            event_time: memory.event_time,
            last_seen: memory.last_seen,
        }
    }

    /// What [`NumberField::number`] says of the memory.
    pub fn number(&self, field: NumberField) -> Number {
        match field {
            NumberField::Importance => Number::Float(self.importance),
            NumberField::Confidence => Number::Float(self.confidence),
            NumberField::DecayRate => Number::Float(self.decay_rate),
            NumberField::AccessCount => Number::Int(self.access_count),
            NumberField::Version => Number::Int(self.version),
        }
    }

    /// What [`TimeField::value`] says of the memory.
    pub fn time(&self, field: TimeField) -> Option<Timestamp> {
        match field {
            TimeField::EventTime => self.event_time,
            TimeField::CreatedAt => Some(self.created_at),
            TimeField::UpdatedAt => Some(self.updated_at),
            TimeField::LastSeen => self.last_seen,
            TimeField::ExpiresAt => self.expires_at,
        }
    }

    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let instant = |instant: Option<Timestamp>| instant.map_or(NEVER, |instant| instant.0) as u64;
        let words = [
            self.row as u64,
            (self.memory_id.0 >> 64) as u64,
            self.memory_id.0 as u64,
            self.version as u64,
            self.embedded_version as u64,
            self.importance.to_bits(),
            self.confidence.to_bits(),
            self.decay_rate.to_bits(),
            self.access_count as u64,
            self.fresh_from.0 as u64,
            self.created_at.0 as u64,
            self.updated_at.0 as u64,
            instant(self.expires_at),
            instant(self.event_time),
            instant(self.last_seen),
        ];
        let mut bytes = [0; Self::BYTES];
        bytes.chunks_exact_mut(8).zip(words).for_each(|(place, word)| place.copy_from_slice(&word.to_le_bytes()));
        bytes
    }

    pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> Self {
        let mut words = [0; Self::BYTES / 8];
        for (word, chunk) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
            *word = u64::from_le_bytes(*chunk);
        }
        let instant = |word: u64| (word as i64 != NEVER).then_some(Timestamp(word as i64));
        Self {
            row: words[0] as i64,
            memory_id: MemoryId(u128::from(words[1]) << 64 | u128::from(words[2])),
            version: words[3] as i64,
            embedded_version: words[4] as i64,
            importance: f64::from_bits(words[5]),
            confidence: f64::from_bits(words[6]),
            decay_rate: f64::from_bits(words[7]),
            access_count: words[8] as i64,
            fresh_from: Timestamp(words[9] as i64),
            created_at: Timestamp(words[10] as i64),
            updated_at: Timestamp(words[11] as i64),
            expires_at: instant(words[12]),
            event_time: instant(words[13]),
            last_seen: instant(words[14]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every field comes back from its bytes, the extremes too.
    #[test]
    fn column_comes_back_from_its_bytes() {
        let column = Column {
            row: i64::MAX,
            memory_id: MemoryId(u128::MAX - 7),
            version: 3,
            embedded_version: 0,
            importance: 0.1,
            confidence: -0.0,
            decay_rate: f64::MIN_POSITIVE,
            access_count: -1,
            fresh_from: Timestamp(i64::MAX),
            created_at: Timestamp(-1),
            updated_at: Timestamp(0),
            expires_at: None,
            event_time: Some(Timestamp(i64::MIN + 1)),
            last_seen: Some(Timestamp(5)),
        };
        assert_eq!(Column::from_bytes(&column.to_bytes()), column);
        assert!(Column::from_bytes(&column.to_bytes()).confidence.is_sign_negative());
    }
}
