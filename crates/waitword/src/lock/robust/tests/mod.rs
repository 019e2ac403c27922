//! Robust mutexes on the real kernel: deaths at each step, by SIGKILL and by the end of a thread, the list in company
//! with glibc's own mutexes, and what each operation answers.

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

/// What the processes of a test share.
#[repr(C)]
struct Shared {
    mutex: RawRobustMutex,
    /// Who is between lock and unlock: 0 or 1 at a time.
    inside: AtomicU32,
    /// Turns that were taken. Not counted in one step: the mutex makes it one.
    turns: AtomicU32,
    /// `OwnerDied` that somebody heard.
    reports: AtomicU32,
    /// Deaths of those who held the mutex.
    deaths: AtomicU32,
    /// Whatever a test says to its children, and they to it.
    stage: [AtomicU32; 4],
    /// The children are to end.
    stop: AtomicU32,
}

impl Shared {
    /// In memory that forked children share; never unmapped.
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

    /// Locks, waiting at most a minute, so that a test which has found a bug still ends.
    fn lock(&self) -> Result<RobustLocked, RobustError> {
        // SAFETY: never unmapped.
        unsafe {
            self.mutex
                .lock_until(Deadline::after(Duration::from_secs(60)))
        }
    }

    /// One turn: lock, see that nobody else is inside, unlock. False if anything is wrong.
    fn turn(&self) -> bool {
        let locked = self.lock();
        match locked {
            Ok(RobustLocked::Clean) => {}
            Ok(RobustLocked::OwnerDied) => {
                self.reports.fetch_add(1, SeqCst);
                // The dead may have been inside.
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

    /// A turn now, in which a death that is due is reported; then all must add up.
    #[track_caller]
    fn finish(&self) {
        assert!(self.turn());
        assert_eq!(self.mutex.holder(), 0);
        assert_eq!(self.reports.load(SeqCst), self.deaths.load(SeqCst));
    }

    /// Says something on a stage.
    fn say(&self, stage: usize, what: u32) {
        self.stage[stage].store(what, SeqCst);
    }

    /// Waits until something is said on a stage.
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
    // SAFETY: no thread here holds 2048 robust mutexes, and none lies in memory of which a fork has
    // a copy and unlocks it.
    unsafe { mutex.unlock() }
}

/// The memory that the hooks of this process look at.
static HERE: AtomicUsize = AtomicUsize::new(0);

fn here() -> &'static Shared {
    // SAFETY: set by `die_at` or by a test from such a reference.
    unsafe { &*std::ptr::with_exposed_provenance(HERE.load(SeqCst)) }
}

fn play_on(shared: &'static Shared) {
    HERE.store((&raw const *shared).expose_provenance(), SeqCst);
}

/// In a child: has it killed where it comes to this step, after so many times.
fn die_at(shared: &'static Shared, step: Step, times: u32) {
    play_on(shared);
    step::at(step, times, note_and_die);
}

/// Notes whether the mutex is held as its holder dies, which is then to be reported.
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

/// Another process; killed and reaped when this goes.
struct Child {
    id: i32,
    reaped: bool,
}

/// How a child has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    Exited(i32),
    Killed(i32),
}

/// What a child did as it should: its exit status.
const FINE: i32 = 0;
const WRONG: i32 = 1;

/// Forks a process that runs `body` and exits with what it returns. `body` must not allocate nor take locks of
/// the C library: other threads of this process may have held them as it was copied.
fn fork(body: impl FnOnce() -> bool) -> Child {
    // SAFETY: the child calls `body`, restricted as said above, and leaves by `_exit`.
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
            // SAFETY: nothing of the copied process is run down.
            unsafe { libc::_exit(if fine { FINE } else { WRONG }) }
        }
        id => Child { id, reaped: false },
    }
}

impl Child {
    /// Waits for its end. One that does not end is killed and reported.
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

    /// Kills it, at whatever it is.
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
