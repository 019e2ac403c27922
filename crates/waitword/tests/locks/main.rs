//! Mutexes and condition variables of every flavour, kind and scope: the answer of each call,
//! exclusion, no waiter left asleep, and bugs of other implementations.

mod answers;
mod condvar;
mod condvar_races;
mod exclusion;
mod guards;
mod historic;
mod interrupts;
mod processes;
mod real_time;

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use waitword::{
    Deadline, Kind, LockError, PosixFlavour, PosixMutexOptions, RawCondvar, RawPosixMutex, Scope,
};
use waitword_testkit::watch;

const FLAVOURS: [PosixFlavour; 4] = [
    PosixFlavour::Adaptive,
    PosixFlavour::Throughput,
    PosixFlavour::WaitWake,
    PosixFlavour::PriorityInheriting,
];
const KINDS: [Kind; 3] = [Kind::Normal, Kind::Recursive, Kind::ErrorChecking];
const SCOPES: [Scope; 2] = [Scope::Private, Scope::Shared];

/// A kind of mutex: all that is chosen when it is made.
#[derive(Clone, Copy, Debug)]
struct Sort {
    flavour: PosixFlavour,
    kind: Kind,
    scope: Scope,
}

impl Sort {
    fn make(self) -> RawPosixMutex {
        let Self { flavour, kind, scope } = self;
        let options = PosixMutexOptions::new().flavour(flavour).kind(kind).scope(scope);
        options.build_raw()
    }

    fn is_pi(self) -> bool {
        self.flavour == PosixFlavour::PriorityInheriting
    }

    /// Whether it knows which thread holds it.
    fn has_owner(self) -> bool {
        self.is_pi() || self.kind != Kind::Normal
    }

    /// How many entries a thread that waits for it has in our table.
    fn entries(self) -> usize {
        usize::from(self.scope == Scope::Private && !self.is_pi())
    }
}

/// All sorts. Under ThreadSanitizer without the kernel's, because it does not see what the kernel
/// orders (`scripts/sanitizers`).
fn every_sort() -> impl Iterator<Item = Sort> {
    let kernels_too = std::env::var_os("WAITWORD_TESTS_WITHOUT_PI").is_none();
    let is_wanted =
        move |flavour: &PosixFlavour| kernels_too || *flavour != PosixFlavour::PriorityInheriting;
    FLAVOURS.into_iter().filter(is_wanted).flat_map(|flavour| {
        KINDS.into_iter().flat_map(move |kind| {
            SCOPES.into_iter().map(move |scope| Sort { flavour, kind, scope })
        })
    })
}

/// Those that any thread can lock and unlock in the same way: one of each flavour and scope.
fn every_normal_sort() -> impl Iterator<Item = Sort> {
    every_sort().filter(|sort| sort.kind == Kind::Normal)
}

/// Runs `test` for each with a watchdog, and reports which one fails.
#[track_caller]
fn with_every<S: Copy + std::fmt::Debug + std::panic::RefUnwindSafe>(
    sorts: impl Iterator<Item = S>,
    test: impl Fn(S) + std::panic::RefUnwindSafe,
) {
    let watchdog = watch();
    for sort in sorts {
        if let Err(complaint) = std::panic::catch_unwind(|| test(sort)) {
            eprintln!("this was: {sort:?}");
            std::panic::resume_unwind(complaint);
        }
        watchdog.pat();
    }
}

fn unlock(mutex: &RawPosixMutex) {
    // SAFETY: every caller has locked it.
    unsafe { mutex.unlock() };
}

/// A condvar of this scope for a mutex of this sort.
#[derive(Clone, Copy, Debug)]
struct Pairing {
    mutex: Sort,
    condvar: Scope,
}

impl Pairing {
    fn make(self) -> Pair {
        Pair {
            mutex: self.mutex.make(),
            condvar: RawCondvar::with_scope(self.condvar),
            ready: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
        }
    }

    /// Whether its waiters are queued in our table.
    fn is_in_table(self) -> bool {
        self.condvar == Scope::Private && !self.mutex.is_pi()
    }

    /// How many entries a thread that waits on it has in our table.
    fn entries(self) -> usize {
        usize::from(self.is_in_table())
    }
}

/// All pairings.
fn every_pairing() -> impl Iterator<Item = Pairing> {
    every_sort().flat_map(|mutex| SCOPES.into_iter().map(move |condvar| Pairing { mutex, condvar }))
}

/// One of each flavour and scope.
fn every_normal_pairing() -> impl Iterator<Item = Pairing> {
    every_pairing().filter(|pairing| pairing.mutex.kind == Kind::Normal)
}

/// A mutex, a condvar, and what is waited for.
struct Pair {
    mutex: RawPosixMutex,
    condvar: RawCondvar,
    /// Changed with the mutex held.
    ready: AtomicUsize,
    waiting: AtomicUsize,
}

impl Pair {
    /// With the mutex held: one wait.
    fn wait_until(&self, deadline: Option<Deadline>) -> Result<(), LockError> {
        // SAFETY: the mutex is held, and there is no other.
        unsafe { self.condvar.wait(&self.mutex, deadline.as_ref()) }
    }

    /// Waits exactly once. Returns the wait's answer.
    fn wait_once(&self, deadline: Option<Deadline>) -> Result<(), LockError> {
        self.mutex.lock();
        let result = self.wait_until(deadline);
        unlock(&self.mutex);
        result
    }

    /// Waits until something is ready, and takes it.
    fn take(&self) {
        self.mutex.lock();
        self.waiting.fetch_add(1, SeqCst);
        while self.ready.load(SeqCst) == 0 {
            self.wait_until(None).unwrap();
        }
        self.waiting.fetch_sub(1, SeqCst);
        self.ready.fetch_sub(1, SeqCst);
        unlock(&self.mutex);
    }

    /// Makes `count` more ready.
    fn add(&self, count: usize) {
        self.mutex.lock();
        self.ready.fetch_add(count, SeqCst);
        unlock(&self.mutex);
    }

    /// Blocks until `count` threads are about to take. Since the mutex was held after they
    /// announced that, they wait.
    fn until_waiting(&self, count: usize) {
        loop {
            self.mutex.lock();
            let waiting = self.waiting.load(SeqCst);
            unlock(&self.mutex);
            if waiting == count {
                return;
            }
            std::thread::yield_now();
        }
    }
}
