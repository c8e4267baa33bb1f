//! Waiting for other processes, with an end.

use std::time::Duration;

/// Between two tries: longer than most transactions take.
const PAUSE: Duration = Duration::from_millis(10);

/// Tries until there is an answer, at least once; `None` when `patience` ended before.
///
/// # Errors
/// What a try fails with.
pub fn patiently<T, E>(patience: Duration, mut attempt: impl FnMut() -> Result<Option<T>, E>) -> Result<Option<T>, E> {
    let mut waited = Duration::ZERO;
    loop {
        match attempt()? {
            Some(answer) => return Ok(Some(answer)),
            None if waited >= patience => return Ok(None),
            None => std::thread::sleep(PAUSE),
        }
        waited += PAUSE;
    }
}
