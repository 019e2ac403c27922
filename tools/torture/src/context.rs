//! What all threads of a scenario share: seed, time, board, the names of words.

use crate::board::Board;
use crate::choices::Choices;
use crate::count::{Count, Totals};
use crate::fault::kind::Fault;
use crate::seed::{mix, mix_with};
use crate::slice::Slice;
use crate::spot::{Spot, Word};
use serde::{Deserialize, Serialize};
use std::sync::Mutex;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};
use waitword::Scope;

/// The result of a scenario. An error describes what was violated.
pub(crate) type Verdict = Result<(), String>;

/// See the module documentation. One for each process that runs a scenario; never freed.
pub(crate) struct Context {
    pub(crate) slice: Slice,
    /// The seed that all choices derive from.
    pub(crate) seed: u64,
    pub(crate) choices: Choices,
    pub(crate) ends: Instant,
    pub(crate) board: &'static Board,
    /// The file that the board lies in.
    pub(crate) board_file: i32,
    /// How many rounds have begun.
    pub(crate) round: AtomicU64,
    /// A word's number is its index plus 1; number 0 means no word.
    pub(crate) words: Mutex<Vec<(String, Spot)>>,
    /// The words that are the first of an object of the C library.
    pub(crate) objects: Mutex<Vec<NamedObject>>,
    /// Live forked processes. They are killed on the way out.
    pub(crate) children: [AtomicI32; 64],
}

/// An object of the C library, for the report.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NamedObject {
    /// The number of its first word.
    pub(crate) number: u32,
    pub(crate) address: usize,
    pub(crate) bytes: usize,
}

/// A fraction of a second of torture. At its end, threads are joined and counters checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Round {
    pub(crate) number: u64,
    pub(crate) threads: usize,
    pub(crate) seed: u64,
}

impl Round {
    /// Random choices for the round as a whole.
    pub(crate) fn dice(&self) -> fastrand::Rng {
        fastrand::Rng::with_seed(self.seed)
    }

    /// The seed of one thread's choices.
    pub(crate) fn seed_of(&self, role: &str, index: usize) -> u64 {
        mix(mix_with(self.seed, role) ^ index as u64)
    }
}

impl Context {
    /// How long a scenario may be without progress before it counts as hung.
    pub(crate) fn patience(&self) -> Duration {
        Duration::from_secs_f64(self.slice.patience)
    }

    pub(crate) fn has(&self, fault: Fault) -> bool {
        self.slice.faults.contains(&fault)
    }

    /// The next round, until time is up. There is always a first one. One of the round's choices is
    /// how long waiters spin.
    pub(crate) fn next_round(&self) -> Option<Round> {
        let number = self.round.fetch_add(1, SeqCst);
        let is_last = match self.slice.rounds {
            0 => Instant::now() >= self.ends,
            rounds => number >= rounds,
        };
        if number > 0 && is_last {
            return None;
        }
        if number > 0 {
            let place = self.board.join("rounds");
            place.count(Count::Rounds, 1);
            place.leave();
        }
        let (name, threads) = (mix_with(0, &self.slice.scenario), &self.slice.threads);
        let round = Round {
            number,
            threads: threads[number as usize % threads.len()],
            seed: mix(self.seed ^ name ^ number.rotate_left(32)),
        };
        // Asleep at once, after a short spin, or after a spin that outlasts most waits.
        let spin = [0, 10, 10, 100][round.dice().usize(0..4)];
        waitword::spin::set_budget(Duration::from_micros(spin));
        self.choices.note(format_args!("{round:?}, waiters spin for {spin} µs"));
        Some(round)
    }

    /// How many threads the current round has.
    pub(crate) fn threads_of_round(&self) -> usize {
        let number = self.round.load(SeqCst).saturating_sub(1) as usize;
        self.slice.threads[number % self.slice.threads.len()]
    }

    /// A private word of `bits` bits, named for the report.
    pub(crate) fn private_word(&self, name: &str, bits: u32) -> Spot {
        self.name_word(name, Self::new_word(bits), Scope::Private)
    }

    /// A word of `bits` bits, with 64 bytes to itself.
    pub(crate) fn new_word(bits: u32) -> Word {
        let memory: &'static mut [u64; 8] = Box::leak(Box::new([0; 8]));
        // SAFETY: leaked, aligned for all sizes, and used as this word only.
        unsafe { Word::at(memory.as_mut_ptr().cast(), bits) }
    }

    /// Private words of these sizes that hash to the same bucket of the table.
    ///
    /// This knows the table's hash (the upper bits of the address times 2^64 over the golden
    /// ratio). If that changes, the words no longer share a bucket: there is less pressure, but
    /// nothing goes wrong.
    pub(crate) fn colliding_words(&self, name: &str, sizes: &[u32]) -> Vec<Spot> {
        /// Holds as long as the table has at most 2^12 buckets.
        const BITS: u32 = 12;
        const LINES: usize = 1 << 17;
        let slab: &'static mut [u64] = Box::leak(vec![0; LINES].into_boxed_slice());
        let bucket =
            |address: usize| (address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - BITS);
        let wanted = bucket(slab.as_ptr().addr());
        let mut colliding = slab
            .iter_mut()
            .map(|line| (&raw mut *line).cast::<u8>())
            .filter(|line| bucket(line.addr()) == wanted);
        let mut spot = |(index, &bits): (usize, &u32)| {
            let line = colliding.next().expect("enough words in one bucket");
            // SAFETY: leaked, aligned for all sizes, and used as this word only.
            let word = unsafe { Word::at(line, bits) };
            self.name_word(&format!("{name} {index} (same bucket)"), word, Scope::Private)
        };
        sizes.iter().enumerate().map(&mut spot).collect()
    }

    /// Gives a word a number and a name.
    pub(crate) fn name_word(&self, name: &str, word: Word, scope: Scope) -> Spot {
        let mut words = self.words.lock().expect("no thread panics while it holds it");
        let number = words.len() as u32 + 1;
        let spot = Spot { number, word, scope };
        words.push((format!("#{number} {name}, {} bits", word.bits()), spot));
        spot
    }

    /// Records that a word is the first of an object.
    pub(crate) fn name_object(&self, number: u32, address: *const u8, bytes: usize) {
        let object = NamedObject { number, address: address.expose_provenance(), bytes };
        let mut objects = self.objects.lock().expect("no thread panics while it holds it");
        objects.push(object);
    }

    pub(crate) fn totals(&self) -> Totals {
        self.board.totals()
    }

    /// Checks that, since `before`, exactly as many waits returned Ok as wakes counted waiters.
    pub(crate) fn balance(&self, before: &Totals) -> Verdict {
        let change = self.totals().since(before);
        let (woken, counted) = (change.of(Count::Woken), change.of(Count::Wakes));
        if woken == counted {
            return Ok(());
        }
        Err(format!("{woken} waits returned Ok, but wakes counted {counted}"))
    }
}
