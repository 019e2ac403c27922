//! A mutex is Sync only if its value is Send. A rwlock's value has many readers at once.

use std::cell::Cell;
use std::rc::Rc;
use waitword::{CheckedMutex, Mutex, OnceLock, PiMutex, RobustMutex, RwLock};

fn share<T: Sync>(_: &T) {}

fn main() {
    share(&Mutex::new(Rc::new(0)));
    share(&CheckedMutex::new(Rc::new(0)));
    share(&PiMutex::new(Rc::new(0)));
    share(&RobustMutex::new(Rc::new(0)));
    share(&RwLock::new(Cell::new(0)));
    share(&PiMutex::new(Cell::new(0)).lock());
    share(&OnceLock::from(Cell::new(0)));
}
