//! Checks that a contender does its work at all before it is measured: a lock that locks nothing
//! would be the fastest.
//!
//! A workload's counters only reveal errors in what it did. One thread that locks an uncontended
//! lock cannot distinguish it from nothing, and two that pass a turn to each other do not need a
//! wait that waits. So a thread here does something that must keep it waiting, and is observed
//! asleep (or, at a lock that never sleeps, spinning). Then it is let through, and it must proceed.
//! If it never does, progress stops, and the watchdog reports it.
//!
//! Done once for each contender, outside the timed part.

use crate::crew::Crew;
use crate::harness::{Contender, Context, Failure, Measured, check};
use crate::locks::barrier::BenchBarrier;
use crate::locks::semaphore::BenchSemaphore;
use crate::locks::{BenchCondvar, BenchMutex, BenchRwLock};
use crate::ops::{BenchWord, Futexes, Waited};
use crate::workload::herd::Herd;
use crate::workload::words::{Spacing, Words};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// A contender that `crew` measures, and that must pass `proof` with the same crew before.
pub(super) fn proved_by(
    crew: &Rc<Crew>,
    name: &str,
    proof: impl Fn(&Crew, &Context) -> Result<(), Failure> + 'static,
    mut body: impl FnMut(&Crew, &Context) -> Result<Measured, Failure> + 'static,
) -> Contender {
    let (provers, crew) = (crew.clone(), crew.clone());
    let proof = move |context: &Context| proof(&provers, context);
    proved(name, proof, move |context| body(&crew, context))
}

/// A contender that must pass `proof` before its first measurement.
pub(super) fn proved(
    name: impl Into<String>,
    proof: impl Fn(&Context) -> Result<(), Failure> + 'static,
    mut body: impl FnMut(&Context) -> Result<Measured, Failure> + 'static,
) -> Contender {
    let mut passed = false;
    Contender::named(name, move |context: &Context| {
        if !passed {
            proof(context)?;
            passed = true;
        }
        body(context)
    })
}

/// A waiter that never sleeps counts as waiting once it has spun for this much of its own CPU time.
const SPIN: Duration = Duration::from_millis(10);
/// The same by the clock, if the kernel does not report a thread's CPU time.
const SPIN_BY_THE_CLOCK: Duration = Duration::from_secs(1);

/// The first thread of `crew` does `enter`, which must not return until `let_in` is called.
fn keeps_out(
    crew: &Crew,
    context: &Context,
    what: &str,
    enter: impl Fn() + Send + Sync + 'static,
    let_in: impl FnOnce(),
) -> Result<(), Failure> {
    let seen = Arc::new([AtomicBool::new(false), AtomicBool::new(false)]);
    let theirs = seen.clone();
    crew.start(move |number| {
        if number == 0 {
            let [arrived, came_in] = &*theirs;
            arrived.store(true, SeqCst);
            enter();
            came_in.store(true, SeqCst);
        }
    });
    let [arrived, came_in] = &*seen;
    crew.until(context, || arrived.load(SeqCst))?;
    let (since, before) = (Instant::now(), crew.ran_for(0));
    let spun = || match before.zip(crew.ran_for(0)) {
        Some((before, now)) => now - before > SPIN,
        None => since.elapsed() > SPIN_BY_THE_CLOCK,
    };
    crew.until_all_sleep_or(1, context, || came_in.load(SeqCst) || spun())?;
    let too_early = came_in.load(SeqCst);
    let_in();
    crew.finish(context)?;
    check(!too_early, || format!("{what} kept no thread waiting"))
}

/// A mutex excludes, and its `try_lock` reports it correctly.
pub(super) fn mutex<M: BenchMutex>(crew: &Crew, context: &Context) -> Result<(), Failure> {
    let lock = Arc::new(M::new());
    check(lock.try_lock(), || "an unlocked mutex could not be locked".to_owned())?;
    // SAFETY: locked above; inside an `Arc`, it does not move.
    unsafe { lock.unlock() };
    lock.lock();
    let was_had = Arc::new(AtomicBool::new(false));
    let (theirs, had) = (lock.clone(), was_had.clone());
    let enter = move || {
        if theirs.try_lock() {
            had.store(true, SeqCst);
        } else {
            theirs.lock();
        }
        // SAFETY: locked above; inside an `Arc`, it does not move.
        unsafe { theirs.unlock() };
    };
    // SAFETY: locked above; inside an `Arc`, it does not move.
    let let_in = || unsafe { lock.unlock() };
    keeps_out(crew, context, "a locked mutex", enter, let_in)?;
    check(!was_had.load(SeqCst), || "a locked mutex could be locked again".to_owned())
}

/// A writer excludes readers and writers, and a reader excludes writers.
pub(super) fn rwlock<L: BenchRwLock>(crew: &Crew, context: &Context) -> Result<(), Failure> {
    fn read<L: BenchRwLock>(lock: &L) {
        lock.read_lock();
        // SAFETY: locked above; it stays borrowed, so it does not move; this thread holds no other.
        unsafe { lock.read_unlock() };
    }
    fn write<L: BenchRwLock>(lock: &L) {
        lock.write_lock();
        // SAFETY: locked above; it stays borrowed, so it does not move.
        unsafe { lock.write_unlock() };
    }
    let lock = Arc::new(L::new());
    for (enter, what) in [
        (read::<L> as fn(&L), "a write lock against readers"),
        (write::<L>, "a write lock against writers"),
    ] {
        let theirs = lock.clone();
        lock.write_lock();
        // SAFETY: locked above; inside an `Arc`, it does not move.
        let let_in = || unsafe { lock.write_unlock() };
        keeps_out(crew, context, what, move || enter(&theirs), let_in)?;
    }
    let theirs = lock.clone();
    lock.read_lock();
    // SAFETY: locked above; inside an `Arc`, it does not move; this thread holds no other.
    let let_in = || unsafe { lock.read_unlock() };
    let enter = move || write(&*theirs);
    keeps_out(crew, context, "a read lock against writers", enter, let_in)
}

/// Spurious wake-ups allowed until the waiter is observed asleep.
const SPURIOUS: u64 = 100;

/// A condition variable's mutex excludes; a waiter sleeps, and is woken by a signal and by a
/// broadcast.
pub(super) fn condvar<C: BenchCondvar>(crew: &Crew, context: &Context) -> Result<(), Failure> {
    mutex::<C::Mutex>(crew, context)?;
    wakes::<C>(crew, context, C::signal)?;
    wakes::<C>(crew, context, C::broadcast)
}

/// A condition variable, its mutex, and the awaited condition.
struct Wait<C: BenchCondvar> {
    mutex: C::Mutex,
    condvar: C,
    go: AtomicBool,
    /// How often the wait was entered.
    waits: AtomicU64,
}

fn wakes<C: BenchCondvar>(crew: &Crew, context: &Context, wake: fn(&C)) -> Result<(), Failure> {
    let wait = Arc::new(Wait::<C> {
        mutex: C::Mutex::new(),
        condvar: C::new(),
        go: AtomicBool::new(false),
        waits: AtomicU64::new(0),
    });
    let theirs = wait.clone();
    crew.start(move |number| {
        if number == 0 {
            let wait = &*theirs;
            wait.mutex.lock();
            while !wait.go.load(SeqCst) {
                wait.waits.fetch_add(1, SeqCst);
                // SAFETY: locked above, and again each time this returns; inside an `Arc`, it does
                // not move.
                unsafe { wait.condvar.wait(&wait.mutex) };
            }
            // SAFETY: as above.
            unsafe { wait.mutex.unlock() };
        }
    });
    let waits = || wait.waits.load(SeqCst);
    crew.until(context, || waits() > 0)?;
    // Do not wait for a waiter that never sleeps.
    crew.until_all_sleep_or(1, context, || waits() > SPURIOUS)?;
    let returned = waits() - 1;
    wait.mutex.lock();
    wait.go.store(true, SeqCst);
    // SAFETY: locked above; inside an `Arc`, it does not move.
    unsafe { wait.mutex.unlock() };
    wake(&wait.condvar);
    crew.finish(context)?;
    check(returned < SPURIOUS, || format!("an unsignalled wait returned {returned} times"))
}

/// A semaphore of value 0 keeps a thread waiting until it is posted.
pub(super) fn semaphore<S: BenchSemaphore>(crew: &Crew, context: &Context) -> Result<(), Failure> {
    let semaphore = Arc::new(S::new(1));
    semaphore.wait();
    let theirs = semaphore.clone();
    let enter = move || theirs.wait();
    let let_in = || semaphore.post();
    keeps_out(crew, context, "a semaphore of value 0", enter, let_in)
}

/// The first thread at a barrier for two waits for the second.
pub(super) fn barrier<B: BenchBarrier>(crew: &Crew, context: &Context) -> Result<(), Failure> {
    let barrier = Arc::new(B::new(2));
    let theirs = barrier.clone();
    let enter = move || {
        theirs.wait();
    };
    let let_in = || {
        barrier.wait();
    };
    keeps_out(crew, context, "a barrier", enter, let_in)
}

/// A futex's wait sleeps while the word holds the expected value, and does not when it holds
/// another; wake, requeue and wake_op find the sleepers.
pub(super) fn futex<F: Futexes>(
    futex: F,
    private: bool,
    crew: &Crew,
    context: &Context,
) -> Result<(), Failure> {
    let size = crew.size();
    let words = Arc::new(Words::<F::Word>::new(2, Spacing::Apart, private));
    let (first, second) = (&words[0], &words[1]);
    let asleep = || Herd::asleep(crew, futex, &words, 1, context);

    check(futex.wait(first, 1) == Waited::Mismatch, || {
        "a wait with a wrong value did not report a mismatch".to_owned()
    })?;
    let herd = asleep()?;
    let woken = futex.wake(first, usize::MAX);
    herd.finish(woken, context)?;

    let herd = asleep()?;
    let moved = futex.requeue(first, second, 0, usize::MAX);
    let left = futex.wake(first, usize::MAX);
    let woken = futex.wake(second, usize::MAX);
    // The kernel cannot move waiters of only a part of its 32 bits; they are woken instead.
    let is_part = !private && F::Word::BITS < u32::BITS;
    check(left == 0 && (woken == size || is_part), || {
        format!(
            "of {size} sleepers, requeue reported {moved} moved; {left} had stayed, {woken} had \
             arrived"
        )
    })?;
    herd.finish(moved, context)?;

    // `wake_op` wakes one on the first word; the rest are woken by hand.
    second.store(2);
    let herd = asleep()?;
    let woken = futex.wake_op(first, second);
    let others = futex.wake(first, usize::MAX);
    check(woken == 1 && second.load() == 0, || {
        format!("wake_op woke {woken} of {size} and left {} in the other word", second.load())
    })?;
    herd.finish(woken + others, context)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::Kernel;
    use crate::settings::Settings;
    use crate::workload::futexes::kernel_and_all_widths;

    const SHARED: bool = false;

    fn context() -> Context {
        Context::new(Settings::default(), Arc::default())
    }

    fn is_one<F: Futexes>(one: F, private: bool) {
        let context = context();
        for size in [1, 4] {
            let crew = Crew::new(size, &context).unwrap();
            let proved = futex(one, private, &crew, &context);
            assert_eq!(proved, Ok(()), "{}, {size} threads", one.name());
        }
    }

    #[test]
    fn the_kernels_futex_is_one_and_every_shared_one_is() {
        let _guard = waitword_testkit::watch();
        // Without our private futexes: other tests' threads come and go in their table.
        is_one(Kernel::<true>, true);
        kernel_and_all_widths!(SHARED, |futex| is_one(futex, SHARED));
    }

    /// Waits without ever sleeping.
    struct Spins(AtomicBool);

    // SAFETY: taken by an atomic swap, by one thread at a time.
    unsafe impl BenchMutex for Spins {
        const NAME: &'static str = "spins";
        fn new() -> Self {
            Self(AtomicBool::new(false))
        }
        fn lock(&self) {
            while !self.try_lock() {
                std::thread::yield_now();
            }
        }
        fn try_lock(&self) -> bool {
            !self.0.swap(true, SeqCst)
        }
        unsafe fn unlock(&self) {
            self.0.store(false, SeqCst);
        }
    }

    #[test]
    fn a_lock_that_never_sleeps_is_a_lock() {
        let _guard = waitword_testkit::watch();
        let context = context();
        let crew = Crew::new(1, &context).unwrap();
        assert_eq!(mutex::<Spins>(&crew, &context), Ok(()));
    }

    #[test]
    fn only_what_passes_is_measured_and_passes_once() {
        let context = context();
        let proofs = Arc::new(AtomicU64::new(0));
        let theirs = proofs.clone();
        let measured = || {
            Ok(Measured {
                values: Vec::new(),
                operations: 0,
                usage: crate::usage::Usage::default(),
            })
        };
        let proof = move |_: &Context| {
            let passed = theirs.fetch_add(1, SeqCst) > 0;
            check(passed, || "not yet".to_owned())
        };
        let mut contender = proved("some", proof, move |_| measured());
        let failure = contender.variant.measure(&context).unwrap_err();
        assert_eq!(failure, Failure::new("not yet"));
        for _ in 0..3 {
            assert_eq!(contender.variant.measure(&context), measured());
        }
        assert_eq!(proofs.load(SeqCst), 2);
    }
}
