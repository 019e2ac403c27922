//! A guard must be dropped by the thread that locked.

use waitword::{CheckedMutex, Mutex, PiMutex, ReentrantMutex, RwLock};

fn send<T: Send>(_: T) {}

fn main() {
    send(Mutex::new(0).lock());
    send(CheckedMutex::new(0).lock());
    send(PiMutex::new(0).lock());
    send(ReentrantMutex::new(0).lock());
    send(RwLock::new(0).read());
    send(RwLock::new(0).write());
    send(RwLock::new(0).upgradable_read());
}
