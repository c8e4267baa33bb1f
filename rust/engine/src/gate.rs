//! Who may be inside: lets verbs in, and empties the engine for a fork or for closing.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::EngineError;

/// Counts the verbs at work. Built of one atomic alone: unlike a lock, it has no memory of threads that a forked child
/// does not have.
#[derive(Debug, Default)]
pub struct Gate {
    state: AtomicU64,
}

/// Set for good when the engine is closed.
const CLOSED: u64 = 1 << 63;
/// One suspension. There are as many as threads that fork at this moment; while there is one, newcomers wait.
const SUSPENSION: u64 = 1 << 32;
const SUSPENSIONS: u64 = CLOSED - SUSPENSION;
/// Those inside.
const COUNT: u64 = SUSPENSION - 1;

/// How long a waiting thread sleeps between looks: less than what it waits for takes.
pub const LOOK_EVERY: Duration = Duration::from_micros(50);

/// Proof that a verb is inside; leaving is dropping it.
#[derive(Debug)]
pub struct Inside<'a>(&'a Gate);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.state.fetch_sub(1, Ordering::Release);
    }
}

thread_local! {
    /// The gates that this thread is inside of while it runs somebody else's code, each by its address.
    static CALLED_OUT: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// Proof that a thread inside runs somebody else's code; that has come back when this is dropped.
#[derive(Debug)]
pub struct CalledOut(());

impl Drop for CalledOut {
    fn drop(&mut self) {
        CALLED_OUT.with_borrow_mut(Vec::pop);
    }
}

impl Gate {
    /// Notes that this thread, which is inside, is about to run somebody else's code.
    pub fn call_out(&self) -> CalledOut {
        CALLED_OUT.with_borrow_mut(|gates| gates.push(self.address()));
        CalledOut(())
    }

    /// Whether this thread is inside, further down: waiting until everybody has left, it would wait for itself.
    pub fn is_called_out(&self) -> bool {
        CALLED_OUT.with_borrow(|gates| gates.contains(&self.address()))
    }

    /// Lets nobody in any more, for good, without waiting. Whoever is inside has to close when it leaves.
    pub fn shut(&self) {
        self.state.fetch_or(CLOSED, Ordering::AcqRel);
    }

    /// Whether nobody is let in any more.
    pub fn is_shut(&self) -> bool {
        self.state.load(Ordering::Acquire) & CLOSED != 0
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Enters, waiting while the engine is suspended.
    pub fn enter(&self) -> Result<Inside<'_>, EngineError> {
        loop {
            let state = self.state.load(Ordering::Acquire);
            if state & CLOSED != 0 {
                return Err(EngineError::Closed);
            }
            // Whoever suspends waits for this thread, if it is inside already.
            if state & SUSPENSIONS != 0 && !self.is_called_out() {
                std::thread::sleep(LOOK_EVERY);
            } else if self.state.compare_exchange_weak(state, state + 1, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                return Ok(Inside(self));
            }
        }
    }

    /// Lets nobody in any more and waits until everybody has left.
    pub fn suspend(&self) {
        self.state.fetch_add(SUSPENSION, Ordering::AcqRel);
        while self.state.load(Ordering::Acquire) & COUNT != 0 {
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Takes one suspension back; with the last one, verbs come in again.
    pub fn resume(&self) {
        self.state.fetch_sub(SUSPENSION, Ordering::AcqRel);
    }

    /// Lets verbs in again in a forked child, where the threads that held other suspensions are not.
    pub fn resume_alone(&self) {
        self.state.fetch_and(CLOSED, Ordering::AcqRel);
    }

    /// Closes for good, and waits until everybody has left. Whoever closes is alone inside until the answer is dropped: a
    /// fork waits for it, and so does another one that closes.
    pub fn close(&self) -> Inside<'_> {
        self.state.fetch_or(CLOSED, Ordering::AcqRel);
        while self.state.compare_exchange_weak(CLOSED, CLOSED + 1, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            std::thread::sleep(LOOK_EVERY);
        }
        Inside(self)
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
        drop(gate.close());
        drop(gate.close());
        assert!(matches!(gate.enter(), Err(EngineError::Closed)));
    }

    /// What is done in closing is done before a fork goes on, and before another one has closed.
    #[test]
    fn closing_is_waited_for() {
        let gate = Gate::default();
        let closing = gate.close();
        std::thread::scope(|scope| {
            let forking = scope.spawn(|| gate.suspend());
            let again = scope.spawn(|| drop(gate.close()));
            std::thread::sleep(Duration::from_millis(5));
            assert!(!forking.is_finished() && !again.is_finished());
            drop(closing);
            forking.join().unwrap();
            gate.resume();
            again.join().unwrap();
        });
    }

    /// Closing waits for those inside, and for a fork.
    #[test]
    fn closing_waits() {
        let gate = Gate::default();
        let inside = gate.enter().unwrap();
        std::thread::scope(|scope| {
            let closing = scope.spawn(|| drop(gate.close()));
            std::thread::sleep(Duration::from_millis(5));
            assert!(!closing.is_finished());
            drop(inside);
            closing.join().unwrap();
        });
        let gate = Gate::default();
        gate.suspend();
        std::thread::scope(|scope| {
            let closing = scope.spawn(|| drop(gate.close()));
            std::thread::sleep(Duration::from_millis(5));
            assert!(!closing.is_finished());
            gate.resume();
            closing.join().unwrap();
        });
    }

    /// Whoever closes from inside is not waited for by itself, and is still inside; others are not inside with it.
    #[test]
    fn closing_from_inside_waits_for_nobody() {
        let (gate, other) = (Gate::default(), Gate::default());
        let inside = gate.enter().unwrap();
        let out = gate.call_out();
        assert!(gate.is_called_out() && !other.is_called_out());
        std::thread::scope(|scope| scope.spawn(|| assert!(!gate.is_called_out())).join().unwrap());
        gate.shut();
        drop(out);
        assert!(gate.is_shut() && !gate.is_called_out());
        drop(inside);
        drop(gate.close());
    }

    /// Two threads that fork at once each hold the gate until they are done.
    #[test]
    fn suspensions_are_counted() {
        let gate = Gate::default();
        gate.suspend();
        gate.suspend();
        gate.resume();
        std::thread::scope(|scope| {
            let entering = scope.spawn(|| drop(gate.enter().unwrap()));
            std::thread::sleep(Duration::from_millis(5));
            assert!(!entering.is_finished());
            gate.resume_alone();
            entering.join().unwrap();
        });
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
