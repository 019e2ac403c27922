//! `queue`: a producer and a consumer with room for one item between them.
//!
//! **Work.** One mutex, a condition variable for each side, a slot. The producer repeats: lock;
//! wait until the slot is empty; fill it; signal; unlock. The consumer: lock; wait until it is
//! full; take the item; signal; unlock. Between two items each of them does nothing (*empty*) or a
//! little work (*filler*: pauses for 100 ns). On one CPU each, and with `--full` also both on one.
//!
//! **Reproduces** the shape of the condition variable benchmark in glibc's benchtests: producer and
//! consumer with a queue of length 1.
//!
//! **Figures.** *time*: nanoseconds per hand-off, of which an item takes two; *switches*: context
//! switches of the process per hand-off (see `workload::pairs`). Every item must arrive once and in
//! order.

use crate::crew::Crew;
use crate::harness::{Case, Contender, Workload};
use crate::locks::{BenchCondvar, BenchMutex, condvars, every_condvar};
use crate::pause::{self, pause};
use crate::settings::Settings;
use crate::workload::pairs::{self, ONE_CPU, Players, Plays, TWO_CPUS};
use crate::workload::proof;
use crate::workload::race::Place;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The workload, as selected by name.
pub const WORKLOAD: Workload = Workload {
    name: "queue",
    about: "producer and consumer by condvars, with room for one item between them",
    patch: None,
    milliseconds: 41,
    cases,
};

/// Nanoseconds of work between two items.
const FILLERS: [(&str, f64); 2] = [("empty", 0.0), ("filler", 100.0)];

fn cases(settings: &Settings) -> Vec<Case> {
    let mut places = vec![TWO_CPUS];
    if settings.full || !TWO_CPUS.fit() {
        places.push(ONE_CPU);
    }
    let batch = pairs::batch_nanoseconds(settings);
    let mut cases = Vec::new();
    for players in places.into_iter().filter(Players::fit) {
        for (what, filler) in FILLERS {
            let name = format!("{}, {what}", players.name);
            cases.push(case(name, players, filler, batch));
        }
    }
    cases
}

fn case(name: String, players: Players, filler: f64, batch: f64) -> Case {
    pairs::case(name, players, condvars(), move |crew| {
        every_condvar!(contender(crew, players.place, filler, batch))
    })
}

pub(super) fn contender<C: BenchCondvar>(
    crew: &Rc<Crew>,
    place: Place,
    filler: f64,
    batch: f64,
) -> Contender {
    let pauses = pause::for_nanoseconds(filler);
    let queue = move || Queue::<C>::new(pauses);
    pairs::contender(C::NAME, crew, place, batch, queue, proof::condvar::<C>)
}

const PRODUCER: usize = 0;
const EMPTY: u64 = 0;

/// A queue of length 1.
#[repr(align(128))]
struct Queue<C: BenchCondvar> {
    mutex: C::Mutex,
    emptied: C,
    filled: C,
    /// The item, which is not 0; or [`EMPTY`]. Relaxed, as are the two below: the mutex provides
    /// the ordering.
    slot: AtomicU64,
    /// The number of the last item put in.
    put: AtomicU64,
    /// How many items came out in order.
    taken: AtomicU64,
    filler: u32,
}

impl<C: BenchCondvar> Queue<C> {
    /// An empty queue, with this many pauses between two items.
    fn new(filler: u32) -> Self {
        Self {
            mutex: C::Mutex::new(),
            emptied: C::new(),
            filled: C::new(),
            slot: AtomicU64::new(EMPTY),
            put: AtomicU64::new(0),
            taken: AtomicU64::new(0),
            filler,
        }
    }

    #[inline(always)]
    fn put_one(&self) {
        self.mutex.lock();
        while self.slot.load(Relaxed) != EMPTY {
            // SAFETY: locked above, and again each time this returns; it stays borrowed, so it does
            // not move.
            unsafe { self.emptied.wait(&self.mutex) };
        }
        let item = self.put.load(Relaxed) + 1;
        self.put.store(item, Relaxed);
        self.slot.store(item, Relaxed);
        self.filled.signal();
        // SAFETY: as above.
        unsafe { self.mutex.unlock() };
    }

    #[inline(always)]
    fn take_one(&self) {
        self.mutex.lock();
        while self.slot.load(Relaxed) == EMPTY {
            // SAFETY: locked above, and again each time this returns; it stays borrowed, so it does
            // not move.
            unsafe { self.filled.wait(&self.mutex) };
        }
        let taken = self.taken.load(Relaxed);
        if self.slot.load(Relaxed) == taken + 1 {
            self.taken.store(taken + 1, Relaxed);
        }
        self.slot.store(EMPTY, Relaxed);
        self.emptied.signal();
        // SAFETY: as above.
        unsafe { self.mutex.unlock() };
    }
}

impl<C: BenchCondvar> Plays for Queue<C> {
    #[inline(never)]
    fn play(&self, player: usize, turns: u64) {
        for _ in 0..turns {
            if player == PRODUCER {
                self.put_one();
            } else {
                self.take_one();
            }
            pause(self.filler);
        }
    }

    fn turns(&self) -> u64 {
        self.put.load(Relaxed) + self.taken.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locks::glibc;
    use crate::workload::pairs::Pairs;
    use crate::workload::testing::{context, measured, names};

    #[test]
    fn every_contender_brings_every_item_through() {
        let _guard = waitword_testkit::watch();
        for players in [ONE_CPU, TWO_CPUS] {
            measured(case("short".to_owned(), players, 100.0, 2e5), &context());
        }
    }

    #[test]
    fn an_item_out_of_turn_is_detected() {
        let _guard = waitword_testkit::watch();
        let context = context();
        let crew = Rc::new(Crew::new(2, &context).unwrap());
        let queue = || {
            let queue = Queue::<glibc::Condvar>::new(0);
            // As if an item had been overwritten before it was taken.
            queue.put.store(1, Relaxed);
            queue
        };
        let pairs = Pairs::new(&crew, Place::OneCpu, queue);
        let failure = pairs.measure(10, &context).unwrap_err().to_string();
        assert!(failure.contains("10 hand-overs instead of 20"), "{failure}");
    }

    #[test]
    fn both_fillers_are_measured() {
        let names = |full| -> Vec<String> {
            let settings = Settings { full, ..Settings::default() };
            names(cases(&settings))
        };
        let usual = names(false);
        assert!(usual[0].ends_with("empty") && usual[1].ends_with("filler"));
        assert_eq!(usual.len(), 2);
        assert!(names(true).contains(&"one CPU, filler".to_owned()));
    }
}
