//! How age and importance change a score.

use crate::Timestamp;

/// The shape in which freshness is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Curve {
    /// `max(0, 1 − rate × days)`.
    #[default]
    Linear,
    /// `exp(−rate × days)`.
    Exponential,
}

impl Curve {
    /// The freshness, from 1 (new) down to 0, at `now` of what is fresh from `from` and loses `rate` a day.
    ///
    /// What carries a time in the future is simply new: a wrong clock raises nothing above 1.
    #[must_use]
    pub fn freshness(self, rate: f64, from: Timestamp, now: Timestamp) -> f64 {
        let days = now.days_since(from).max(0.0);
        match self {
            Self::Linear => (1.0 - rate * days).max(0.0),
            Self::Exponential => (-rate * days).exp(),
        }
    }
}

/// How much of a score freshness can take away: what matches far better stays ahead of what is merely new.
pub const FRESHNESS_SHARE: f64 = 0.1;
/// How much of a score importance can move, around the default importance that moves nothing.
pub const IMPORTANCE_SHARE: f64 = 0.2;

/// The factors by which age and importance change a relevance score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ageing {
    /// Never above 1: age takes away and adds nothing.
    pub freshness: f64,
    /// 1 at the default importance; 0.9 to 1.1 over the whole range.
    pub importance: f64,
}

impl Ageing {
    /// The factors for one memory.
    #[must_use]
    pub fn new(curve: Curve, rate: f64, from: Timestamp, now: Timestamp, importance: f64) -> Self {
        Self {
            freshness: 1.0 - FRESHNESS_SHARE * (1.0 - curve.freshness(rate, from, now)),
            importance: 1.0 + IMPORTANCE_SHARE * (importance - crate::memory::IMPORTANCE_DEFAULT),
        }
    }

    /// The aged score.
    #[must_use]
    pub fn apply(self, relevance: f64) -> f64 {
        relevance * self.freshness * self.importance
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::MICROS_PER_DAY;

    fn day(days: f64) -> Timestamp {
        Timestamp((days * MICROS_PER_DAY) as i64)
    }

    /// Both curves start at 1; the linear one ends at 0 after 1 / rate days.
    #[test]
    fn curves_have_their_shape() {
        for curve in [Curve::Linear, Curve::Exponential] {
            assert!((curve.freshness(0.01, day(0.0), day(0.0)) - 1.0).abs() < 1e-12);
        }
        assert!((Curve::Linear.freshness(0.01, day(0.0), day(50.0)) - 0.5).abs() < 1e-9);
        assert!(Curve::Linear.freshness(0.01, day(0.0), day(200.0)).abs() < 1e-12);
        assert!((Curve::Exponential.freshness(0.01, day(0.0), day(100.0)) - (-1.0_f64).exp()).abs() < 1e-9);
    }

    /// A memory from the future is new, and no score grows by it.
    #[test]
    fn future_is_new() {
        for days in [10.0, 30.0, 3_650.0] {
            let ageing = Ageing::new(Curve::Linear, 0.01, day(days), day(0.0), 0.5);
            assert_eq!(ageing, Ageing { freshness: 1.0, importance: 1.0 });
        }
    }

    /// A rate of zero exempts from ageing.
    #[test]
    fn exempt_types_keep_their_score() {
        let ageing = Ageing::new(Curve::Exponential, 0.0, day(0.0), day(10_000.0), 0.5);
        assert!((ageing.apply(0.7) - 0.7).abs() < 1e-12);
    }
}
