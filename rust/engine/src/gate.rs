//! Who may be inside: lets verbs in, and empties the engine for a fork or for closing.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::EngineError;

/// Counts the verbs at work. Built of one atomic alone: unlike a lock, it has no memory of threads that a forked child
/// does not have.
#[derive(Debug, Default)]
pub struct Gate {
    state: AtomicU64,
}

/// Set while the engine is being emptied: newcomers wait.
const SUSPENDED: u64 = 1 << 63;
/// Set for good when the engine is closed.
const CLOSED: u64 = 1 << 62;
const COUNT: u64 = CLOSED - 1;

/// How long a waiting thread sleeps between looks; a fork holds the gate for less.
const LOOK_EVERY: Duration = Duration::from_micros(50);

/// Proof that a verb is inside; leaving is dropping it.
#[derive(Debug)]
pub struct Inside<'a>(&'a Gate);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.state.fetch_sub(1, Ordering::Release);
    }
}

impl Gate {
    /// Enters, waiting while the engine is suspended.
    pub fn enter(&self) -> Result<Inside<'_>, EngineError> {
        loop {
            let state = self.state.load(Ordering::Acquire);
            if state & CLOSED != 0 {
                return Err(EngineError::Closed);
            }
            if state & SUSPENDED != 0 {
                std::thread::sleep(LOOK_EVERY);
            } else if self.state.compare_exchange_weak(state, state + 1, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                return Ok(Inside(self));
            }
        }
    }

    /// Lets nobody in any more and waits until everybody has left.
    pub fn suspend(&self) {
        self.state.fetch_or(SUSPENDED, Ordering::AcqRel);
        while self.state.load(Ordering::Acquire) & COUNT != 0 {
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Lets verbs in again.
    pub fn resume(&self) {
        self.state.fetch_and(!SUSPENDED, Ordering::AcqRel);
    }

    /// Closes for good; says whether it was open. Waits until everybody has left.
    pub fn close(&self) -> bool {
        let was_open = self.state.fetch_or(CLOSED, Ordering::AcqRel) & CLOSED == 0;
        self.suspend();
        self.resume();
        was_open
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A closed gate lets nobody in, and can be closed again.
    #[test]
    fn closed_is_for_good() {
        let gate = Gate::default();
        drop(gate.enter().unwrap());
        assert!(gate.close());
        assert!(!gate.close());
        assert!(matches!(gate.enter(), Err(EngineError::Closed)));
    }

    /// Suspending waits for those inside; resuming lets the waiting in.
    #[test]
    fn suspend_waits_for_those_inside() {
        let gate = Gate::default();
        let inside = gate.enter().unwrap();
        std::thread::scope(|scope| {
            let suspended = scope.spawn(|| gate.suspend());
            std::thread::sleep(Duration::from_millis(5));
            assert!(!suspended.is_finished());
            drop(inside);
            suspended.join().unwrap();
            let entering = scope.spawn(|| drop(gate.enter().unwrap()));
            gate.resume();
            entering.join().unwrap();
        });
    }
}
