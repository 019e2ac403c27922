//! Primitives in memory that processes share; processes that are killed.

use crate::far;
use rustix::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use waitword::{AutoEvent, Barrier, Event, Latch, Scope, Semaphore, probe};
use waitword_testkit::{Child, Mapping, child::Status, fork, memory_file, watch};

/// All primitives, side by side, as processes that trust each other lay them out.
#[repr(C)]
struct Everything {
    semaphore: Semaphore,
    barrier: Barrier,
    event: Event,
    auto_event: AutoEvent,
    latch: Latch,
    counter: AtomicUsize,
}

/// A file in memory that holds them, and this process's mapping of it.
struct SharedFile {
    file: OwnedFd,
    here: Mapping,
}

const LENGTH: usize = 4096;

impl SharedFile {
    /// With a barrier for `threads`, and a latch with that count.
    fn new(threads: u32) -> Self {
        let file = memory_file(LENGTH);
        let here = Mapping::of_file(&file, LENGTH);
        let everything = Everything {
            semaphore: Semaphore::with_scope(0, Scope::Shared),
            barrier: Barrier::with_scope(threads, Scope::Shared),
            event: Event::with_scope(false, Scope::Shared),
            auto_event: AutoEvent::with_scope(false, Scope::Shared),
            latch: Latch::with_scope(threads, Scope::Shared),
            counter: AtomicUsize::new(0),
        };
        // SAFETY: a new mapping, which is larger than the value.
        unsafe { here.at::<Everything>(0).write(everything) };
        Self { file, here }
    }

    fn here(&self) -> &Everything {
        // SAFETY: written by `new`.
        unsafe { self.here.get(0) }
    }

    /// Forks a process that maps the file again, and so at another address.
    fn other_process<S: Status>(&self, body: impl FnOnce(&Everything) -> S) -> Child {
        fork(|| {
            let there = Mapping::of_file(&self.file, LENGTH);
            assert_ne!(there.at::<u8>(0), self.here.at::<u8>(0));
            // SAFETY: written by `new`.
            body(unsafe { there.get(0) })
        })
    }
}

#[test]
fn each_of_them_in_another_process() {
    let _watchdog = watch();
    let shared = SharedFile::new(2);
    let here = shared.here();
    let child = shared.other_process(|there| {
        there.semaphore.wait();
        there.event.wait();
        there.auto_event.wait();
        let leads = there.barrier.wait().is_leader();
        there.latch.arrive_and_wait().unwrap();
        i32::from(leads)
    });
    child.until_asleep();
    here.semaphore.post().unwrap();
    child.until_asleep();
    here.event.set();
    child.until_asleep();
    here.auto_event.set();
    let leads = i32::from(here.barrier.wait().is_leader());
    here.latch.arrive_and_wait().unwrap();
    assert_eq!(child.join() + leads, 1);
    assert!(here.barrier.destroy());
    assert_eq!(here.semaphore.value(), 0);
    assert!(!here.auto_event.is_set());
}

#[test]
fn in_turns() {
    let _watchdog = watch();
    const ROUNDS: usize = 2000;
    const PROCESSES: u32 = 3;
    let shared = SharedFile::new(PROCESSES);
    let take_part = |all: &Everything| {
        for round in 1..=ROUNDS {
            all.counter.fetch_add(1, SeqCst);
            all.barrier.wait();
            if all.counter.load(SeqCst) < round * PROCESSES as usize {
                return 11;
            }
        }
        all.latch.arrive_and_wait().unwrap();
        0
    };
    let children: Vec<_> = (1..PROCESSES).map(|_| shared.other_process(take_part)).collect();
    assert_eq!(take_part(shared.here()), 0);
    for child in children {
        child.succeeds();
    }
    assert!(shared.here().barrier.destroy());
}

/// A waiter that is killed takes no token with it. It stays counted, which only costs a wake call.
#[test]
fn a_killed_waiter_takes_nothing_with_it() {
    let _watchdog = watch();
    let shared = SharedFile::new(2);
    let here = shared.here();
    let [killed, patient] = [(); 2].map(|()| {
        let child = shared.other_process(|there| {
            there.semaphore.wait();
            there.auto_event.wait();
            there.event.wait();
        });
        child.until_asleep();
        child
    });
    // Dropped: killed and reaped.
    drop(killed);
    assert!(format!("{:?}", here.semaphore).contains("waiters: 2"));
    here.semaphore.post().unwrap();
    patient.until_asleep();
    here.auto_event.set();
    patient.until_asleep();
    here.event.set();
    patient.succeeds();
    for _ in 0..10 {
        here.semaphore.post().unwrap();
        assert!(here.semaphore.try_wait());
    }
    assert!(!here.semaphore.try_wait());
    assert!(format!("{:?}", here.semaphore).contains("waiters: 1"));
}

/// Kills at random moments: waiters and posters come and go, and in the end what was posted can be
/// taken. Each process counts a post before it posts, and a token after it has taken it.
#[test]
fn a_storm_of_kills() {
    let _watchdog = watch();
    let shared = SharedFile::new(2);
    let here = shared.here();
    for turn in 0..40 {
        let killed: Vec<_> = (0..3)
            .map(|kind| {
                shared.other_process(move |there| {
                    for round in 0.. {
                        match (kind + round) % 3 {
                            0 => there.semaphore.wait(),
                            _ => there.semaphore.post().unwrap(),
                        }
                    }
                })
            })
            .collect();
        std::thread::sleep(Duration::from_micros(200 + turn * 50));
        drop(killed);
        // Whatever they left, the processes that are alive continue.
        let child = shared.other_process(|there| {
            there.semaphore.wait();
        });
        here.semaphore.post().unwrap();
        child.succeeds();
        while here.semaphore.try_wait() {}
    }
}

/// A poster that is killed between its change and its wake call: the sleepers check again by
/// themselves.
#[test]
fn a_wake_call_that_never_comes() {
    let _watchdog = watch();
    let shared = SharedFile::new(2);
    let here = shared.here();
    // Each in a process of its own, asleep.
    let mut waits: Vec<fn(&Everything) -> bool> = vec![
        |all| all.semaphore.wait_until(far()),
        |all| all.event.wait_until(far()),
        |all| all.auto_event.wait_until(far()),
        |all| all.latch.wait_until(far()),
        |all| !all.barrier.wait().is_leader(),
    ];
    if probe::futex_waitv().is_there() {
        waits.push(|all| all.semaphore.wait_interruptible(None).is_ok());
    }
    let children = waits.into_iter().map(|wait| {
        let child = shared.other_process(wait);
        child.until_asleep();
        child
    });
    let children: Vec<_> = children.collect();
    // The changes that the posts, the sets, the counts and the last arrival make, without their
    // wakes.
    let change = |word: *const u8, by: u64| {
        // SAFETY: each begins with its word, which has 64 bits.
        unsafe { AtomicU64::from_ptr(word.cast_mut().cast()) }.fetch_add(by, SeqCst);
    };
    change((&raw const here.semaphore).cast(), 2);
    change((&raw const here.event).cast(), 1);
    change((&raw const here.auto_event).cast(), 1);
    let one_arrival = 1 << 32;
    change((&raw const here.barrier).cast(), 1u64.wrapping_sub(one_arrival));
    // SAFETY: a latch is one 32-bit word.
    let latch = unsafe { AtomicU32::from_ptr((&raw const here.latch).cast_mut().cast()) };
    latch.fetch_sub(2, SeqCst);
    for child in children {
        child.succeeds();
    }
}
