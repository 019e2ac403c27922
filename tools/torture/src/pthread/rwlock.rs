//! Tortured: reader/writer locks of all three kinds, private and shared, made with attributes and
//! with static initialisers: reading, reading again, writing, with deadlines on both clocks, naps
//! while they are held, nested, with more readers than writers in one round and fewer in the next.
//!
//! Checked: no thread writes while another reads or writes, every write is counted once, every
//! thread that waits without a deadline ends, no deadline is early, a writer that locks again gets
//! an error, and each lock can be destroyed at the end.

use super::abi;
use super::object::{Object, error_name, zero};
use super::until::{Until, some_clock};
use crate::actor::{Actor, Verdict};
use crate::context::Context;
use crate::count::Count;
use crate::parts::books::Books;
use crate::parts::turns::{self, Locked, Turns};
use libc::{EBUSY, EDEADLK, ETIMEDOUT, c_int, pthread_rwlock_t};
use std::mem::MaybeUninit;

const TURNS: usize = 3_000;
/// How many locks there are in a round, at most.
const AT_ONCE: usize = 3;
/// `PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP`: a reader must not read again.
const WRITERS_FIRST: c_int = 2;
/// The offset of the kind in a static initialiser.
const KIND_AT: usize = 48;

#[derive(Clone, Copy, Debug)]
struct Sort {
    kind: c_int,
    shared: bool,
    by_initialiser: bool,
}

impl Sort {
    fn all() -> impl Iterator<Item = Self> {
        (0..=WRITERS_FIRST).flat_map(|kind| {
            [(false, false), (false, true), (true, false)].map(|(shared, by_initialiser)| Self {
                kind,
                shared,
                by_initialiser,
            })
        })
    }

    fn name(self) -> String {
        let first = if self.kind == WRITERS_FIRST {
            "writers"
        } else {
            "readers"
        };
        let shared = if self.shared { ", shared" } else { "" };
        let made = if self.by_initialiser {
            ", by initialiser"
        } else {
            ""
        };
        format!("rwlock of kind {}, {first} first{shared}{made}", self.kind)
    }
}

/// A lock, made again for each round at the same place, and what it protects.
struct Guarded {
    sort: Sort,
    object: Object,
    books: Books,
}

impl Guarded {
    fn new(context: &Context, sort: Sort) -> Result<Self, String> {
        let this = Self {
            sort,
            object: Object::new(context, &sort.name(), sort.shared),
            books: Books::default(),
        };
        this.make()?;
        Ok(this)
    }

    fn lock(&self) -> *mut pthread_rwlock_t {
        self.object.at()
    }

    fn make(&self) -> Verdict {
        self.object.fill(0xa5);
        // SAFETY: unused memory for a lock; attributes are initialised, used and destroyed.
        unsafe {
            if self.sort.by_initialiser {
                self.lock().write_bytes(0, 1);
                let kind = self.lock().byte_add(KIND_AT).cast::<c_int>();
                kind.write(self.sort.kind);
                return Ok(());
            }
            let mut attributes = MaybeUninit::uninit();
            libc::pthread_rwlockattr_init(attributes.as_mut_ptr());
            abi::pthread_rwlockattr_setkind_np(attributes.as_mut_ptr(), self.sort.kind);
            if self.sort.shared {
                let shared = libc::PTHREAD_PROCESS_SHARED;
                libc::pthread_rwlockattr_setpshared(attributes.as_mut_ptr(), shared);
            }
            let made = libc::pthread_rwlock_init(self.lock(), attributes.as_ptr());
            libc::pthread_rwlockattr_destroy(attributes.as_mut_ptr());
            zero("pthread_rwlock_init", made)
        }
    }

    /// Takes it in one way or another. Returns whether it could be taken.
    fn get(&self, actor: &mut Actor, to_write: bool) -> Result<bool, String> {
        let lock = self.lock();
        let way = actor.dice.u32(0..10);
        let until = (way >= 7).then(|| {
            let clock = some_clock(&mut actor.dice);
            Until::tiny(&mut actor.dice, clock)
        });
        let answer = self
            .object
            .wait(actor, until.is_some(), || match (&until, way) {
                // SAFETY: it was made, and `until` outlives the call.
                (None, 0) => unsafe {
                    match to_write {
                        true => libc::pthread_rwlock_trywrlock(lock),
                        false => libc::pthread_rwlock_tryrdlock(lock),
                    }
                },
                // SAFETY: as above.
                (None, _) => unsafe {
                    match to_write {
                        true => libc::pthread_rwlock_wrlock(lock),
                        false => libc::pthread_rwlock_rdlock(lock),
                    }
                },
                (Some(until), way) => {
                    let time = &raw const until.time;
                    let by_name = way == 7 && until.clock == libc::CLOCK_REALTIME;
                    // SAFETY: as above.
                    unsafe {
                        match (to_write, by_name) {
                            (true, true) => abi::pthread_rwlock_timedwrlock(lock, time),
                            (false, true) => abi::pthread_rwlock_timedrdlock(lock, time),
                            (true, false) => {
                                abi::pthread_rwlock_clockwrlock(lock, until.clock, time)
                            }
                            (false, false) => {
                                abi::pthread_rwlock_clockrdlock(lock, until.clock, time)
                            }
                        }
                    }
                }
            });
        match (answer, until) {
            (0, _) => {
                self.object.held();
                Ok(true)
            }
            (EBUSY, None) if way == 0 => Ok(false),
            (ETIMEDOUT, Some(until)) if until.has_passed(actor) => {
                actor.count(Count::Timeouts, 1);
                Ok(false)
            }
            (ETIMEDOUT, Some(_)) => Err("it timed out too early".to_owned()),
            (number, _) => Err(format!("it was not taken: {}", error_name(number))),
        }
    }

    /// Checks the errors that a writer gets.
    fn ask(&self) -> Verdict {
        let lock = self.lock();
        // SAFETY: it was made; a writer gets an answer at once.
        let answers = unsafe {
            [
                libc::pthread_rwlock_wrlock(lock),
                libc::pthread_rwlock_rdlock(lock),
                libc::pthread_rwlock_trywrlock(lock),
                libc::pthread_rwlock_tryrdlock(lock),
            ]
        };
        match answers == [EDEADLK, EDEADLK, EBUSY, EBUSY] {
            true => Ok(()),
            false => Err(format!("it answers its writer {answers:?}")),
        }
    }
}

impl Locked for Guarded {
    /// Whether it is held for writing.
    type Held = bool;

    fn name(&self) -> String {
        self.sort.name()
    }

    fn books(&self) -> &Books {
        &self.books
    }

    fn take(&self, actor: &mut Actor, readers: u32) -> Result<Option<bool>, String> {
        let writes = actor.dice.u32(0..16) >= readers;
        Ok(self.get(actor, writes)?.then_some(writes))
    }

    fn stay(&self, actor: &mut Actor, writes: bool) -> Verdict {
        match writes {
            true => self.books.change(actor),
            false => self.books.look(actor),
        }
    }

    fn go_on(&self, actor: &mut Actor, writes: bool) -> Result<bool, String> {
        match actor.dice.u32(0..16) {
            0 if writes => self.ask()?,
            // A lock that prefers writers may refuse to let any thread read again.
            0 if self.sort.kind != WRITERS_FIRST && self.get(actor, false)? => {
                self.stay(actor, false)?;
                self.give_back(actor, false)?;
            }
            _ => {}
        }
        Ok(writes)
    }

    fn give_back(&self, actor: &mut Actor, _writes: bool) -> Verdict {
        if actor.leaves_out() {
            actor.keeps(self.object.spot);
        }
        self.object.given_back();
        // SAFETY: held.
        zero("unlock", unsafe {
            libc::pthread_rwlock_unlock(self.lock())
        })
    }

    fn renew(&self) -> Verdict {
        // SAFETY: it is not in use.
        let answer = unsafe { libc::pthread_rwlock_destroy(self.lock()) };
        zero("destroy, though it is not in use", answer)?;
        self.make()
    }
}

pub(super) fn run(context: &'static Context) -> Verdict {
    let all = Sort::all()
        .map(|sort| Guarded::new(context, sort))
        .collect::<Result<Vec<_>, _>>()?;
    while let Some(round) = context.next_round() {
        let mut dice = round.dice();
        let chosen = turns::some(&mut dice, &all, AT_ONCE);
        let turns = Turns {
            readers: [2, 10, 14, 15, 15][dice.usize(0..5)],
            ..Turns::of(round.threads, TURNS)
        };
        turns::round(context, round, turns, &chosen, &|_, _| Ok(()))?;
    }
    Ok(())
}
