//! Each kind of mutex has a condition variable of its own.

use waitword::{CheckedCondvar, CheckedMutex, Condvar, LockError, PiCondvar, PiMutex};

fn main() -> Result<(), LockError> {
    let (checked, inheriting) = (CheckedMutex::new(0), PiMutex::new(0));
    let _ = PiCondvar::new().wait(checked.lock()?);
    let _ = CheckedCondvar::new().wait(inheriting.lock()?);
    Condvar::new().wait(&mut inheriting.lock()?);
    Ok(())
}
