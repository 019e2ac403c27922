//! How does a WebAssembly engine implement `memory.atomic.wait64` and `memory.atomic.notify`?
//!
//! With a private 64-bit futex: the instructions compare, queue and count just as it does. A wait
//! returns "ok" only if a notify has counted it.
//!
//! ```sh
//! cargo run --example wasm_wait_notify
//! ```

use std::sync::atomic::AtomicU64;
use std::thread;
use std::time::Duration;
use waitword::{Deadline, Error, Futex};

/// The result that `memory.atomic.wait64` leaves on the stack.
#[derive(Debug, PartialEq)]
#[repr(i32)]
enum Waited {
    Ok = 0,
    NotEqual = 1,
    TimedOut = 2,
}

/// A module's shared memory. A real one is an array of bytes and checks address and alignment.
struct Memory([AtomicU64; 8]);

impl Memory {
    /// `timeout` is in nanoseconds; a negative one means no timeout.
    fn wait64(&self, address: usize, expected: i64, timeout: i64) -> Waited {
        let futex = Futex::private(&self.0[address / 8]);
        let timeout = u64::try_from(timeout).ok().map(Duration::from_nanos);
        let deadline = timeout.map(Deadline::after);
        loop {
            let waited = match deadline {
                Some(deadline) => futex.wait_until(expected as u64, deadline),
                None => futex.wait(expected as u64),
            };
            match waited {
                Ok(()) => return Waited::Ok,
                Err(Error::Mismatch) => return Waited::NotEqual,
                Err(Error::TimedOut) => return Waited::TimedOut,
                // A signal handler of the host, which WebAssembly knows nothing about.
                Err(Error::Interrupted) => {}
                Err(error) => panic!("memory.atomic.wait64: {error}"),
            }
        }
    }

    /// Returns how many threads it has woken.
    fn notify(&self, address: usize, count: u32) -> u32 {
        let woken = Futex::private(&self.0[address / 8]).wake(count as usize);
        woken.expect("memory.atomic.notify") as u32
    }
}

static MEMORY: Memory = Memory([const { AtomicU64::new(0) }; 8]);
const ADDRESS: usize = 16;
const WAITERS: u32 = 8;

fn main() {
    assert_eq!(MEMORY.wait64(ADDRESS, -1, -1), Waited::NotEqual);
    assert_eq!(MEMORY.wait64(ADDRESS, 0, 1_000_000), Waited::TimedOut);
    assert_eq!(MEMORY.notify(ADDRESS, u32::MAX), 0);

    let waiters: Vec<_> =
        (0..WAITERS).map(|_| thread::spawn(|| MEMORY.wait64(ADDRESS, 0, -1))).collect();
    // Not all of them wait yet, so notify, at most three at a time, until all were counted. The
    // value does not change: only the notifications end these waits.
    let mut woken = 0;
    while woken < WAITERS {
        let count = MEMORY.notify(ADDRESS, 3.min(WAITERS - woken));
        assert!(count <= 3);
        woken += count;
        thread::yield_now();
    }
    // If a count were too high, a waiter would not return.
    for waiter in waiters {
        assert_eq!(waiter.join().unwrap(), Waited::Ok);
    }
    println!("{woken} threads were woken, each of them counted once");
}
