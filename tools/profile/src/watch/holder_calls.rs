//! In which system calls the holders of locks sleep.
//!
//! A process cannot see that of its own threads without stopping them. Another one can, in
//! `/proc/PID/task/TID/syscall`. It writes the call into the holder's ring, and the recorder adds
//! it to the waits that this holder ends.
//!
//! ```text
//!   this process                        the holder
//!                                       takes the lock, sleeps in fsync
//!   finds a thread that waits for it
//!   t = now
//!   reads "74 ..." in /proc
//!   ring.call = fsync, ring.call_at = t
//!                                       releases the lock: call_at is not before
//!                                       the wait began, so the wait has the call
//! ```
//!
//! These are samples: a sleep that is shorter than the time between two looks is found now and
//! then. What is found is true: the thread slept in that call at a time when another one waited.

use crate::now;
use crate::remote::{Call, call_of};
use crate::wait_for::Recorded;
use core::mem::offset_of;
use std::collections::HashSet;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use waitword_record::format::{PAGE, RING_BYTES, Ring};

/// The threads that hold a lock which another one waits for, and do not wait themselves. The
/// recorder follows those that do to the end of the chain.
fn holders(threads: &[Recorded]) -> impl Iterator<Item = &Recorded> {
    let wanted: HashSet<u64> = threads
        .iter()
        .filter_map(|thread| thread.waiting.filter(|wait| wait.object.is_lock()))
        .map(|wait| wait.address)
        .collect();
    threads.iter().filter(move |thread| {
        thread.waiting.is_none() && thread.held.iter().any(|(lock, _)| wanted.contains(lock))
    })
}

/// Notes in the rings in which call each holder sleeps. `rings` may be written.
pub(super) fn note(pid: u32, threads: &[Recorded], rings: &File) {
    for holder in holders(threads) {
        let at = now();
        let Some(Call::In { number, .. }) = call_of(pid, holder.thread) else {
            continue;
        };
        let ring = PAGE + holder.ring * RING_BYTES;
        let write = |field: usize, value: &[u8]| {
            // An error: the recording has been cut off, so nobody will read this.
            let _ = rings.write_all_at(value, (ring + field) as u64);
        };
        write(offset_of!(Ring, call), &number.saturating_add(1).to_ne_bytes());
        write(offset_of!(Ring, call_at), &at.to_ne_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wait_for::Waiting;
    use std::os::fd::AsRawFd as _;
    use waitword_record::format::Object;

    fn thread(ring: usize, waits_for: Option<(Object, u64)>, held: &[u64]) -> Recorded {
        let waiting = waits_for.map(|(object, address)| Waiting {
            object,
            address,
            since: 1,
            has_deadline: false,
        });
        Recorded {
            ring,
            thread: 100 + ring as u32,
            waiting,
            held: held.iter().map(|&lock| (lock, false)).collect(),
            held_count: held.len() as u32,
        }
    }

    #[test]
    fn only_the_end_of_a_chain_holds_up_others() {
        let threads = [
            thread(0, Some((Object::Mutex, 0x10)), &[]),
            thread(1, Some((Object::Mutex, 0x20)), &[0x10]),
            thread(2, None, &[0x30, 0x20]),
            thread(3, None, &[0x40]),
            thread(4, Some((Object::Condvar, 0x40)), &[]),
        ];
        let found: Vec<usize> = holders(&threads).map(|thread| thread.ring).collect();
        assert_eq!(found, [2]);
    }

    #[test]
    fn the_call_of_a_sleeping_holder_is_in_its_ring() {
        let _watchdog = waitword_testkit::watch();
        let rings = tempfile::tempfile().unwrap();
        rings.set_len((PAGE + 2 * RING_BYTES) as u64).unwrap();
        let (reader, _writer) = std::io::pipe().unwrap();
        let (send, tid) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let asleep = scope.spawn(move || {
                send.send(nix::unistd::gettid().as_raw() as u32).unwrap();
                let mut byte = 0_u8;
                // SAFETY: one byte, which may be written.
                unsafe { libc::read(reader.as_raw_fd(), (&raw mut byte).cast(), 1) }
            });
            let holder = Recorded { thread: tid.recv().unwrap(), ..thread(1, None, &[0x10]) };
            let threads = [thread(0, Some((Object::Mutex, 0x10)), &[]), holder];
            let before = now();
            let field = |field| {
                let mut bytes = [0; 8];
                rings.read_exact_at(&mut bytes, (PAGE + RING_BYTES + field) as u64).unwrap();
                u64::from_ne_bytes(bytes)
            };
            while field(offset_of!(Ring, call_at)) < before {
                note(std::process::id(), &threads, &rings);
            }
            assert_eq!(field(offset_of!(Ring, call)) as u32, libc::SYS_read as u32 + 1);
            drop(_writer);
            assert_eq!(asleep.join().unwrap(), 0);
        });
    }
}
