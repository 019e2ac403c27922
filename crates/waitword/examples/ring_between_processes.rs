//! How do two processes pass messages through shared memory?
//!
//! With a ring of slots and two process-shared semaphores: one counts free slots, the other filled
//! ones. Everything lies in one memfd that both processes map, each at any address.
//!
//! ```sh
//! cargo run --example ring_between_processes
//! ```

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap};
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use waitword::{Scope, Semaphore};

const SLOTS: usize = 64;
const MESSAGES: u64 = 100_000;
/// If one process dies, the other one must not wait forever: every wait has a timeout.
const PATIENCE: Duration = Duration::from_secs(10);

#[repr(C)]
struct Ring {
    free: Semaphore,
    filled: Semaphore,
    slots: [AtomicU64; SLOTS],
}

impl Ring {
    /// Maps the ring from the memfd, at an address of this process's own.
    fn map(memory: impl AsFd) -> *mut Self {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let (size, flags) = (size_of::<Self>(), MapFlags::SHARED);
        // SAFETY: a new mapping, which replaces no other.
        let address = unsafe { mmap(null_mut(), size, access, flags, memory, 0) };
        address.expect("mmap").cast()
    }

    fn send(&self, number: u64, message: u64) {
        assert!(self.free.wait_for(PATIENCE), "no process receives");
        // Relaxed: the semaphores order this before the receiver's load.
        self.slots[number as usize % SLOTS].store(message, Ordering::Relaxed);
        self.filled.post().unwrap();
    }

    fn receive(&self, number: u64) -> u64 {
        assert!(self.filled.wait_for(PATIENCE), "no process sends");
        // Relaxed: as in `send`.
        let message = self.slots[number as usize % SLOTS].load(Ordering::Relaxed);
        self.free.post().unwrap();
        message
    }
}

fn main() {
    if std::env::args().nth(1).as_deref() == Some("receive") {
        return receive();
    }
    let memory = memfd_create("ring", MemfdFlags::CLOEXEC).unwrap();
    ftruncate(&memory, size_of::<Ring>() as u64).unwrap();
    let ring = Ring::map(&memory);
    // SAFETY: mapped, large enough and page-aligned. No other process has it yet.
    unsafe {
        ring.write(Ring {
            free: Semaphore::with_scope(SLOTS as u32, Scope::Shared),
            filled: Semaphore::with_scope(0, Scope::Shared),
            slots: [const { AtomicU64::new(0) }; SLOTS],
        });
    }
    // SAFETY: never unmapped. From here on, both processes use it through shared references only.
    let ring = unsafe { &*ring };
    let mut receiver = Command::new(std::env::current_exe().unwrap());
    receiver.arg("receive").stdin(Stdio::from(memory));
    let mut receiver = receiver.spawn().unwrap();
    (0..MESSAGES).for_each(|number| ring.send(number, number * number));
    assert!(receiver.wait().unwrap().success());
}

fn receive() {
    // The sender passes its memory to this process as standard input.
    let ring = Ring::map(std::io::stdin());
    // SAFETY: mapped, never unmapped, and initialized by the sender before it started this process.
    let ring = unsafe { &*ring };
    for number in 0..MESSAGES {
        assert_eq!(ring.receive(number), number * number);
    }
    println!("{MESSAGES} messages came through, in order");
}
