//! Instants, and a clock that cannot be made to run backwards.

use std::fmt;
use std::sync::Mutex;

use crate::Invalid;

/// An instant in UTC, to the microsecond: the resolution that Python's `datetime` carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(pub i64);

/// Microseconds in a day.
pub const MICROS_PER_DAY: f64 = 86_400_000_000.0;

impl Timestamp {
    /// From the first instant that Python's `datetime` can show to the last that our calendar library can.
    const RANGE: std::ops::RangeInclusive<i64> = -62_135_596_800_000_000..=253_402_207_199_999_999;

    /// The instant `micros` microseconds after 1970-01-01T00:00Z.
    ///
    /// # Errors
    /// When it lies outside the years 1 to 9999 (of which the last day is left out).
    pub fn from_micros(field: &str, micros: i64) -> Result<Self, Invalid> {
        if Self::RANGE.contains(&micros) {
            Ok(Self(micros))
        } else {
            Err(Invalid::value(
                field,
                "lies outside 0001-01-01 to 9999-12-30",
                micros,
                "Give an instant that a calendar can show",
            ))
        }
    }

    /// Reads RFC 3339 with an offset (`2030-01-16T00:00:00+09:00`).
    ///
    /// # Errors
    /// When the text has another form, or no offset: a local time without one names no instant.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let wrong = || {
            Invalid::value("time", "is not RFC 3339 with an offset", text, "Write it like 2030-01-16T00:00:00+09:00")
        };
        let instant: jiff::Timestamp = text.parse().map_err(|_| wrong())?;
        Self::from_micros("time", instant.as_microsecond())
    }

    /// Days from `earlier` to this instant; negative when `earlier` is later.
    #[must_use]
    pub fn days_since(self, earlier: Self) -> f64 {
        (self.0 as f64 - earlier.0 as f64) / MICROS_PER_DAY
    }
}

/// Fixed width, so that the record's text columns sort as instants do.
impl fmt::Display for Timestamp {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let instant = jiff::Timestamp::from_microsecond(self.0).map_err(|_| fmt::Error)?;
        write!(out, "{instant:.6}")
    }
}

/// Turns a wall clock, which people and daemons set back, into one that only goes forward.
///
/// When the wall clock steps back, time goes on from the latest instant seen at the wall clock's pace: a lifetime of
/// `t` ends at the latest `t` after the step, and nothing that has expired comes back (I10). When it then leaps forward by
/// as much, the step was a mistake that somebody mended, and the two agree again. (An engine that nobody asked anything for
/// as long as the clock was set back by takes that time for such a leap.)
#[derive(Debug, Default)]
pub struct SteadyClock {
    state: Mutex<Steady>,
}

#[derive(Debug, Default)]
struct Steady {
    latest_wall: Option<i64>,
    behind: i64,
}

impl SteadyClock {
    /// The steady instant for a reading `wall` of the wall clock.
    #[must_use]
    pub fn at(&self, wall: Timestamp) -> Timestamp {
        /// Threads read the wall clock before they come here, and not always in the order in which they read it.
        const OUT_OF_ORDER_MAX: i64 = 1_000_000;
        let mut state = self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let latest = state.latest_wall.unwrap_or(wall.0);
        let reading = if (1..=OUT_OF_ORDER_MAX).contains(&(latest - wall.0)) { latest } else { wall.0 };
        let is_mended = reading > latest && reading - latest >= state.behind;
        state.behind = if is_mended { 0 } else { state.behind + (latest - reading).max(0) };
        state.latest_wall = Some(reading);
        Timestamp((reading + state.behind).min(*Timestamp::RANGE.end()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every instant that is taken can be shown, at both ends too.
    #[test]
    fn both_ends_can_be_shown() {
        for end in [*Timestamp::RANGE.start(), *Timestamp::RANGE.end()] {
            assert_eq!(Timestamp::parse(&Timestamp(end).to_string()).unwrap(), Timestamp(end));
        }
        assert!(Timestamp::from_micros("t", *Timestamp::RANGE.end() + 1).is_err());
    }

    /// An offset is honoured and shown in UTC.
    #[test]
    fn offset_names_the_instant() {
        let instant = Timestamp::parse("2030-01-16T00:00:00+09:00").unwrap();
        assert_eq!(instant.to_string(), "2030-01-15T15:00:00.000000Z");
        assert_eq!(Timestamp::parse(&instant.to_string()).unwrap(), instant);
    }

    /// A time without an offset names no instant, and is refused.
    #[test]
    fn time_without_offset_is_refused() {
        assert!(Timestamp::parse("2030-01-16T00:00:00").is_err());
        assert!(Timestamp::parse("tomorrow").is_err());
    }

    /// Text order is time order, before 1970 too.
    #[test]
    fn text_sorts_as_time() {
        let texts: Vec<_> = [-5_000_000, -1, 0, 1, 999_999, 86_400_000_000].map(|t| Timestamp(t).to_string()).to_vec();
        assert!(texts.is_sorted());
    }

    /// A wall clock set back by an hour does not lengthen anybody's life.
    #[test]
    fn steady_clock_goes_on_after_a_step_back() {
        let clock = SteadyClock::default();
        let hour = 3_600_000_000;
        assert_eq!(clock.at(Timestamp(10 * hour)).0, 10 * hour);
        assert_eq!(clock.at(Timestamp(9 * hour)).0, 10 * hour);
        assert_eq!(clock.at(Timestamp(9 * hour + 5)).0, 10 * hour + 5);
    }

    /// Steps back that are mended leave nothing behind, however many there were.
    #[test]
    fn steady_clock_follows_a_wall_clock_that_was_mended() {
        let clock = SteadyClock::default();
        let hour = 3_600_000_000;
        for noon in (12..18).map(|hours| hours * hour) {
            assert_eq!(clock.at(Timestamp(noon)).0, noon);
            assert_eq!(clock.at(Timestamp(0)).0, noon);
            assert_eq!(clock.at(Timestamp(5)).0, noon + 5);
            assert_eq!(clock.at(Timestamp(noon + 10)).0, noon + 10);
            assert_eq!(clock.at(Timestamp(noon)).0, noon + 10);
        }
    }

    /// Readings that threads bring out of order do not push the time ahead.
    #[test]
    fn steady_clock_keeps_pace_with_readings_out_of_order() {
        let clock = SteadyClock::default();
        for step in 0..100 {
            assert_eq!(clock.at(Timestamp(10_000 * step + 5_000)).0, 10_000 * step + 5_000);
            assert_eq!(clock.at(Timestamp(10_000 * step)).0, 10_000 * step + 5_000);
        }
    }
}
