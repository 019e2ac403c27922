//! Tortured: reader/writer locks of all three kinds, private and shared, made by attributes and by static initialisers: reading,
//! reading again, writing, with deadlines on both clocks, naps while they are held, one inside another, more readers than writers in
//! one round and fewer in the next.
//!
//! Checked: nobody writes while others read or write, every write is counted once, everybody who waits without a deadline comes to an
//! end, no deadline is early, a writer is told that it is one, and in the end each can be destroyed.

use super::abi;
use super::object::{Object, error_name, zero};
use super::until::{Until, some_clock};
use crate::actor::{Actor, Verdict};
use crate::board::Count;
use crate::context::Context;
use libc::{EBUSY, EDEADLK, ETIMEDOUT, c_int, pthread_rwlock_t};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

const TURNS: usize = 3_000;
/// How many locks there are in a round, at most.
const AT_ONCE: usize = 3;
/// `PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP`: one that reads must not read again.
const WRITERS_FIRST: c_int = 2;
/// Where a static initialiser has the kind.
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
}

/// A lock, made anew for each round at the same place, and what it protects.
struct Guarded {
    sort: Sort,
    object: Object,
    /// Changed by plain loads and stores, one after the other.
    pair: [AtomicU64; 2],
    /// The writes, by those who made them.
    writes: AtomicUsize,
}

impl Guarded {
    fn new(context: &Context, sort: Sort) -> Result<Self, String> {
        let this = Self {
            sort,
            object: Object::new(context, &format!("rwlock {sort:?}"), sort.shared),
            pair: Default::default(),
            writes: AtomicUsize::new(0),
        };
        this.make()?;
        Ok(this)
    }

    fn lock(&self) -> *mut pthread_rwlock_t {
        self.object.at()
    }

    fn make(&self) -> Verdict {
        self.object.fill(0xa5);
        // SAFETY: memory for one that nobody uses; attributes are made, used and ended.
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

    /// Takes it in one way or another; whether it could be had.
    fn take(&self, actor: &mut Actor, to_write: bool) -> Result<bool, String> {
        let lock = self.lock();
        let way = actor.dice.u32(0..10);
        let until = (way >= 7).then(|| {
            let clock = some_clock(&mut actor.dice);
            Until::tiny(&mut actor.dice, clock)
        });
        let answer = self
            .object
            .wait(actor, until.is_some(), || match (&until, way) {
                // SAFETY: it was made, and the time is there.
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
            (0, _) => Ok(true),
            (EBUSY, None) if way == 0 => Ok(false),
            (ETIMEDOUT, Some(until)) if until.has_passed(actor) => {
                actor.count(Count::Timeouts, 1);
                Ok(false)
            }
            (ETIMEDOUT, Some(_)) => Err("it has timed out too early".to_owned()),
            (number, _) => Err(format!(
                "{:?} was not taken: {}",
                self.sort,
                error_name(number)
            )),
        }
    }

    /// With the lock held: nobody writes meanwhile, and the caller does if it may.
    fn stay(&self, actor: &mut Actor, writes: bool) -> Verdict {
        let [first, second] = &self.pair;
        let before = first.load(Relaxed);
        if writes {
            self.object.held();
            first.store(before + 1, Relaxed);
            actor.dawdle();
            if second.load(Relaxed) != before {
                return Err("somebody wrote beside a writer".to_owned());
            }
            second.store(before + 1, Relaxed);
            let writes = if actor.miscounts() { 2 } else { 1 };
            self.writes.fetch_add(writes, Relaxed);
        } else {
            actor.dawdle();
            if second.load(Relaxed) != before || first.load(Relaxed) != before {
                return Err("somebody wrote beside a reader".to_owned());
            }
        }
        actor.step();
        Ok(())
    }

    /// What a writer is told.
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
            false => Err(format!("{:?} answers its writer {answers:?}", self.sort)),
        }
    }

    fn leave(&self, actor: &mut Actor, wrote: bool) -> Verdict {
        if actor.leaves_out() {
            let spot = self.object.spot;
            actor.wait_at(spot, spot.word.load(), false, || {
                loop {
                    std::thread::park();
                }
            })
        }
        if wrote {
            self.object.given_back();
        }
        // SAFETY: held.
        zero("unlock", unsafe {
            libc::pthread_rwlock_unlock(self.lock())
        })
    }

    fn turn(&self, actor: &mut Actor, readers_in_16: u32, inside: Option<&Self>) -> Verdict {
        let writes = actor.dice.u32(0..16) >= readers_in_16;
        if !self.take(actor, writes)? {
            return Ok(());
        }
        self.stay(actor, writes)?;
        match actor.dice.u32(0..16) {
            0 if writes => self.ask()?,
            // One that prefers writers may let nobody read again.
            0 if self.sort.kind != WRITERS_FIRST && self.take(actor, false)? => {
                self.stay(actor, false)?;
                self.leave(actor, false)?;
            }
            _ => {}
        }
        if let Some(inside) = inside {
            inside.turn(actor, readers_in_16, None)?;
        }
        self.leave(actor, writes)
    }

    /// When all are gone.
    fn over(&self) -> Verdict {
        let writes = self.writes.swap(0, Relaxed) as u64;
        let counted = self.pair.each_ref().map(|half| half.swap(0, Relaxed));
        if counted != [writes; 2] {
            return Err(format!(
                "{writes} writes were made, and counted: {counted:?}"
            ));
        }
        // SAFETY: nobody uses it.
        let answer = unsafe { libc::pthread_rwlock_destroy(self.lock()) };
        zero("destroy of a lock that nobody uses", answer)?;
        self.make()
    }
}

pub(super) fn run(context: &'static Context) -> Verdict {
    let all = Sort::all()
        .map(|sort| Guarded::new(context, sort))
        .collect::<Result<Vec<_>, _>>()?;
    while let Some(round) = context.next_round() {
        let mut dice = round.dice();
        // In the order in which they are taken one inside the other.
        let mut chosen: Vec<&Guarded> = all.iter().collect();
        dice.shuffle(&mut chosen);
        chosen.truncate(dice.usize(1..=AT_ONCE));
        let chosen = &chosen;
        let readers_in_16 = [2, 10, 14, 15, 15][dice.usize(0..5)];
        let quota = (TURNS / round.threads).max(2);
        context.crew(round, |crew| {
            for index in 0..round.threads {
                crew.spawn("worker", index, move |actor| {
                    for _ in 0..quota {
                        let outer = actor.dice.usize(0..chosen.len());
                        let inner = actor.dice.usize(0..chosen.len() * 4);
                        let inside = (inner > outer).then(|| chosen.get(inner)).flatten();
                        chosen[outer].turn(actor, readers_in_16, inside.copied())?;
                        if actor.dice.u32(0..64) == 0 {
                            actor.move_to_some_cpu();
                        }
                    }
                    Ok(())
                });
            }
            Ok(())
        })?;
        chosen.iter().try_for_each(|guarded| guarded.over())?;
    }
    Ok(())
}
