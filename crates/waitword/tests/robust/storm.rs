//! A storm: processes that lock, change and unlock are killed by SIGKILL at random moments, one
//! after another, and new ones start.
//!
//! Each piece of data records which process is changing it. So a process that locks a mutex without
//! an owner-died report must find its data whole and unclaimed. One that gets the report must find
//! it whole, or claimed by a killed process. Some of the mutexes are glibc's own, in the same
//! threads' lists. The parent waits for everything with a limit, and kills.

use fastrand::Rng;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};
use waitword::{Deadline, RawRobustMutex, RobustError, RobustKind, RobustLocked, RobustProtocol};
use waitword_testkit::{Child, Ended, Mapping, Watchdog, fork, watch};

const CHILDREN: usize = 4;
const MUTEXES: usize = 4;
/// How many turns must be made between two kills.
const TURNS_BETWEEN: u64 = 20;
const LIMIT: Duration = Duration::from_secs(60);

/// What a mutex protects.
#[repr(C)]
struct Data {
    ours: RawRobustMutex,
    /// Zeros until it is initialised. Which of the two mutexes protects the rest is the same for
    /// all processes.
    glibcs: [u64; 5],
    is_glibcs: AtomicU32,
    /// The process that is changing the rest; 0: none.
    by: AtomicU32,
    /// Equal while no process changes them.
    pair: [AtomicU64; 2],
}

#[repr(C)]
struct Shared {
    data: [Data; MUTEXES],
    turns: AtomicU64,
    /// How often `EOWNERDEAD` was returned.
    told: AtomicU64,
    stop: AtomicU32,
    /// The first complaint of a child: a line of this file.
    complaint: AtomicU32,
}

/// POSIX's error numbers serve both kinds of mutexes.
impl Data {
    fn glibc(&self) -> *mut libc::pthread_mutex_t {
        (&raw const self.glibcs).cast_mut().cast()
    }

    fn lock(&self, dice: u64) -> i32 {
        let soon = Deadline::after(Duration::from_micros(dice % 300));
        let limit = Deadline::after(LIMIT);
        if self.is_glibcs.load(SeqCst) == 1 {
            let until = in_10_ms();
            // SAFETY: initialised by the parent.
            return unsafe {
                match dice % 4 {
                    0 => libc::pthread_mutex_trylock(self.glibc()),
                    // Never without a deadline: glibc's own protocol can leave a sleeper behind if
                    // the woken waiter dies.
                    _ => libc::pthread_mutex_timedlock(self.glibc(), &raw const until),
                }
            };
        }
        // SAFETY: the mapping stays until the children have ended.
        let locked = unsafe {
            match dice % 4 {
                0 => self.ours.try_lock(),
                1 => self.ours.lock_until(soon),
                _ => self.ours.lock_until(limit),
            }
        };
        locked.map_or_else(RobustError::raw_os_error, RobustLocked::raw_os_error)
    }

    fn mark_consistent(&self) -> i32 {
        if self.is_glibcs.load(SeqCst) == 1 {
            // SAFETY: initialised by the parent.
            return unsafe { libc::pthread_mutex_consistent(self.glibc()) };
        }
        let marked = self.ours.mark_consistent();
        marked.map_or_else(RobustError::raw_os_error, |()| 0)
    }

    fn unlock(&self) -> i32 {
        if self.is_glibcs.load(SeqCst) == 1 {
            // SAFETY: initialised by the parent.
            return unsafe { libc::pthread_mutex_unlock(self.glibc()) };
        }
        // SAFETY: no thread here holds 2048 robust mutexes, and they lie in shared memory.
        let unlocked = unsafe { self.ours.unlock() };
        unlocked.map_or_else(RobustError::raw_os_error, |()| 0)
    }
}

impl Shared {
    fn complain(&self, line: u32) {
        let _ = self.complaint.compare_exchange(0, line, SeqCst, SeqCst);
    }

    /// Takes one mutex or two, changes the data, unlocks. Returns false after a complaint.
    fn turn(&self, me: u32, dice: u64) -> bool {
        let first = &self.data[dice as usize % MUTEXES];
        let Some(held) = self.enter(first, me, dice >> 8) else {
            return self.complaint.load(SeqCst) == 0;
        };
        if dice >> 40 & 1 == 1 {
            // In any order: a try never waits.
            let second = &self.data[(dice >> 41) as usize % MUTEXES];
            if !std::ptr::eq(first, second) {
                if let Some(held) = self.enter(second, me, 0) {
                    self.leave(second, held);
                }
            }
        }
        self.leave(first, held);
        self.turns.fetch_add(1, SeqCst);
        self.complaint.load(SeqCst) == 0
    }

    /// The value of the pair, if the mutex was locked.
    fn enter(&self, data: &Data, me: u32, dice: u64) -> Option<u64> {
        let locked = data.lock(dice);
        let pair = data.pair.each_ref().map(|half| half.load(SeqCst));
        let by = data.by.load(SeqCst);
        match locked {
            0 if by != 0 => self.complain(line!()),
            0 if pair[0] != pair[1] => self.complain(line!()),
            0 => {}
            libc::EOWNERDEAD => {
                self.told.fetch_add(1, SeqCst);
                if by == 0 && pair[0] != pair[1] || by == me {
                    self.complain(line!());
                }
                data.pair[1].store(pair[0], SeqCst);
                data.by.store(0, SeqCst);
                if data.mark_consistent() != 0 {
                    self.complain(line!());
                }
            }
            libc::EBUSY => return None,
            libc::ETIMEDOUT if dice % 4 == 1 || data.is_glibcs.load(SeqCst) == 1 => return None,
            _ => {
                self.complain(line!());
                return None;
            }
        }
        data.by.store(me, SeqCst);
        data.pair[0].store(pair[0] + 1, SeqCst);
        Some(pair[0] + 1)
    }

    fn leave(&self, data: &Data, held: u64) {
        data.pair[1].store(held, SeqCst);
        data.by.store(0, SeqCst);
        if data.unlock() != 0 {
            self.complain(line!());
        }
    }
}

/// For glibc, on the wall clock.
fn in_10_ms() -> libc::timespec {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let until = now.unwrap_or_default() + Duration::from_millis(10);
    libc::timespec { tv_sec: until.as_secs() as libc::time_t, tv_nsec: until.subsec_nanos().into() }
}

/// A child that takes turns until it is stopped or killed.
fn start(shared: &Shared, seed: u64) -> Child {
    fork(|| {
        let mut dice = Rng::with_seed(seed);
        let me = std::process::id();
        let mut fine = true;
        while fine && shared.stop.load(SeqCst) == 0 {
            fine = shared.turn(me, dice.u64(..));
        }
        fine
    })
}

fn storm(protocol: RobustProtocol, with_glibcs: bool, kills: usize, watchdog: &Watchdog) {
    let memory = Mapping::anonymous(4096);
    let address = memory.at::<Shared>(0);
    // SAFETY: zeros are a valid `Shared`, except for the mutexes, which are written before any
    // child is made.
    let shared = unsafe {
        for (index, data) in (*address).data.iter_mut().enumerate() {
            data.ours = RawRobustMutex::new(RobustKind::ErrorChecking, protocol);
            if with_glibcs && index % 2 == 1 {
                data.is_glibcs = AtomicU32::new(1);
                let mut attributes = std::mem::zeroed();
                libc::pthread_mutexattr_init(&raw mut attributes);
                libc::pthread_mutexattr_setrobust(&raw mut attributes, libc::PTHREAD_MUTEX_ROBUST);
                libc::pthread_mutexattr_setpshared(
                    &raw mut attributes,
                    libc::PTHREAD_PROCESS_SHARED,
                );
                libc::pthread_mutex_init(data.glibc(), &raw const attributes);
            }
        }
        &*address
    };
    let mut dice = Rng::with_seed(1);
    let mut children: Vec<_> = (0..CHILDREN).map(|_| start(shared, dice.u64(..))).collect();
    for kill in 0..kills {
        watchdog.pat();
        // The survivors make progress. Then one more random moment.
        let (begin, before) = (Instant::now(), shared.turns.load(SeqCst));
        while shared.turns.load(SeqCst) < before + TURNS_BETWEEN {
            let complaint = shared.complaint.load(SeqCst);
            assert_eq!(complaint, 0, "a child complains in this line");
            assert!(begin.elapsed() < LIMIT, "nothing gets done after {kill} kills");
            std::thread::yield_now();
        }
        for _ in 0..dice.u32(0..2_000) {
            std::hint::spin_loop();
        }
        let index = dice.usize(0..CHILDREN);
        let killed = children.swap_remove(index);
        killed.signal(libc::SIGKILL);
        let by_itself = killed.ended() != Ended::Killed(libc::SIGKILL);
        let complaint = shared.complaint.load(SeqCst);
        assert!(!by_itself, "a child has ended by itself: line {complaint}");
        children.push(start(shared, dice.u64(..)));
    }
    shared.stop.store(1, SeqCst);
    for child in children {
        assert_eq!(child.join(), 0, "line {}", shared.complaint.load(SeqCst));
    }
    // What the last dead processes have left.
    for data in &shared.data {
        let held = shared.enter(data, std::process::id(), 2);
        shared.leave(data, held.expect("free"));
        assert!(!data.ours.is_locked());
    }
    assert_eq!(shared.complaint.load(SeqCst), 0);
    // Each process dies once, with two mutexes at most.
    let told = shared.told.load(SeqCst);
    assert!(told <= 2 * kills as u64, "{told} reports of {kills} deaths");
    eprintln!("{kills} kills, {told} mutexes lost and found, {protocol:?}");
}

const KILLS: usize = 100;

#[test]
fn of_ours() {
    storm(RobustProtocol::None, false, KILLS, &watch());
}

#[test]
fn of_ours_with_inheritance() {
    let watchdog = watch();
    storm(RobustProtocol::Inherit, false, KILLS, &watchdog);
}

/// Every second mutex is glibc's.
#[test]
fn of_ours_and_glibcs() {
    let watchdog = watch();
    storm(RobustProtocol::None, true, KILLS, &watchdog);
    storm(RobustProtocol::Inherit, true, KILLS, &watchdog);
}
