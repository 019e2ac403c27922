//! Robust mutexes on the real kernel: deaths at each step, by SIGKILL and by the end of a thread;
//! the list shared with glibc's own mutexes; and what each operation returns.

mod answers;
mod deaths;
mod list;

use super::step::{self, Step};
use super::{RawRobustMutex, RobustError, RobustKind, RobustLocked, RobustProtocol};
use crate::lock::pi::watchdog::{sleeps, until, watch};
use crate::sys::clock::Deadline;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

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
        // SAFETY: a new mapping, wherever there is room.
        let memory = unsafe {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
            libc::mmap(std::ptr::null_mut(), 4096, access, flags, -1, 0)
        };
        assert_ne!(memory, libc::MAP_FAILED);
        let shared: *mut Self = memory.cast();
        // SAFETY: zeros are all that a `Shared` needs besides its mutex.
        unsafe {
            (&raw mut (*shared).mutex).write(RawRobustMutex::new(kind, protocol));
            &*shared
        }
    }

    /// Locks the mutex, waiting at most a minute, so that a test that has found a bug still ends.
    fn lock(&self) -> Result<RobustLocked, RobustError> {
        // SAFETY: never unmapped.
        unsafe {
            self.mutex
                .lock_until(Deadline::after(Duration::from_secs(60)))
        }
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
    // SAFETY: kills this process.
    unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
}

/// Another process; killed and reaped on drop.
struct Child {
    id: i32,
    reaped: bool,
}

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    Exited(i32),
    Killed(i32),
}

/// Exit status of a child that did what it should.
const FINE: i32 = 0;
const WRONG: i32 = 1;

/// Forks a process that runs `body` and exits with its result. `body` must not allocate or take
/// locks of the C library: other threads of this process may have held them at the fork.
fn fork(body: impl FnOnce() -> bool) -> Child {
    // SAFETY: the child calls `body`, restricted as described above, and leaves by `_exit`.
    match unsafe { libc::fork() } {
        -1 => panic!("fork: {}", std::io::Error::last_os_error()),
        0 => {
            // SAFETY: plain system calls. A child must not outlive a test that hangs or was killed.
            unsafe {
                libc::alarm(90);
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            }
            let body = std::panic::AssertUnwindSafe(body);
            let fine = std::panic::catch_unwind(body).unwrap_or(false);
            // SAFETY: `_exit` runs no cleanup of the copied process.
            unsafe { libc::_exit(if fine { FINE } else { WRONG }) }
        }
        id => Child { id, reaped: false },
    }
}

impl Child {
    /// Waits for the child to end. A child that does not end fails the test and is killed on drop.
    #[track_caller]
    fn ended(mut self) -> Ended {
        let begin = Instant::now();
        let mut status = 0;
        // SAFETY: a child of ours, not yet reaped.
        while unsafe { libc::waitpid(self.id, &raw mut status, libc::WNOHANG) } == 0 {
            assert!(
                begin.elapsed() < Duration::from_secs(45),
                "a child hangs: {}",
                self.describe()
            );
            std::thread::sleep(Duration::from_micros(100));
        }
        self.reaped = true;
        if libc::WIFSIGNALED(status) {
            Ended::Killed(libc::WTERMSIG(status))
        } else {
            Ended::Exited(libc::WEXITSTATUS(status))
        }
    }

    /// Kills the child, whatever it is doing.
    fn kill(&self) {
        // SAFETY: a child of ours, not yet reaped.
        unsafe { libc::kill(self.id, libc::SIGKILL) };
    }

    fn until_asleep(&self) {
        until(|| sleeps(self.id as u32));
    }

    fn describe(&self) -> String {
        std::fs::read_to_string(format!("/proc/{}/syscall", self.id)).unwrap_or_default()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if !self.reaped {
            self.kill();
            // SAFETY: a child of ours, not yet reaped.
            unsafe { libc::waitpid(self.id, std::ptr::null_mut(), 0) };
        }
    }
}

const KILLED: Ended = Ended::Killed(libc::SIGKILL);
