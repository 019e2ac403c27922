//! Robust mutexes on the real kernel: deaths at each step, by SIGKILL and by the end of a thread;
//! the list shared with glibc's own mutexes; and what each operation returns.

mod answers;
mod deaths;
mod list;

use super::step::{self, Step};
use super::{RawRobustMutex, RobustError, RobustKind, RobustLocked, RobustProtocol};
use crate::sys::clock::Deadline;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use waitword_testkit::{Child, Ended, Mapping, Way, child::die, fork, sleeps, until, watch};

const PROTOCOLS: [RobustProtocol; 2] = [RobustProtocol::None, RobustProtocol::Inherit];

/// Memory that the processes of a test share.
#[repr(C)]
struct Shared {
    mutex: RawRobustMutex,
    /// The number of threads between lock and unlock: 0 or 1 at a time.
    inside: AtomicU32,
    /// Turns taken. Not incremented in one step: the mutex makes the increment atomic.
    turns: AtomicU32,
    /// How many times a lock returned `OwnerDied`.
    reports: AtomicU32,
    /// Deaths of threads that held the mutex.
    deaths: AtomicU32,
    /// Messages between a test and its children.
    stage: [AtomicU32; 4],
    /// Tells the children to end.
    stop: AtomicU32,
}

impl Shared {
    /// Allocated in memory that forked children share; never unmapped.
    fn new(kind: RobustKind, protocol: RobustProtocol) -> &'static Self {
        let shared: *mut Self = Mapping::anonymous(4096).leak().cast();
        // SAFETY: zeros are all that a `Shared` needs besides its mutex.
        unsafe {
            (&raw mut (*shared).mutex).write(RawRobustMutex::new(kind, protocol));
            &*shared
        }
    }

    /// Locks the mutex, waiting at most a minute, so that a test that has found a bug still ends.
    fn lock(&self) -> Result<RobustLocked, RobustError> {
        // SAFETY: never unmapped.
        unsafe { self.mutex.lock_until(Deadline::after(Duration::from_secs(60))) }
    }

    /// One turn: lock, check that no other thread is inside, unlock. False if anything is wrong.
    fn turn(&self) -> bool {
        let locked = self.lock();
        match locked {
            Ok(RobustLocked::Clean) => {}
            Ok(RobustLocked::OwnerDied) => {
                self.reports.fetch_add(1, SeqCst);
                // The dead thread may have been inside.
                self.inside.store(0, SeqCst);
                if self.mutex.mark_consistent().is_err() {
                    return false;
                }
            }
            Err(_) => return false,
        }
        let alone = self.inside.swap(1, SeqCst) == 0;
        let turns = self.turns.load(SeqCst);
        std::hint::spin_loop();
        self.turns.store(turns + 1, SeqCst);
        self.inside.store(0, SeqCst);
        alone && unlock(&self.mutex).is_ok()
    }

    /// Takes one more turn, which reports any death that is still due, and checks that all counts
    /// match.
    #[track_caller]
    fn finish(&self) {
        assert!(self.turn());
        assert_eq!(self.mutex.holder(), 0);
        assert_eq!(self.reports.load(SeqCst), self.deaths.load(SeqCst));
    }

    /// Sends a message on a stage.
    fn say(&self, stage: usize, what: u32) {
        self.stage[stage].store(what, SeqCst);
    }

    /// Waits for a message on a stage.
    fn hear(&self, stage: usize) -> u32 {
        loop {
            match self.stage[stage].load(SeqCst) {
                0 => std::thread::sleep(Duration::from_micros(50)),
                said => return said,
            }
        }
    }
}

fn unlock(mutex: &RawRobustMutex) -> Result<(), RobustError> {
    // SAFETY: no thread here holds 2048 robust mutexes, and no mutex lies in memory that a forked
    // child has copied and in which that child unlocks it.
    unsafe { mutex.unlock() }
}

/// The memory that the hooks of this process use.
static HERE: AtomicUsize = AtomicUsize::new(0);

fn here() -> &'static Shared {
    // SAFETY: set from such a reference by `die_at` or by a test.
    unsafe { &*std::ptr::with_exposed_provenance(HERE.load(SeqCst)) }
}

fn play_on(shared: &'static Shared) {
    HERE.store((&raw const *shared).expose_provenance(), SeqCst);
}

/// In a child: kills the process when it reaches this step after `times` earlier visits.
fn die_at(shared: &'static Shared, step: Step, times: u32) {
    play_on(shared);
    step::at(step, times, note_and_die);
}

/// Counts a death if the mutex is held as its holder dies; that death must be reported later.
fn note_death() {
    let shared = here();
    if shared.mutex.is_mine() {
        shared.deaths.fetch_add(1, SeqCst);
    }
}

fn note_and_die() {
    note_death();
    die();
}

const FINE: Ended = Ended::Exited(0);
const KILLED: Ended = Ended::Killed(libc::SIGKILL);
