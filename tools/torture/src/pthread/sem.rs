//! Tortured: semaphores, private, shared and named: waits, tries, deadlines on both clocks, posts
//! by threads and by signal handlers, which interrupt waits anywhere, alternately with and without
//! `SA_RESTART`. All threads meet at a barrier at the end.
//!
//! Checked: all threads end; each semaphore's final value is its initial value plus posts minus
//! waits; a wait is interrupted only if its thread did run a handler, and with `SA_RESTART` only if
//! it has a deadline; no deadline is early.

use super::abi;
use super::object::{Object, zero};
use super::until::{Until, some_clock};
use crate::actor::{Actor, Verdict, count_signal, own_place};
use crate::args::Sabotage;
use crate::context::Context;
use crate::count::Count;
use crate::parts::storm::{self, Targets};
use libc::{EAGAIN, EINTR, ETIMEDOUT, pthread_barrier_t, sem_t};
use std::ffi::CString;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::SeqCst};

const TOKENS: usize = 1_500;
const SEMAPHORES: usize = 6;
const MOST_INITIAL: u32 = 2;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sort {
    Private,
    Shared,
    Named,
}

/// A semaphore.
struct Sem {
    object: Object,
    /// Its address: for a named one, where the C library has put it.
    at: *mut sem_t,
    sort: Sort,
    initial: u32,
    /// How often handlers have yet to post it.
    left: AtomicUsize,
}

// SAFETY: semaphores are for all threads.
unsafe impl Sync for Sem {}
// SAFETY: as above.
unsafe impl Send for Sem {}

/// The semaphores that handlers post, one after another.
static ALL: AtomicPtr<Sem> = AtomicPtr::new(std::ptr::null_mut());
static TURN: AtomicUsize = AtomicUsize::new(0);

impl Sem {
    fn new(context: &Context, index: usize) -> Result<Self, String> {
        let sort = [Sort::Private, Sort::Private, Sort::Shared, Sort::Named][index % 4];
        let name = match sort {
            Sort::Private => "private semaphore",
            Sort::Shared => "shared semaphore",
            Sort::Named => "named semaphore (lies elsewhere)",
        };
        let object = Object::new(context, name, sort == Sort::Shared);
        let at = match sort {
            Sort::Named => open(index)?,
            _ => object.at(),
        };
        Ok(Self {
            object,
            at,
            sort,
            initial: 0,
            left: AtomicUsize::new(0),
        })
    }

    /// Sets it up for the beginning of a round.
    fn renew(&mut self, initial: u32) -> Verdict {
        self.initial = initial;
        self.left.store(0, SeqCst);
        // SAFETY: it is not in use.
        unsafe {
            if self.sort == Sort::Named {
                for _ in 0..initial {
                    libc::sem_post(self.at);
                }
                return Ok(());
            }
            self.object.fill(0xa5);
            let shared = i32::from(self.sort == Sort::Shared);
            zero("sem_init", libc::sem_init(self.at, shared, initial))
        }
    }

    /// Posts it. Async-signal-safe.
    fn post(&self) -> bool {
        // SAFETY: it was made.
        unsafe { libc::sem_post(self.at) == 0 }
    }

    /// Takes a token, in one way or another.
    fn take(&self, actor: &mut Actor, restarting: bool) -> Verdict {
        loop {
            let way = actor.dice.u32(0..8);
            let until = (way >= 5).then(|| {
                let clock = some_clock(&mut actor.dice);
                Until::tiny(&mut actor.dice, clock)
            });
            let answer = self
                .object
                .wait(actor, until.is_some(), || match (&until, way) {
                    // SAFETY: it was made, and `until` outlives the call.
                    (None, 0) => unsafe { libc::sem_trywait(self.at) },
                    // SAFETY: as above.
                    (None, _) => unsafe { abi::sem_wait(self.at) },
                    // SAFETY: as above.
                    (Some(until), 5) if until.clock == libc::CLOCK_REALTIME => unsafe {
                        abi::sem_timedwait(self.at, &raw const until.time)
                    },
                    // SAFETY: as above.
                    (Some(until), _) => unsafe {
                        abi::sem_clockwait(self.at, until.clock, &raw const until.time)
                    },
                });
            if answer == 0 {
                actor.step();
                return Ok(());
            }
            let error = std::io::Error::last_os_error();
            match (error.raw_os_error(), until) {
                (Some(EAGAIN), None) if way == 0 => std::thread::yield_now(),
                (Some(ETIMEDOUT), Some(until)) if until.has_passed(actor) => {
                    actor.count(Count::Timeouts, 1);
                }
                (Some(EINTR), _) if !actor.was_interrupted() => {
                    return Err("a wait was interrupted though no handler has run".to_owned());
                }
                (Some(EINTR), None) if restarting => {
                    let error = "a wait without a deadline was interrupted in spite of SA_RESTART";
                    return Err(error.to_owned());
                }
                (Some(EINTR), _) => actor.count(Count::Interrupted, 1),
                (_, until) => {
                    let kind = if until.is_some() { "timed " } else { "" };
                    return Err(format!("a {kind}wait for a semaphore: {error}"));
                }
            }
        }
    }

    /// After all threads have ended: checks that the value is the initial one.
    fn over(&self) -> Verdict {
        let mut value = 0;
        // SAFETY: it was made; room for the value.
        unsafe { abi::sem_getvalue(self.at, &raw mut value) };
        if value != self.initial as i32 {
            return Err(format!(
                "a semaphore holds {value} instead of {}",
                self.initial
            ));
        }
        // SAFETY: it was made.
        let taken = (0..=self.initial).filter(|_| unsafe { libc::sem_trywait(self.at) } == 0);
        if taken.count() != self.initial as usize {
            return Err("a semaphore gave more or less than its value".to_owned());
        }
        if self.sort != Sort::Named {
            // SAFETY: it is not in use.
            zero("sem_destroy", unsafe { libc::sem_destroy(self.at) })?;
        }
        Ok(())
    }
}

/// A named semaphore, whose name is removed at once.
fn open(index: usize) -> Result<*mut sem_t, String> {
    let name = format!("/waitword-torture-{}-{index}", std::process::id());
    let name = CString::new(name).map_err(|error| error.to_string())?;
    let flags = libc::O_CREAT | libc::O_EXCL;
    // SAFETY: a NUL-terminated name, and the arguments that O_CREAT needs.
    unsafe {
        let at = abi::sem_open(name.as_ptr(), flags, 0o600, 0);
        if at == libc::SEM_FAILED {
            return Err(format!("sem_open: {}", std::io::Error::last_os_error()));
        }
        libc::sem_unlink(name.as_ptr());
        Ok(at)
    }
}

/// Posts a semaphore that is for handlers to post.
extern "C" fn handler(_signal: i32) {
    count_signal();
    // SAFETY: the calling thread's own.
    let errno = unsafe { *libc::__errno_location() };
    let first = ALL.load(SeqCst);
    if !first.is_null() {
        // SAFETY: there are this many, as long as handlers run.
        let all = unsafe { std::slice::from_raw_parts(first, SEMAPHORES) };
        let turn = TURN.fetch_add(1, SeqCst);
        for step in 0..SEMAPHORES {
            let sem = &all[(turn + step) % SEMAPHORES];
            let less = |left: usize| left.checked_sub(1);
            if sem.left.try_update(SeqCst, SeqCst, less).is_ok() {
                sem.post();
                if let Some(place) = own_place() {
                    place.count(Count::Wakes, 1);
                    place.count(Count::Operations, 1);
                }
                break;
            }
        }
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

pub(super) fn run(context: &'static Context) -> Verdict {
    let sems = (0..SEMAPHORES)
        .map(|index| Sem::new(context, index))
        .collect::<Result<Vec<_>, _>>()?;
    let sems: &'static mut [Sem] = Vec::leak(sems);
    let barrier = Object::new(context, "barrier at the end", false);
    while let Some(round) = context.next_round() {
        let mut dice = round.dice();
        // A spare permit would let the taker go on, and hide the post that was left out.
        let most_initial = match context.slice.sabotage {
            Some(Sabotage::SkipWake) => 0,
            _ => MOST_INITIAL,
        };
        for sem in sems.iter_mut() {
            sem.renew(dice.u32(0..=MOST_INITIAL).min(most_initial))?;
        }
        ALL.store(sems.as_mut_ptr(), SeqCst);
        let restarting = round.number % 2 == 1;
        storm::install(storm::SIGNAL, handler, restarting);
        let takers = round.threads / 2;
        let givers = round.threads - takers;
        let quota = (TOKENS / takers).max(1);
        // What each taker takes, in order. This determines what must be posted.
        let wanted: Vec<Vec<usize>> = (0..takers)
            .map(|_| {
                let only = dice.usize(0..SEMAPHORES);
                (0..quota).map(|_| only).collect()
            })
            .collect();
        let mut gifts: Vec<usize> = wanted.iter().flatten().copied().collect();
        dice.shuffle(&mut gifts);
        gifts.retain(|&gift| {
            let for_handlers = dice.u32(0..4) == 0;
            if for_handlers {
                sems[gift].left.fetch_add(1, SeqCst);
            }
            !for_handlers
        });
        let sems = &*sems;
        let targets = &Targets::new(round.threads);
        let meet = &barrier;
        let everybody = round.threads as u32 + 1;
        meet.fill(0xa5);
        // SAFETY: unused memory for a barrier.
        let made = unsafe { abi::pthread_barrier_init(meet.at(), std::ptr::null(), everybody) };
        zero("pthread_barrier_init", made)?;
        let at_the_end = move |actor: &mut Actor| {
            // SAFETY: it was made for all of these threads.
            let answer = meet.wait(actor, false, || unsafe {
                libc::pthread_barrier_wait(meet.at::<pthread_barrier_t>())
            });
            match answer {
                0 | libc::PTHREAD_BARRIER_SERIAL_THREAD => Ok(()),
                number => Err(format!("a barrier returned {number}")),
            }
        };
        let shares: Vec<Vec<usize>> = (0..givers)
            .map(|giver| gifts.iter().skip(giver).step_by(givers).copied().collect())
            .collect();
        context.crew(round, |crew| {
            for (index, wanted) in wanted.into_iter().enumerate() {
                crew.spawn("taker", index, move |actor| {
                    targets.strike_me(index);
                    for which in wanted {
                        sems[which].take(actor, restarting)?;
                        if actor.miscounts() {
                            sems[which].post();
                        }
                    }
                    at_the_end(actor)
                });
            }
            for (index, share) in shares.into_iter().enumerate() {
                crew.spawn("giver", index, move |actor| {
                    targets.strike_me(takers + index);
                    for which in share {
                        if actor.leaves_out() {
                            continue;
                        }
                        if !sems[which].post() {
                            return Err("sem_post failed".to_owned());
                        }
                        actor.count(Count::Wakes, 1);
                        actor.step();
                        actor.dawdle();
                    }
                    at_the_end(actor)
                });
            }
            crew.spawn("storm", 0, move |actor| {
                // All threads are alive: they wait at the barrier for this one.
                targets.blow(actor, || sems.iter().all(|sem| sem.left.load(SeqCst) == 0))?;
                at_the_end(actor)
            });
            Ok(())
        })?;
        // SAFETY: all threads have ended.
        zero("pthread_barrier_destroy", unsafe {
            libc::pthread_barrier_destroy(barrier.at())
        })?;
        sems.iter().try_for_each(Sem::over)?;
    }
    Ok(())
}
