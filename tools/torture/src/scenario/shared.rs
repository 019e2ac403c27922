//! Tortured: words of all sizes in memory that several processes map, each at another address;
//! narrow words side by side in the same 32 bits.
//!
//! Checked: tokens given in one process are taken in others, and none is lost. As many waits
//! returned Ok, in all processes together, as wakes counted. Canaries beside the words keep their
//! values.

use super::traffic::{Kind, Plan, give_all, kinds, nothing_left, take_all};
use crate::actor::Verdict;
use crate::context::Context;
use crate::memory;
use crate::parts::team;
use crate::spot::{Spot, Word};
use crate::tokens::Tokens;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use waitword::{Scope, probe};

const TOKENS: usize = 4_000;
const PROCESSES: usize = 3;

/// Where the words lie, and their sizes in bits.
const WORDS: [(usize, u32); 11] = [
    (0, 8),
    (1, 8),
    (2, 8),
    (3, 8),
    (8, 16),
    (10, 16),
    (16, 32),
    (24, 32),
    (32, 64),
    (48, 64),
    (56, 64),
];
/// Those of them that can be waited for. 64 bits between processes are two words of futex_waitv,
/// which kernels before 5.16 lack.
fn words() -> impl Iterator<Item = (usize, u32)> {
    let wide = probe::futex_waitv().is_there();
    WORDS.into_iter().filter(move |&(_, bits)| wide || bits < 64)
}

/// Where 32-bit canaries lie.
const CANARIES: [usize; 5] = [4, 12, 20, 28, 40];
const CANARY: u32 = 0x5a5a_c3c3;
const PAGE: usize = 4096;

/// Shared words as this process sees them.
pub(super) struct SharedWords {
    memory: *mut u8,
    pub(super) file: i32,
    pub(super) words: Vec<Tokens>,
}

// SAFETY: the memory is accessed by atomics only.
unsafe impl Sync for SharedWords {}

impl SharedWords {
    /// Makes the memory, and names the words.
    pub(super) fn new(context: &Context) -> Self {
        Self::of_file(context, memory::file_in_memory(PAGE))
    }

    /// Names the words in such a file.
    pub(super) fn of_file(context: &Context, file: i32) -> Self {
        let memory = memory::map_file(file, PAGE);
        let name = |(offset, bits)| {
            let name = format!("shared word at {offset}");
            context.name_word(&name, word_at(memory, offset, bits), Scope::Shared)
        };
        let words = words().map(name).map(Tokens::new).collect();
        for offset in CANARIES {
            canary_at(memory, offset).store(CANARY, SeqCst);
        }
        Self { memory, file, words }
    }

    /// The same words at another address, for a forked process.
    pub(super) fn map_elsewhere(&self) -> Self {
        // The old mapping stays, so the new one is elsewhere.
        let memory = memory::map_file(self.file, PAGE);
        assert_ne!(memory, self.memory);
        let move_over = |((offset, bits), tokens): ((usize, u32), &Tokens)| Tokens {
            spot: Spot { word: word_at(memory, offset, bits), ..tokens.spot },
            ..*tokens
        };
        let words = words().zip(&self.words).map(move_over).collect();
        Self { memory, file: self.file, words }
    }

    /// Checks that no thread has written beside the words, or nonsense into them.
    pub(super) fn inspect(&self) -> Verdict {
        for offset in CANARIES {
            let found = canary_at(self.memory, offset).load(SeqCst);
            if found != CANARY {
                return Err(format!("the canary at {offset} was overwritten by {found:#x}"));
            }
        }
        for tokens in &self.words {
            let value = tokens.spot.word.load();
            if !tokens.is_sound(value) {
                return Err(format!("{:?} holds nonsense: {value:#x}", tokens.spot));
            }
        }
        Ok(())
    }

    /// Translates a kind of another mapping to this one.
    fn here(&self, (tokens, colour): Kind) -> Kind {
        let number = tokens.spot.number;
        let same = self.words.iter().find(|word| word.spot.number == number);
        (*same.expect("the same words in each process"), colour)
    }
}

fn word_at(memory: *mut u8, offset: usize, bits: u32) -> Word {
    // SAFETY: inside the mapping, aligned, apart from the others, and never unmapped.
    unsafe { Word::at(memory.add(offset), bits) }
}

fn canary_at(memory: *mut u8, offset: usize) -> &'static AtomicU32 {
    // SAFETY: as for words.
    unsafe { AtomicU32::from_ptr(memory.add(offset).cast()) }
}

pub(crate) fn run(context: &'static Context) -> Verdict {
    let shared = SharedWords::new(context);
    // Waiters are moved there and back; it holds no tokens. It is the widest word that can be
    // waited for.
    let detour = *shared.words.last().expect("some words");
    let kinds: Vec<Kind> = kinds(&shared.words)
        .into_iter()
        .filter(|(tokens, _)| tokens.spot.number != detour.spot.number)
        .collect();
    while let Some(round) = context.next_round() {
        let before = context.totals();
        let plan = &Plan::new(round, &kinds, round.threads, TOKENS);
        let shared = &shared;
        let work = |process: usize| {
            let here = &shared.map_elsewhere();
            let detour = here.here((detour, 0)).0.spot;
            context.crew(round, |crew| {
                for (index, &(kind, quota)) in plan.takers.iter().enumerate() {
                    if index % PROCESSES == process {
                        let kind = here.here(kind);
                        crew.spawn("taker", index, move |actor| {
                            take_all(actor, index, kind, quota)
                        });
                    }
                }
                for (index, gifts) in plan.givers.iter().enumerate() {
                    if index % PROCESSES == process {
                        let gifts: Vec<_> = gifts.iter().map(|&kind| here.here(kind)).collect();
                        crew.spawn("giver", index, move |actor| match index % 4 {
                            0 => give_around_all(actor, &gifts, detour),
                            _ => give_all(actor, &gifts),
                        });
                    }
                }
                Ok(())
            })
        };
        team::run(context, PROCESSES, &work)?;
        nothing_left(&shared.words)?;
        shared.inspect()?;
        context.balance(&before)?;
    }
    Ok(())
}

fn give_around_all(actor: &mut crate::actor::Actor, gifts: &[Kind], detour: Spot) -> Verdict {
    for &(tokens, colour) in gifts {
        match tokens.spot.word.bits() {
            // The kernel cannot move waiters of narrower words.
            32 | 64 => tokens.give_around(actor, colour, detour)?,
            _ => tokens.give(actor, colour)?,
        }
    }
    Ok(())
}
