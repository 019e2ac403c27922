//! S3: a wait consumes the guard, which comes back only with the mutex locked.

use waitword::{LockError, PiCondvar, PiMutex};

fn main() -> Result<(), LockError> {
    let (mutex, condvar) = (PiMutex::new(0), PiCondvar::new());
    let mut guard = mutex.lock()?;
    let _ = condvar.wait(guard);
    *guard = 1;
    Ok(())
}
