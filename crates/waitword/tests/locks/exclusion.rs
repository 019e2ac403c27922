//! Exclusion, no waiter left asleep, and the last user may free the memory: under load, for every
//! flavour, kind and scope.

use super::*;
use fastrand::Rng;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::cell::UnsafeCell;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::time::{Duration, Instant};
use waitword_testkit::Mapping;

/// A mutex and what it protects: two numbers that must never be seen to differ.
struct Guarded {
    mutex: RawPosixMutex,
    pair: UnsafeCell<[usize; 2]>,
}

// SAFETY: a thread that uses the pair holds the mutex; whether that is enough is what is tested.
unsafe impl Sync for Guarded {}

impl Guarded {
    fn new(sort: Sort) -> Self {
        Self { mutex: sort.make(), pair: UnsafeCell::new([0; 2]) }
    }

    /// With the mutex held.
    fn change(&self, dice: &mut Rng) {
        let pair = self.pair.get();
        // SAFETY: the mutex is held. Volatile: each half must be read and written exactly here.
        unsafe {
            let before = (&raw const (*pair)[0]).read_volatile();
            (&raw mut (*pair)[0]).write_volatile(before + 1);
            dawdle(dice);
            let other = (&raw const (*pair)[1]).read_volatile();
            assert_eq!(other, before, "two threads are in it");
            (&raw mut (*pair)[1]).write_volatile(before + 1);
        }
    }

    /// A turn, in one way or another. Returns whether the mutex could be taken.
    fn turn(&self, dice: &mut Rng) -> bool {
        let had = match dice.u64(0..8) {
            0 => self.mutex.try_lock(),
            1 | 2 => {
                let soon = Deadline::after(Duration::from_nanos(dice.u64(0..40_000)));
                match self.mutex.lock_until(soon) {
                    Ok(()) => true,
                    Err(LockError::TimedOut) => false,
                    Err(error) => panic!("{error}"),
                }
            }
            _ => {
                self.mutex.lock();
                true
            }
        };
        if had {
            self.change(dice);
            // SAFETY: locked above.
            unsafe {
                match dice.u64(0..16) {
                    0 => self.mutex.unlock_fair(),
                    1 => {
                        self.mutex.bump();
                        self.mutex.unlock();
                    }
                    _ => self.mutex.unlock(),
                }
            }
        }
        had
    }

    /// After the last of `turns` turns: checks that none is missing, and that no trace of the
    /// waiters is left.
    fn over(&self, turns: usize) {
        self.mutex.lock();
        // SAFETY: the mutex is held.
        assert_eq!(unsafe { *self.pair.get() }, [turns; 2]);
        unlock(&self.mutex);
        assert_eq!(self.mutex.destroy(), Ok(()), "{:?}", self.mutex);
    }
}

fn dawdle(dice: &mut Rng) {
    match dice.u64(0..256) {
        0 => std::thread::sleep(Duration::from_micros(dice.u64(0..100))),
        1..8 => std::thread::yield_now(),
        8..32 => (0..dice.u64(0..300)).for_each(|_| std::hint::spin_loop()),
        _ => {}
    }
}

/// `threads` threads take turns for this long, and at least one each; `first` is what each does
/// before.
fn torture(sort: Sort, threads: usize, time: Duration, first: impl Fn(usize) + Sync) {
    let guarded = Guarded::new(sort);
    let until = Instant::now() + time;
    let turns = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|worker| {
                let (guarded, first) = (&guarded, &first);
                scope.spawn(move || {
                    first(worker);
                    let mut dice = Rng::with_seed(worker as u64);
                    let mut turns = 0;
                    while turns == 0 || Instant::now() < until {
                        turns += usize::from(guarded.turn(&mut dice));
                    }
                    turns
                })
            })
            .collect();
        let turns = workers.into_iter().map(|worker| worker.join().unwrap());
        turns.sum()
    });
    guarded.over(turns);
}

fn torture_with(threads: usize) {
    with_every(every_sort(), |sort| {
        let time = match sort.kind {
            Kind::Normal => Duration::from_millis(100),
            _ => Duration::from_millis(40),
        };
        torture(sort, threads, time, |_| {});
    });
}

#[test]
fn two_threads_exclude_each_other() {
    torture_with(2);
}

#[test]
fn four_threads_exclude_each_other() {
    torture_with(4);
}

#[test]
fn sixteen_threads_exclude_each_other() {
    torture_with(16);
}

/// On one CPU no spinning thread is ever let in, and the holder may have lost the CPU to waiters.
#[test]
fn threads_of_one_cpu_exclude_each_other() {
    let cpus = some_cpus();
    with_every(every_normal_sort(), |sort| {
        torture(sort, 4, Duration::from_millis(60), |_| {
            sched_setaffinity(None, &cpus[0]).unwrap();
        });
    });
}

/// Two on each of two CPUs, so that each successor has a competitor on its CPU.
#[test]
fn threads_bound_to_cpus_exclude_each_other() {
    let cpus = some_cpus();
    with_every(every_normal_sort(), |sort| {
        torture(sort, 4, Duration::from_millis(60), |worker| {
            sched_setaffinity(None, &cpus[worker % cpus.len()]).unwrap();
        });
    });
}

/// The first two CPUs that we may use, or the only one.
fn some_cpus() -> Vec<CpuSet> {
    let allowed = sched_getaffinity(None).unwrap();
    let cpus = (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu));
    let alone = |cpu| {
        let mut one = CpuSet::new();
        one.set(cpu);
        one
    };
    cpus.take(2).map(alone).collect()
}

/// All but one have deadlines that pass while they wait, as they are woken, as they become the
/// successor.
#[test]
fn a_storm_of_deadlines_leaves_no_thread_asleep() {
    with_every(every_normal_sort(), |sort| {
        const TURNS: usize = 300;
        let guarded = Guarded::new(sort);
        let over = AtomicBool::new(false);
        let had = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for worker in 1..5 {
                let (guarded, over, had) = (&guarded, &over, &had);
                scope.spawn(move || {
                    let mut dice = Rng::with_seed(worker);
                    while !over.load(SeqCst) {
                        let soon = Duration::from_nanos(dice.u64(0..60_000));
                        if guarded.mutex.lock_until(Deadline::after(soon)).is_ok() {
                            guarded.change(&mut dice);
                            had.fetch_add(1, SeqCst);
                            unlock(&guarded.mutex);
                        }
                    }
                });
            }
            // Without a deadline: this one must always be woken.
            let mut dice = Rng::with_seed(7);
            for _ in 0..TURNS {
                guarded.mutex.lock();
                guarded.change(&mut dice);
                unlock(&guarded.mutex);
                dawdle(&mut dice);
            }
            over.store(true, SeqCst);
        });
        guarded.over(TURNS + had.load(SeqCst));
    });
}

/// A thread that takes the mutex again and again does not keep others out forever, for the flavours
/// that promise this.
#[test]
fn a_waiter_gets_its_turn_beside_a_hog() {
    let fair = every_normal_sort().filter(|sort| sort.flavour != PosixFlavour::WaitWake);
    with_every(fair, |sort| {
        let guarded = Guarded::new(sort);
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let hog = scope.spawn(|| {
                let (mut turns, mut dice) = (0, Rng::with_seed(0));
                while !over.load(SeqCst) {
                    guarded.mutex.lock();
                    guarded.change(&mut dice);
                    unlock(&guarded.mutex);
                    turns += 1;
                }
                turns
            });
            let mut dice = Rng::with_seed(1);
            for _ in 0..50 {
                guarded.mutex.lock();
                guarded.change(&mut dice);
                unlock(&guarded.mutex);
            }
            over.store(true, SeqCst);
            let turns = 50 + hog.join().unwrap();
            guarded.over(turns);
        });
    });
}

/// Each round has a page of its own, which is unmapped with the last turn: a late access is a
/// crash. (glibc 13690: `pthread_mutex_unlock` accessed the mutex after it had released it, when
/// the next holder may have freed it. Its fix of 2014 had this shape: a reference count protected
/// by a lock.)
#[test]
fn the_last_user_unmaps_it() {
    const THREADS: u32 = 4;
    const ROUNDS: usize = 1_000;
    struct Page {
        mutex: RawPosixMutex,
        turns: AtomicU32,
    }
    with_every(every_sort(), |sort| {
        let rounds = if sort.kind == Kind::Normal { ROUNDS } else { ROUNDS / 4 };
        let (begin, end) = (Barrier::new(THREADS as usize), Barrier::new(THREADS as usize));
        let page = std::sync::Mutex::new(None);
        let work = |worker: u32| {
            for round in 0..rounds {
                if worker == 0 {
                    let mapping = Mapping::anonymous(4096);
                    let start = mapping.at::<Page>(0);
                    // SAFETY: a fresh page.
                    unsafe {
                        start.write(Page { mutex: sort.make(), turns: AtomicU32::new(0) });
                    }
                    *page.lock().unwrap() = Some(mapping);
                }
                begin.wait();
                let start: *const Page = page.lock().unwrap().as_ref().unwrap().at(0);
                end.wait();
                // SAFETY: mapped until the last turn has been taken, by this thread or a later one.
                let Page { mutex, turns } = unsafe { &*start };
                mutex.lock();
                let is_last = turns.fetch_add(1, SeqCst) + 1 == THREADS;
                // SAFETY: locked above.
                unsafe {
                    match round % 3 {
                        0 => mutex.unlock_fair(),
                        _ => mutex.unlock(),
                    }
                }
                if is_last {
                    // Unmapped right here.
                    drop(page.lock().unwrap().take());
                }
                begin.wait();
            }
        };
        std::thread::scope(|scope| {
            (0..THREADS).for_each(|worker| drop(scope.spawn(move || work(worker))));
        });
    });
}
