//! The throughput-optimized and the adaptive mutex, once there is contention. (Waiman Long's TO futexes, 2016: lock
//! stealing, one optimistic spinner, hand-off after a bounded wait.)
//!
//! # Why
//!
//! A lock is used most when a thread that is running takes it again and again: nothing moves between CPUs, nobody is
//! woken. It is used least when it is handed to a thread that sleeps: then nobody has it for as long as a wake-up
//! takes. So a running thread may take a free lock past all who wait (*barging*), and what must be bounded is for how
//! long. What is bounded here is the time of one waiter, the **heir**.
//!
//! # The heir
//!
//! At most one waiter is awake and looks at the word: the heir. All others are parked. While there is an heir, unlocks
//! wake nobody. The heir
//!
//! 1. competes: it looks at the word ever less often, for [`SLICE`]. Where it sees that the lock was free and was
//!    taken again meanwhile, it looks least: its looks cost the holder cache misses.
//! 2. then has the lock reserved (HANDOFF): the next unlock leaves it to the heir. So who holds the lock gives it up
//!    after a slice, and the hand-over costs what it costs to move two cache lines, since the heir is awake.
//! 3. If nothing comes of that either, the holder sleeps or has lost its CPU: the heir parks, in front of all others.
//!    If it finds *its own* CPU's number in the word, it parks at once: the holder cannot run before that.
//!
//! "In front" is in front of those of the same priority: a real-time thread that waits comes before
//! all of this, and an heir of a lower priority does not count (`real_time.rs`).
//!
//! Whoever comes to a lock that is held and has no heir becomes the heir. But if others are parked, and one of them has
//! waited for a while, it **steps aside**: it parks in that one's place and wakes it as the heir. That wake-up
//! takes place on the CPU of a thread that has nothing better to do, while the holder works on; and it is what makes
//! all threads take turns, a slice each.
//!
//! ```text
//!   CPU 0   A holds it, slice after slice ......| B is woken, heir, spins | B holds it .........
//!   CPU 1   C is the heir, spins | C holds it ............................| D is woken, heir ...
//!                                ▲                                        ▲
//!                                C had it reserved; A comes again,        and so on
//!                                finds no heir, parks in B's place
//! ```
//!
//! # Who wakes the parked
//!
//! | event | there is an heir | there is none |
//! |-------|------------------|---------------|
//! | unlock, somebody parked | nobody | the oldest, as heir; if it is IMPATIENT or a real-time thread, it is handed the lock itself |
//! | a thread comes, and waits | parks (after a short look) | becomes heir, or steps aside for one that it wakes as heir |
//! | the heir takes the lock | | its unlock, or who comes meanwhile |
//! | the heir parks | | it does so only while the lock is held: the unlock |
//! | the heir's deadline passes | it wakes the oldest as heir | |
//!
//! # Invariants
//!
//! 1. If somebody is parked and the lock is free, there is an heir, or the unlock that freed it is about to wake one, or a waiter was woken
//!    that will take the lock or find it held.
//! 2. The heir's number in the word stands for exactly one thread, which alone removes it. (With real-time threads, for a thread
//!    that is awake or others will be; `real_time.rs` says why that is enough.)
//! 3. PARKED is set and cleared under the bucket's lock.
//! 4. An unlock's last access to the word is the one that releases it; with somebody to wake, under the bucket's lock. If it
//!    released the lock because it saw nobody, it touches the word again only with a waiter claimed, whose lock call
//!    has not returned.
//!
//! # Orderings
//!
//! Taking: Acquire, releasing: Release. Setting PARKED is Release and what reads it in an unlock Acquire only so that the
//! table that the waiter stands in is found. All other changes of the word are Relaxed: they order nothing.

use super::waiter::{Moment, Waiter};
use super::word::State;
use super::{LockTimedOut, PosixFlavour, RawPosixMutex, Then, real_time};
use crate::atomic::Ordering;
use crate::futex::parking::{self, Parked, Token, Tokens};
use crate::park::spin;
use crate::private::{Choice, Unparked, repository};
use crate::stats::{self, Event};
use crate::sys::clock::Deadline;
use core::hint::spin_loop;

/// For how many nanoseconds the heir competes with those who barge: about what a sleep and a wake-up cost, so that a
/// lock that is passed on costs no more than half of what it would by sleeping.
const SLICE: u64 = 15_000;
/// For how many nanoseconds more it stays awake for a lock that is reserved for it.
const PATIENCE: u64 = 30_000;
/// A waiter that has been woken in vain for so many nanoseconds is handed the lock. (From its first wake-up on: with
/// many waiters all have waited long, and to hand the lock to each of them would leave nobody who uses it twice.)
const IMPATIENT_AFTER: u64 = 1_000_000;
/// The longest pause between two looks of the heir, in nanoseconds; twice that once the lock was seen taken again.
const LONGEST_PAUSE: u64 = 800;
/// For how many nanoseconds a newcomer looks, before it parks behind an heir.
const FIRST_LOOK: u64 = 2_000;
/// For how many it looks before it becomes the heir, if nobody is parked: an heir writes to the word twice, and makes the holder's
/// unlock longer. (With 100 locks and sections of 50 ns a quarter of the throughput.)
const BRIEF_LOOK: u64 = 300;
/// Others step aside for a waiter that has waited this many microseconds.
const STEP_ASIDE_AFTER: u64 = 30;
/// A waiter that last ran on another CPU than is about to become free is passed over until it has waited for so many
/// microseconds ...
const OTHER_CPU_FOR: u64 = 20_000;
/// ... if one of as many waiters suits better.
const LOOK_THROUGH: usize = 16;

/// What a waiter is woken with; [`parking`]'s 0 is "look again".
pub(in crate::lock) const HEIR: Token = 1;
/// See above: it holds the lock.
pub(in crate::lock) const HOLDER: Token = 2;
/// Woken beside an heir (`extras.rs`).
pub(in crate::lock) const EXTRA: Token = 3;

enum Role {
    Newcomer,
    Heir,
}

/// A thread on its way to the lock.
struct Contender<'a> {
    mutex: &'a RawPosixMutex,
    deadline: Option<&'a Deadline>,
    began: Moment,
    /// When it became the heir for the first time.
    heir_since: Option<Moment>,
    has_looked: bool,
    has_looked_briefly: bool,
    has_stepped_aside: bool,
    /// It was woken as an extra, and has not parked since.
    is_extra: bool,
    /// It has parked before.
    has_parked: bool,
    /// It is a real-time thread, by what was known when it came to park last.
    is_real_time: bool,
}

type Outcome = Result<Option<Role>, LockTimedOut>;

/// It has the lock.
const LOCKED: Outcome = Ok(None);
const NEWCOMER: Outcome = Ok(Some(Role::Newcomer));
const BECAME_HEIR: Outcome = Ok(Some(Role::Heir));

/// Takes the lock, as a thread that has found it taken; or as one that was woken with a token from where
/// a condvar moved it.
#[cold]
pub(in crate::lock) fn lock(
    mutex: &RawPosixMutex,
    deadline: Option<&Deadline>,
    woken_with: Token,
) -> Result<(), LockTimedOut> {
    match woken_with {
        // What most who are woken find.
        HEIR if try_inherit(mutex) => {
            mutex.note_woken(true);
            return Ok(());
        }
        HEIR => mutex.note_woken(false),
        _ => {}
    }
    Contender::new(mutex, deadline).go_on(after(Parked::Woken(woken_with)))
}

/// The same, as an extra.
#[cold]
pub(in crate::lock) fn lock_as_extra(mutex: &RawPosixMutex) {
    let mut contender = Contender::new(mutex, None);
    contender.has_stepped_aside = true;
    contender.is_extra = true;
    let without_deadline = contender.go_on(NEWCOMER);
    debug_assert!(without_deadline.is_ok());
}

/// The same for a thread that leaves the lock to the heir, though it is free, and parks.
#[cold]
pub(super) fn lock_after_heir(
    mutex: &RawPosixMutex,
    deadline: Option<&Deadline>,
) -> Result<(), LockTimedOut> {
    let mut contender = Contender::new(mutex, deadline);
    let outcome = contender.park(State::has_heir);
    contender.go_on(outcome)
}

/// As the heir: takes the lock if it is free.
fn try_inherit(mutex: &RawPosixMutex) -> bool {
    let mut state = mutex.state();
    while !state.is_locked() {
        match mutex.change(state, state.inherited(), Ordering::Acquire) {
            Ok(()) => {
                #[cfg(loom)]
                assert!(
                    state.has_heir() || crate::sys::sched::some_are_real_time(),
                    "it inherits, and is not the heir"
                );
                return true;
            }
            Err(now) => state = now,
        }
    }
    false
}

/// What a parked thread is when it wakes up.
fn after(parked: Parked) -> Outcome {
    match parked {
        Parked::Woken(HOLDER) => LOCKED,
        Parked::Woken(HEIR) => BECAME_HEIR,
        Parked::TimedOut => Err(LockTimedOut),
        // Also one that was woken as an extra while it waited for the mutex and for no condvar.
        Parked::Woken(_) | Parked::Invalid | Parked::Interrupted => NEWCOMER,
    }
}

impl<'a> Contender<'a> {
    fn new(mutex: &'a RawPosixMutex, deadline: Option<&'a Deadline>) -> Self {
        Self {
            mutex,
            deadline,
            began: Moment::now(),
            heir_since: None,
            has_looked: false,
            has_looked_briefly: false,
            has_stepped_aside: false,
            is_extra: false,
            has_parked: false,
            is_real_time: false,
        }
    }

    /// Until it has the lock, or the deadline has passed.
    fn go_on(mut self, mut outcome: Outcome) -> Result<(), LockTimedOut> {
        loop {
            outcome = match outcome? {
                None => {
                    if self.is_extra {
                        self.mutex.note_woken(true);
                    }
                    return Ok(());
                }
                Some(Role::Newcomer) => self.come(),
                Some(Role::Heir) => self.inherit(),
            };
        }
    }

    /// It is about to park.
    fn note_parking(&mut self) {
        if core::mem::replace(&mut self.has_parked, true) {
            stats::count(Event::SleptAgain);
        }
        if core::mem::take(&mut self.is_extra) {
            self.mutex.note_woken(false);
        }
    }

    /// Takes the lock, parks behind the heir, or becomes it.
    fn come(&mut self) -> Outcome {
        let state = self.mutex.state();
        if state.may_barge() || self.is_real_time && !state.is_locked() {
            return match self.mutex.change(state, state.taken(), Ordering::Acquire) {
                Ok(()) => LOCKED,
                Err(_) => NEWCOMER,
            };
        }
        // A reserved lock is the heir's in a moment, and then there is none.
        if state.has_heir() && (!self.has_looked || state.is_reserved()) && self.look() {
            return NEWCOMER;
        }
        if state.has_heir() || state.is_urgent() {
            return self
                .park(|state| !state.may_barge() && (state.has_heir() || state.is_urgent()));
        }
        if !state.has_parked() && !self.has_looked_briefly && self.look_briefly() {
            return NEWCOMER;
        }
        if self
            .mutex
            .change(state, state.with_heir(), Ordering::Relaxed)
            .is_err()
        {
            return NEWCOMER;
        }
        if state.has_parked() && !self.has_stepped_aside {
            return self.step_aside();
        }
        BECAME_HEIR
    }

    /// Watches for a moment; whether there is something to be had: the lock, or the place of the heir.
    fn look(&mut self) -> bool {
        self.has_looked = true;
        self.watch(FIRST_LOOK, |state| state.may_barge() || !state.has_heir())
    }

    /// The same where nobody else waits, for the lock alone.
    fn look_briefly(&mut self) -> bool {
        self.has_looked_briefly = true;
        self.watch(BRIEF_LOOK, State::may_barge)
    }

    /// Watches for so many nanoseconds, where a thread may spin; whether it has come to what `enough`
    /// says.
    fn watch(&self, nanoseconds: u64, enough: impl Fn(State) -> bool) -> bool {
        spin::is_allowed()
            && (0..spin::pauses(nanoseconds)).any(|_| {
                spin_loop();
                enough(self.mutex.state())
            })
    }

    /// As what it parks.
    fn waiter(&mut self) -> Waiter {
        let waiter = Waiter::since(self.began);
        self.is_real_time = waiter.is_real_time();
        waiter
    }

    /// Parks behind the others, if it must: only while there is an heir, or an unlock will look at the
    /// queue.
    fn park(&mut self, must: impl Fn(State) -> bool) -> Outcome {
        let waiter = self.waiter();
        if waiter.is_real_time() {
            let has_waited = self.has_parked;
            let impatient = has_waited && self.began.elapsed() > IMPATIENT_AFTER;
            return after(self.park_urgently(waiter.impatient(impatient), has_waited));
        }
        self.note_parking();
        after(parking::park(
            repository(),
            self.mutex.key(),
            waiter.entry(),
            self.deadline,
            || {
                self.mutex
                    .announce(|state| must(state).then_some(state.with_parked(true)))
            },
            |others_wait| self.mutex.note_parked(others_wait),
        ))
    }

    /// As a real-time thread: parks if the lock is held.
    #[cold]
    #[inline(never)]
    fn park_urgently(&mut self, waiter: Waiter, in_front: bool) -> Parked {
        self.note_parking();
        let (mutex, entry, deadline) = (self.mutex, waiter.entry(), self.deadline);
        let announce =
            || mutex.announce(|state| state.is_locked().then_some(state.with_real_time_parked()));
        let left = |others_wait| mutex.note_parked(others_wait);
        let park = match in_front {
            true => parking::park_in_front,
            false => parking::park,
        };
        park(repository(), mutex.key(), entry, deadline, announce, left)
    }

    /// As the heir: parks in the place of one who has waited longer and is the heir from now on. Most of all one
    /// who ran here, where a CPU is about to become free; but if the holder is waiting for that CPU, one who ran elsewhere.
    #[cold]
    fn step_aside(&mut self) -> Outcome {
        self.has_stepped_aside = true;
        let me = self.waiter();
        if me.is_real_time() {
            return BECAME_HEIR;
        }
        let now = Moment::now();
        let here = !self.mutex.state().holder_is_off_cpu();
        let (mut seen, mut found) = (0, false);
        let longest_waiting = |kind| {
            let waiter = Waiter(kind);
            let waited = waiter.waited_until(now);
            seen += 1;
            if found || waited < STEP_ASIDE_AFTER || seen > LOOK_THROUGH {
                return Choice::Stop;
            }
            if waiter.is_real_time() {
                // It came meanwhile, and waits for the unlock.
                return Choice::Stop;
            }
            if waiter.ran_here() != here {
                if waited < OTHER_CPU_FOR {
                    return Choice::Pass;
                }
                // It may have to wait for the holder's CPU; so let the holder come to wait for the lock.
                self.mutex.set(State::with_handoff);
            }
            found = true;
            self.mutex.note_heir_woken(now);
            Choice::Take
        };
        let parked = parking::park_instead_of(
            repository(),
            self.mutex.key(),
            me.entry(),
            self.deadline,
            longest_waiting,
            HEIR,
            |others_wait| self.mutex.note_parked(others_wait),
        );
        match parked {
            Parked::Invalid | Parked::Interrupted => BECAME_HEIR,
            parked => after(parked),
        }
    }

    /// As the heir: takes the lock, or parks in front of the others.
    fn inherit(&mut self) -> Outcome {
        let heir_since = *self.heir_since.get_or_insert_with(Moment::now);
        if self.compete() {
            return LOCKED;
        }
        if self.deadline.is_some_and(Deadline::has_passed) {
            self.resign();
            return Err(LockTimedOut);
        }
        let impatient = heir_since.elapsed() > IMPATIENT_AFTER;
        let waiter = self.waiter().impatient(impatient);
        let parked = match waiter.is_real_time() {
            true => self.park_urgently(waiter, true),
            false => self.park_as_heir(waiter),
        };
        match parked {
            // It has become free: still the heir.
            Parked::Invalid | Parked::Interrupted => BECAME_HEIR,
            parked => after(parked),
        }
    }

    #[inline(always)]
    fn park_as_heir(&mut self, waiter: Waiter) -> Parked {
        self.note_parking();
        parking::park_in_front(
            repository(),
            self.mutex.key(),
            waiter.entry(),
            self.deadline,
            || {
                self.mutex.announce(|state| {
                    let held = state.is_locked();
                    held.then_some(state.without_heir().with_parked(true))
                })
            },
            |others_wait| self.mutex.note_parked(others_wait),
        )
    }

    /// As the heir: looks at the word until it has the lock, or it is not worth while; whether it has it.
    fn compete(&self) -> bool {
        let mutex = self.mutex;
        if !spin::is_allowed() || !mutex.history_says_spin() {
            return try_inherit(self.mutex);
        }
        let won = self.spin();
        mutex.remember_spin(won);
        won
    }

    fn spin(&self) -> bool {
        let mutex = self.mutex;
        let began = Moment::now();
        let longest = spin::pauses(LONGEST_PAUSE);
        let turn = mutex.state().turn();
        let mut reserved = false;
        let mut pause = 2;
        loop {
            let state = mutex.state();
            if !state.is_locked() {
                if try_inherit(self.mutex) {
                    stats::count_many(Event::HandOffs, usize::from(reserved));
                    return true;
                }
                continue;
            }
            if state.is_urgent() || state.holder_is_off_cpu() {
                return false;
            }
            if !reserved && pause <= longest && state.turn() != turn {
                // Taken again: a slice must pass. Let those run here who would otherwise be in the way later.
                crate::sys::sched::yield_cpu();
                pause = longest * 2;
            }
            for _ in 0..pause {
                spin_loop();
            }
            pause = (pause * 2).clamp(2, longest.max(pause));
            match began.elapsed() {
                waited if waited > SLICE + PATIENCE => return false,
                waited if waited > SLICE && !reserved => {
                    reserved = true;
                    pause = 2;
                    mutex.set(State::with_handoff);
                }
                _ => {}
            }
        }
    }

    /// As the heir, who goes without the lock: somebody else must be it.
    fn resign(&self) {
        let mut state = self.mutex.state();
        while !state.has_parked() || state.is_urgent() {
            match self
                .mutex
                .change(state, state.without_heir(), Ordering::Relaxed)
            {
                Ok(()) => return,
                Err(now) => state = now,
            }
        }
        parking::unpark_one(
            repository(),
            self.mutex.key(),
            // If a real-time thread has parked meanwhile, this is the heir no longer.
            |first| !Waiter(first).is_real_time(),
            |woken, others_wait| {
                self.mutex.set(|state| {
                    let state = state.with_parked(others_wait);
                    if woken.is_none() {
                        state.without_heir()
                    } else {
                        state
                    }
                });
                HEIR
            },
        );
    }
}

/// Releases the lock, which has been found with PARKED set and no heir, and wakes one, and perhaps some extras.
#[cold]
pub(super) fn unlock_and_wake(mutex: &RawPosixMutex, then: Then) {
    if real_time::unlock(mutex) {
        return;
    }
    let extras = mutex.extras();
    let extras_beside = |heir: Waiter| match then {
        Then::Sleep => extras,
        _ if heir.is_from_condvar() => extras,
        _ => 0,
    };
    // A waiter that ran here would have to wait for the caller, if that goes on.
    let suits = |waiter: Waiter| then == Then::Sleep || !waiter.ran_here();
    if !unlock_and_wake_one_of(mutex, suits, extras_beside) {
        unlock_and_wake_one_of(mutex, |_| true, extras_beside);
    }
}

/// The same for the oldest of the waiters that `suits`, or one that is impatient or a real-time thread, and those that come next; false,
/// and nothing done, if there are waiters and none does.
fn unlock_and_wake_one_of(
    mutex: &RawPosixMutex,
    suits: impl Fn(Waiter) -> bool,
    extras_beside: impl Fn(Waiter) -> usize,
) -> bool {
    let (mut seen, mut taken, mut done) = (0, 0, true);
    // Known once somebody is found.
    let mut extras = 0;
    let found = core::cell::Cell::new(None::<Waiter>);
    let choose = |kind| {
        let waiter = Waiter(kind);
        seen += 1;
        if taken > extras || seen > LOOK_THROUGH + extras + extras {
            return Choice::Stop;
        }
        if found.get().is_none() {
            if !waiter.is_real_time() && !waiter.is_impatient() && !suits(waiter) {
                return Choice::Pass;
            }
            found.set(Some(waiter));
            extras = if waiter.is_real_time() {
                0
            } else {
                extras_beside(waiter)
            };
            mutex.note_heir_woken(Moment::now());
        }
        taken += 1;
        Choice::Take
    };
    let change = |unparked: Unparked| {
        if unparked.woken == 0 && unparked.more {
            done = false;
            return Tokens::from(0);
        }
        if let Some(found) = found.get().filter(|found| found.is_real_time()) {
            // It has just come.
            return Tokens::from(real_time::release_to(mutex, found, 0, unparked.more));
        }
        let impatient = found.get().is_some_and(Waiter::is_impatient);
        let mut state = mutex.state();
        loop {
            let left = state.with_ordinary_left(unparked.more);
            let (next, first) = if unparked.woken == 0 || state.has_heir() {
                (left.released(), 0)
            } else if impatient {
                (left.handed_over(), HOLDER)
            } else {
                (left.released().with_heir(), HEIR)
            };
            match mutex.change(state, next, Ordering::Release) {
                Ok(()) => {
                    return Tokens {
                        first,
                        others: EXTRA,
                    };
                }
                Err(now) => state = now,
            }
        }
    };
    let woken = parking::unpark(repository(), mutex.key(), choose, change);
    let impatient = found.get().is_some_and(Waiter::is_impatient);
    stats::count_many(Event::HandOffs, usize::from(woken > 0 && impatient));
    done
}

/// Wakes one who waits, if any does and there is no heir, after the lock was released by somebody who had seen nobody.
///
/// The mutex need not exist any more, unless one of its waiters is found.
#[cold]
pub(super) fn wake_after_release(mutex: &RawPosixMutex) {
    // A real-time thread stays where it is if another thread has the mutex by now, whose unlock will find it.
    let takes = |first| !(Waiter(first).is_real_time() && mutex.state().is_locked());
    parking::unpark_one(repository(), mutex.key(), takes, |woken, others_wait| {
        let Some(woken) = woken else { return 0 };
        let is_real_time = Waiter(woken).is_real_time();
        let has_heirs = mutex.flavour() != PosixFlavour::WaitWake;
        let mut token = 0;
        mutex.set(|state| {
            token = 0;
            if is_real_time {
                return state.with_parked(others_wait);
            }
            let state = state.with_ordinary_left(others_wait);
            if has_heirs && !state.has_heir() {
                token = HEIR;
                return state.with_heir();
            }
            state
        });
        token
    });
}

/// Releases the lock to whoever waits: the heir, or the real-time thread of the highest priority, or the oldest, which is handed it. (Not
/// the first: an heir that parks does so in front, also if it came last.)
#[cold]
pub(super) fn unlock_fairly(mutex: &RawPosixMutex) {
    let mut state = mutex.state();
    while state.has_heir() || !state.has_parked() {
        let next = if state.has_heir() {
            state.released().with_handoff()
        } else {
            state.released()
        };
        match mutex.change(state, next, Ordering::Release) {
            Ok(()) => {
                stats::count_many(Event::HandOffs, usize::from(state.has_heir()));
                return;
            }
            Err(now) => state = now,
        }
    }
    let now = Moment::now();
    let was_real_time = core::cell::Cell::new(false);
    let rank = |kind| match Waiter(kind) {
        // The first of these is the highest of them: the queue is in their order.
        waiter if waiter.is_real_time() => {
            was_real_time.set(true);
            u64::MAX
        }
        waiter => waiter.waited_until(now),
    };
    let handed_over =
        parking::unpark_highest(repository(), mutex.key(), LOOK_THROUGH, rank, |unparked| {
            let mut state = mutex.state();
            loop {
                let left = match was_real_time.get() {
                    true => state.with_parked(unparked.more),
                    false => state.with_ordinary_left(unparked.more),
                };
                let (next, token) = match unparked.woken {
                    0 => (left.released(), 0),
                    _ => (left.handed_over(), HOLDER),
                };
                match mutex.change(state, next, Ordering::Release) {
                    Ok(()) => return token,
                    Err(now) => state = now,
                }
            }
        });
    stats::count_many(Event::HandOffs, handed_over);
}
