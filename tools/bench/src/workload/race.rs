//! Threads that start together, and the moment when the last of them has ended.
//!
//! ```text
//! main                                  thread i
//! ----                                  --------
//! start the job                         bind itself; get ready; sleep at the line
//! until all are ready, and asleep
//! read usage and clock
//! open the line: wake all               run
//! do the caller's `meanwhile`           the last to end reads clock and usage
//! until all sleep again
//! ```
//!
//! Between the two readings are the threads' wake-up, which is the same for all contenders, and
//! their run. What a thread does before the line (touching a stack for the first time, a move to
//! another CPU) is not in the figures.

use crate::cpus::{allowed_cpus, run_on};
use crate::crew::Crew;
use crate::harness::{Context, Failure};
use crate::ops::{Futexes, Kernel};
use crate::usage::Usage;
use crate::workload::timing::nanoseconds;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// The line: in the kernel's global table, apart from the measured waits (see [`crate::crew`]).
const LINE: Kernel<false> = Kernel;
const OPEN: u32 = 1;
/// How many threads are observed asleep at the line. With thousands of threads, checking each would
/// take longer than the race. The remaining threads, which are asleep or about to be, have that
/// time to get there.
const LOOKED_AT: usize = 64;

/// Where the threads run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// All on the same CPU.
    OneCpu,
    /// Thread i on CPU i modulo the number of CPUs.
    Spread,
    /// Placed by the scheduler.
    Free,
}

impl Place {
    fn bind(self, number: usize, cpus: &[usize]) {
        match self {
            Self::OneCpu => run_on(&cpus[..1]),
            Self::Spread => run_on(&[cpus[number % cpus.len()]]),
            Self::Free => {}
        }
    }
}

/// The cost, from the opening of the line until the last thread has ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Took {
    pub(super) nanoseconds: f64,
    /// Of the whole process.
    pub(super) usage: Usage,
}

#[derive(Clone, Copy)]
struct Reading {
    time: Instant,
    usage: Usage,
}

impl Reading {
    fn now() -> Self {
        Self { usage: Usage::now(), time: Instant::now() }
    }
}

struct Shared {
    ready: AtomicUsize,
    line: AtomicU32,
    running: AtomicUsize,
    end: Mutex<Option<Reading>>,
}

/// Each thread of `crew` does `prepare` and, when all have, `run`; both receive its number. The
/// caller does `meanwhile` as soon as the line is open, for example to end a run after a time.
///
/// # Errors
/// If a thread panicked.
pub(super) fn race(
    crew: &Crew,
    place: Place,
    context: &Context,
    prepare: impl Fn(usize) + Send + Sync + 'static,
    run: impl Fn(usize) + Send + Sync + 'static,
    meanwhile: impl FnOnce(),
) -> Result<Took, Failure> {
    let size = crew.size();
    let shared = Arc::new(Shared {
        ready: AtomicUsize::new(0),
        line: AtomicU32::new(0),
        running: AtomicUsize::new(size),
        end: Mutex::new(None),
    });
    let (theirs, cpus) = (shared.clone(), allowed_cpus());
    crew.start(move |number| {
        place.bind(number, &cpus);
        prepare(number);
        theirs.wait_at_the_line();
        run(number);
        theirs.ended();
        if place != Place::Free {
            run_on(&cpus);
        }
    });
    crew.until(context, || shared.ready.load(SeqCst) == size)?;
    crew.until_all_sleep(size.min(LOOKED_AT), context)?;
    let start = Reading::now();
    shared.line.store(OPEN, SeqCst);
    LINE.wake(&shared.line, usize::MAX);
    meanwhile();
    crew.finish(context)?;
    let end = *shared.end.lock().unwrap_or_else(PoisonError::into_inner);
    let end = end.ok_or_else(|| Failure::new("no thread was the last to end"))?;
    Ok(Took { nanoseconds: nanoseconds(start.time, end.time), usage: end.usage - start.usage })
}

impl Shared {
    fn wait_at_the_line(&self) {
        self.ready.fetch_add(1, SeqCst);
        while self.line.load(SeqCst) != OPEN {
            LINE.wait(&self.line, 0);
        }
    }

    fn ended(&self) {
        if self.running.fetch_sub(1, SeqCst) == 1 {
            *self.end.lock().unwrap_or_else(PoisonError::into_inner) = Some(Reading::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;
    use std::time::Duration;

    fn context() -> Context {
        Context::new(Settings::default(), Arc::default())
    }

    #[test]
    fn no_thread_runs_before_all_are_ready_and_the_last_one_counts() {
        let _guard = waitword_testkit::watch();
        let context = context();
        let crew = Crew::new(5, &context).unwrap();
        let (ready, early) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (prepared, seen, count) = (ready.clone(), ready.clone(), early.clone());
        let nap = Duration::from_millis(20);
        let took = race(
            &crew,
            Place::Spread,
            &context,
            move |_| {
                prepared.fetch_add(1, SeqCst);
            },
            move |number| {
                count.fetch_add(usize::from(seen.load(SeqCst) != 5), SeqCst);
                if number == 3 {
                    std::thread::sleep(nap);
                }
            },
            || (),
        )
        .unwrap();
        assert_eq!((ready.load(SeqCst), early.load(SeqCst)), (5, 0));
        assert!(took.nanoseconds >= nap.as_nanos() as f64, "{took:?}");
        assert!(took.usage.voluntary_switches > 0, "{took:?}");
    }

    #[test]
    fn a_thread_is_where_it_belongs_and_free_again_afterwards() {
        let _guard = waitword_testkit::watch();
        let context = context();
        let crew = Crew::new(2, &context).unwrap();
        let allowed = allowed_cpus();
        let seen: Arc<Mutex<Vec<Vec<usize>>>> = Arc::default();
        for place in [Place::OneCpu, Place::Spread, Place::Free] {
            let (inside, outside) = (seen.clone(), seen.clone());
            let look = move |seen: &Mutex<Vec<_>>| seen.lock().unwrap().push(allowed_cpus());
            race(&crew, place, &context, |_| (), move |_| look(&inside), || ()).unwrap();
            crew.start(move |_| look(&outside));
            crew.finish(&context).unwrap();
            let seen = std::mem::take(&mut *seen.lock().unwrap());
            let bound = match place {
                Place::OneCpu => 1,
                Place::Spread => 1,
                Place::Free => allowed.len(),
            };
            assert!(seen[..2].iter().all(|cpus| cpus.len() == bound), "{seen:?}");
            let apart = place == Place::Spread && allowed.len() > 1;
            assert_eq!(seen[0] != seen[1], apart, "{place:?}: {seen:?}");
            assert!(seen[2..].iter().all(|cpus| *cpus == allowed), "{seen:?}");
        }
    }

    #[test]
    fn a_panic_in_a_race_is_a_failure() {
        let _guard = waitword_testkit::watch();
        let context = context();
        let crew = Crew::new(2, &context).unwrap();
        let trip = |number| assert_ne!(number, 1, "number one trips");
        let failure = race(&crew, Place::Free, &context, |_| (), trip, || ()).unwrap_err();
        assert!(failure.to_string().contains("trips"), "{failure}");
    }
}
