//! A mutex that is a bare PI futex: the kernel hands it from the owner to a waiter.
//!
//! As futex(2) and the kernel's `Documentation/locking/pi-futex.rst` describe: the word holds the
//! owner's thread id, or 0. A thread that finds 0 takes the lock without a call, and an owner
//! without waiters releases it without a call; everything else is `FUTEX_LOCK_PI` and
//! `FUTEX_UNLOCK_PI`. The kernel lends the owner the priority of its most urgent waiter and hands
//! the lock to that waiter, which owns it before it runs. With threads of one priority this is a
//! strict hand-off, which the mail of 2016 (throughput-optimized futexes) found slow. glibc's PI
//! mutex does the same beneath its checks of the mutex type.
//!
//! Each thread queries its id once; glibc keeps it in the thread's control block.

use super::traits::BenchMutex;
use core::cell::Cell;
use std::sync::atomic::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};
use syscalls::{Errno, Sysno, syscall4};

const LOCK_PI_PRIVATE: usize = 6 | 128;
const UNLOCK_PI_PRIVATE: usize = 7 | 128;
const FREE: u32 = 0;

thread_local! {
    /// 0: not yet queried.
    static ID: Cell<u32> = const { Cell::new(0) };
}

#[inline(always)]
fn thread_id() -> u32 {
    match ID.get() {
        0 => ask_for_thread_id(),
        id => id,
    }
}

#[cold]
fn ask_for_thread_id() -> u32 {
    let id = rustix::thread::gettid().as_raw_nonzero().get() as u32;
    ID.set(id);
    id
}

/// The mutex. Relocking by the owner is detected only when it would wait: the kernel reports the
/// error, and this panics.
#[derive(Debug)]
#[repr(transparent)]
pub struct Mutex(AtomicU32);

impl Mutex {
    fn call(&self, operation: usize) -> Result<usize, Errno> {
        // SAFETY: the word is borrowed, and only the kernel and the methods below change it; there
        // is no timeout.
        unsafe { syscall4(Sysno::futex, self.0.as_ptr().addr(), operation, 0, 0) }
    }

    /// The system call orders later accesses as an acquire operation does.
    #[cold]
    fn lock_in_kernel(&self) {
        loop {
            match self.call(LOCK_PI_PRIVATE) {
                Ok(_) => return,
                // A signal handler ran; or the owner is exiting, and the retry will find it gone.
                Err(Errno::EINTR | Errno::EAGAIN) => {}
                Err(error) => panic!("futex(2), lock_pi: {error}"),
            }
        }
    }

    #[cold]
    fn unlock_in_kernel(&self) {
        if let Err(error) = self.call(UNLOCK_PI_PRIVATE) {
            panic!("futex(2), unlock_pi: {error}");
        }
    }
}

// SAFETY: the word holds the owner's id from before its `lock` returns until it unlocks, and the
// kernel also hands the lock to one thread only.
unsafe impl BenchMutex for Mutex {
    const NAME: &'static str = "futex(2) PI";

    fn new() -> Self {
        Self(AtomicU32::new(FREE))
    }

    #[inline(never)]
    fn lock(&self) {
        if !self.take() {
            self.lock_in_kernel();
        }
    }

    #[inline(never)]
    fn try_lock(&self) -> bool {
        self.take()
    }

    #[inline(never)]
    unsafe fn unlock(&self) {
        // Fails if the kernel has set the waiters bit in the word.
        let alone = self.0.compare_exchange(thread_id(), FREE, Release, Relaxed).is_ok();
        if !alone {
            self.unlock_in_kernel();
        }
    }
}

impl Mutex {
    #[inline(always)]
    fn take(&self) -> bool {
        self.0.compare_exchange(FREE, thread_id(), Acquire, Relaxed).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering::SeqCst;
    use std::thread;
    use waitword_testkit::watch;

    #[test]
    fn the_word_names_the_owner_and_the_kernel_passes_it_on() {
        let _guard = watch();
        let mutex = Mutex::new();
        mutex.lock();
        let me = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        assert_eq!(mutex.0.load(SeqCst), me);
        thread::scope(|scope| {
            let waiter = scope.spawn(|| {
                mutex.lock();
                let owner = mutex.0.load(SeqCst);
                // SAFETY: locked above.
                unsafe { mutex.unlock() };
                (owner, thread_id())
            });
            while mutex.0.load(SeqCst) & libc::FUTEX_WAITERS == 0 {
                thread::yield_now();
            }
            // SAFETY: locked above.
            unsafe { mutex.unlock() };
            let (owner, id) = waiter.join().unwrap();
            assert_eq!(owner & libc::FUTEX_TID_MASK, id);
        });
        assert_eq!(mutex.0.load(SeqCst), FREE);
    }
}
