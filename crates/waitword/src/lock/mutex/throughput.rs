//! The throughput-optimized and the adaptive mutex, once there is contention: the protocol. (Waiman
//! Long's TO futexes, 2016: lock stealing, one optimistic spinner, hand-off after a bounded wait.)
//!
//! # Why
//!
//! A lock is used most when a thread that is running takes it again and again: nothing moves between CPUs, nobody is
//! woken. It is used least when it is handed to a thread that sleeps: then nobody has it for as long as a wake-up
//! takes. So a running thread may take a free lock past all who wait (*barging*), and what must be bounded is for how
//! long. What is bounded here is the time of one waiter, the **successor**.
//!
//! # Waiters
//!
//! A waiter first stays awake: `policy.rs` says how, for how long, and why. While it does, it may
//! take the lock like any thread that comes. Then it parks.
//!
//! At most one of the waiters that are awake is the **successor**, whose number stands in the word.
//! While there is a successor, unlocks wake nobody: it will take the lock, or see to it that another
//! one wakes up. A waiter becomes the successor as an unlock wakes it; or by itself, if there is none.
//! If others take the lock past the successor for as long as it stays awake, it has the lock reserved
//! (HANDOFF): the next unlock leaves it to the successor. A hand-over to a thread that is awake costs
//! what it costs to move two cache lines. If the holder keeps the lock for as long, the successor parks:
//! in front of all others if it was woken, else behind them. Where a second CPU would not help, the successor
//! naps before it has the lock reserved (`monopoly.rs`, `nap.rs`).
//!
//! "In front" is in front of those of the same priority: a real-time thread that waits comes before
//! all of this, and a successor of a lower priority does not count (`real_time.rs`).
//!
//! A waiter that would become the successor while others are parked, one of which has waited for a
//! while, **steps aside** now and then: it parks in that one's place and wakes it as the successor. That
//! wake-up takes place on the CPU of a thread that has nothing better to do, while the holder works
//! on; and it is what makes all threads take turns.
//!
//! A thread that was signalled at a condvar wakes up as no successor, unless it is one of a chain, or there
//! is one CPU only (`extras.rs`): the next signal wakes the next thread, whether or not this one runs yet. If it
//! were the successor, all who are signalled would come one by one, each after a switch.
//!
//! ```text
//!   CPU 0   A holds it, again and again ........| B is woken, successor, stays awake | B holds it ...
//!   CPU 1   C waits awake, successor | C holds it ...................................| D is woken, successor ...
//!                               ▲               ▲
//!                               C had it        A comes again, finds no successor, and parks in B's place
//!                               reserved
//! ```
//!
//! # Who wakes the parked
//!
//! | event | there is a successor | there is none |
//! |-------|------------------|---------------|
//! | unlock, somebody parked | nobody; if it is late, the oldest that came to the mutex itself (`late_successor.rs`); if it may nap and the thread goes to wait for a condvar, one as if there were none, but not as successor | the oldest, as successor; if it is IMPATIENT or a real-time thread, it is handed the lock itself |
//! | a waiter has stayed awake for long enough | it parks | it becomes the successor, or steps aside for one that it wakes as the successor |
//! | the successor takes the lock | | its unlock, or who comes meanwhile |
//! | a waiter parks | if the lock is held, or reserved for the successor: the unlock, or the successor | only while the lock is held: the unlock |
//! | the successor's deadline passes | it wakes the oldest as successor | |
//!
//! An unlock by a thread that begins to wait for a condvar passes over those that come from the same
//! one, if another waits (`unlock.rs`).
//!
//! # Invariants
//!
//! 1. If somebody is parked and the lock is free, there is a successor, or the unlock that freed it is about to wake one, or a waiter was woken
//!    that will take the lock or find it held.
//! 2. The successor's number in the word stands for exactly one thread, which alone removes it. (With real-time threads, for a thread
//!    that is awake or others will be; `real_time.rs` says why that is enough.)
//! 3. PARKED is set and cleared under the bucket's lock.
//! 4. An unlock's last access to the word is the one that releases it; with somebody to wake, under
//!    the bucket's lock.
//!
//! # Orderings
//!
//! Taking: Acquire, releasing: Release. Setting PARKED is Release and what reads it in an unlock Acquire only so that the
//! table that the waiter stands in is found. All other changes of the word are Relaxed: they order nothing.

use super::nap::{self, SAMPLE_EVERY, is_monopolized};
use super::policy::{Newcomer, Policy, ROTATE_EVERY, Seen, Successor};
use super::waiter::{HOLDER, LOOK_THROUGH, Moment, PASSED_OVER_FOR, SUCCESSOR, Waiter};
use super::word::State;
use super::{LockTimedOut, PosixFlavour, RawPosixMutex};
use crate::atomic::Ordering;
use crate::futex::parking::{self, Parked, Token};
use crate::park::Until;
use crate::park::spin::{self, FirstLooks, LockHistory};
use crate::private::{Choice, waiter_table};
use crate::stats::{self, Event};
use crate::sys::clock::Deadline;

/// A waiter that has been woken in vain for so many nanoseconds is handed the lock. (From its first wake-up on: with
/// many waiters all have waited long, and to hand the lock to each of them would leave nobody who uses it twice.)
const IMPATIENT_AFTER: u64 = 1_000_000;
/// Others step aside for a waiter that has waited this many microseconds.
const STEP_ASIDE_AFTER: u64 = 30;

enum Role {
    Newcomer,
    Successor,
}

/// A thread on its way to the lock.
struct Contender<'a> {
    mutex: &'a RawPosixMutex,
    deadline: Option<&'a Deadline>,
    began: Moment,
    /// When it became the successor for the first time.
    successor_since: Option<Moment>,
    has_stepped_aside: bool,
    /// It became the successor by itself, and was not woken as such.
    is_self_appointed: bool,
    /// Since it began to linger, if it does.
    stay: Option<Policy>,
    history: &'static LockHistory,
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
const BECAME_SUCCESSOR: Outcome = Ok(Some(Role::Successor));

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
        SUCCESSOR if try_inherit(mutex) => {
            mutex.note_woken(true);
            return Ok(());
        }
        SUCCESSOR => mutex.note_woken(false),
        _ if looks(mutex) => return Ok(()),
        _ => {}
    }
    Contender::new(mutex, deadline).go_on(after(Parked::Woken(woken_with)))
}

/// The same, as an extra.
#[cold]
pub(in crate::lock) fn lock_as_extra(mutex: &RawPosixMutex) {
    if looks(mutex) {
        return mutex.note_woken(true);
    }
    let mut contender = Contender::new(mutex, None);
    contender.has_stepped_aside = true;
    contender.is_extra = true;
    let without_deadline = contender.go_on(NEWCOMER);
    debug_assert!(without_deadline.is_ok());
}

/// What most waits need: looks for a moment, ever less often, and takes the lock if it is to be had;
/// whether it has. (Not of a monopolized lock, whose holder it would disturb.)
fn looks(mutex: &RawPosixMutex) -> bool {
    if !spin::is_allowed() || is_monopolized(mutex) {
        return false;
    }
    let history = LockHistory::at(core::ptr::from_ref(mutex).addr());
    let mut looks = FirstLooks::begin(&history.stays);
    loop {
        let state = mutex.state();
        let may_take = state.may_barge();
        if may_take
            && mutex
                .change(state, state.taken(), Ordering::Acquire)
                .is_ok()
        {
            looks.won();
            return true;
        }
        if !may_take && !looks.pause() {
            return false;
        }
    }
}

/// Whether a waiter may do anything but park at once. (In a model it comes as far as that, and has
/// nothing to spend.)
fn may_stay_awake() -> bool {
    cfg!(loom) || spin::is_allowed()
}

/// As the successor: takes the lock if it is free.
fn try_inherit(mutex: &RawPosixMutex) -> bool {
    let mut state = mutex.state();
    while !state.is_locked() {
        match mutex.change(state, state.inherited(), Ordering::Acquire) {
            Ok(()) => {
                #[cfg(loom)]
                assert!(
                    state.has_successor() || crate::sys::sched::some_are_real_time(),
                    "it inherits, and is not the successor"
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
        Parked::Woken(SUCCESSOR) => BECAME_SUCCESSOR,
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
            successor_since: None,
            has_stepped_aside: false,
            is_self_appointed: false,
            stay: None,
            history: LockHistory::at(core::ptr::from_ref(mutex).addr()),
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
                Some(Role::Successor) => self.inherit(),
            };
        }
    }

    /// It is about to park, and has noted how its stay awake went if that shows anything.
    fn note_parking(&mut self) {
        self.stay = None;
        if core::mem::replace(&mut self.has_parked, true) {
            stats::count(Event::SleptAgain);
        }
        if core::mem::take(&mut self.is_extra) {
            self.mutex.note_woken(false);
        }
    }

    /// Takes the lock, parks behind the successor, or becomes it.
    fn come(&mut self) -> Outcome {
        let state = self.mutex.state();
        if state.may_barge() || self.is_real_time && !state.is_locked() {
            if self
                .mutex
                .change(state, state.taken(), Ordering::Acquire)
                .is_err()
            {
                return NEWCOMER;
            }
            self.note_stay(true);
            return LOCKED;
        }
        if state.is_urgent() || !may_stay_awake() {
            return self.park(|state| !state.may_barge());
        }
        let now = Moment::now().nanoseconds();
        // The word of one that keeps an owner counts no turns.
        let is_sample_due = !state.is_special() && self.history.is_sample_due(now, SAMPLE_EVERY);
        #[cfg(not(loom))]
        if state.has_successor() && is_sample_due {
            nap::count_turns(self.mutex);
            return NEWCOMER;
        }
        let seen = Seen {
            is_reserved: state.is_reserved(),
            has_successor: state.has_successor(),
            has_parked: state.has_parked(),
            is_monopolized: is_monopolized(self.mutex),
            is_sample_due,
        };
        let next = match self.is_out_of_time() {
            true => Newcomer::Park,
            false => self.stay(now).newcomer(now, seen),
        };
        match next {
            Newcomer::Linger => self.linger(now, State::may_barge),
            Newcomer::TakeReserved => {
                let taken = state.taken_though_reserved();
                if self.mutex.change(state, taken, Ordering::Acquire).is_ok() {
                    return LOCKED;
                }
            }
            Newcomer::BecomeSuccessor => {
                let successor = state.with_successor();
                if self
                    .mutex
                    .change(state, successor, Ordering::Relaxed)
                    .is_ok()
                {
                    return self.be_successor(now, state.has_parked());
                }
            }
            Newcomer::Park => {
                self.note_stay(false);
                return self.park(|state| !state.may_barge());
            }
        }
        NEWCOMER
    }

    /// As one who has just become the successor by itself.
    fn be_successor(&mut self, now: u64, others_are_parked: bool) -> Outcome {
        self.is_self_appointed = true;
        if others_are_parked && !self.has_stepped_aside && self.history.rotates(now, ROTATE_EVERY) {
            return self.step_aside();
        }
        self.mutex.note_successor(Moment::now());
        BECAME_SUCCESSOR
    }

    /// As the successor: naps if the lock is monopolized, and returns whether it has.
    #[cfg(not(loom))]
    fn naps(&mut self) -> bool {
        let began = Moment::now();
        let nap = nap::due(self.mutex, self.deadline, began);
        if nap == 0 {
            return false;
        }
        self.note_parking();
        stats::count(Event::Sleeps);
        // It is late behind that only.
        let ends = began.later(nap);
        self.mutex.note_successor(ends);
        nap::sleep(self.mutex, nap);
        spin::wanted_cpu(ends.nanoseconds(), Moment::now().nanoseconds());
        true
    }

    /// Whether its deadline has passed, which a park finds out, or a successor that resigns.
    fn is_out_of_time(&self) -> bool {
        self.deadline.is_some_and(Deadline::has_passed)
    }

    /// Its stay awake: since it came, or woke up.
    fn stay(&mut self, now: u64) -> &mut Policy {
        let since = match self.has_parked {
            true => now,
            false => self.began.nanoseconds(),
        };
        let adapts = self.mutex.flavour() != PosixFlavour::Throughput;
        let stays = &self.history.stays;
        self.stay
            .get_or_insert_with(|| Policy::begin(spin::begin(since, stays, adapts)))
    }

    /// Notes how it ended.
    fn note_stay(&mut self, was_worth_while: bool) {
        if let Some(stay) = self.stay.take() {
            spin::end(*stay.spin(), &self.history.stays, was_worth_while);
        }
    }

    /// Leaves the word alone for a moment, and the CPU to others if there are any and it has not
    /// come to what is `enough`.
    fn linger(&mut self, now: u64, enough: impl Fn(State) -> bool) {
        let mutex = self.mutex;
        self.stay(now)
            .linger(|spin| spin::linger(spin, now, || enough(mutex.state())));
    }

    /// As what it parks.
    fn waiter(&mut self) -> Waiter {
        let waiter = Waiter::since(self.began);
        self.is_real_time = waiter.is_real_time();
        waiter
    }

    /// Parks behind the others, if it must: only while there is a successor, or an unlock will look at the
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
            waiter_table(),
            self.mutex.key(),
            waiter.entry(),
            Until::asleep(self.deadline),
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
        let (mutex, entry, until) = (self.mutex, waiter.entry(), Until::asleep(self.deadline));
        let announce =
            || mutex.announce(|state| state.is_locked().then_some(state.with_real_time_parked()));
        let left = |others_wait| mutex.note_parked(others_wait);
        let park = match in_front {
            true => parking::park_in_front,
            false => parking::park,
        };
        park(waiter_table(), mutex.key(), entry, until, announce, left)
    }

    /// As the successor: parks in the place of one who has waited longer and is the successor from now on. Most of all one
    /// who ran here, where a CPU is about to become free.
    #[cold]
    fn step_aside(&mut self) -> Outcome {
        self.has_stepped_aside = true;
        let me = self.waiter();
        if me.is_real_time() {
            return BECAME_SUCCESSOR;
        }
        let now = Moment::now();
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
            // Another CPU than its last one is about to become free.
            if !waiter.ran_here() && waited < PASSED_OVER_FOR {
                return Choice::Pass;
            }
            found = true;
            self.mutex.note_successor(now);
            Choice::Take
        };
        let parked = parking::park_instead_of(
            waiter_table(),
            self.mutex.key(),
            me.entry(),
            Until::asleep(self.deadline),
            longest_waiting,
            SUCCESSOR,
            |others_wait| self.mutex.note_parked(others_wait),
        );
        match parked {
            Parked::Invalid | Parked::Interrupted => BECAME_SUCCESSOR,
            parked => {
                // What it stayed awake for before it slept is over.
                self.stay = None;
                self.has_parked = true;
                self.is_self_appointed = false;
                after(parked)
            }
        }
    }

    /// As the successor: takes the lock, or parks.
    fn inherit(&mut self) -> Outcome {
        let successor_since = *self.successor_since.get_or_insert_with(Moment::now);
        if self.compete() {
            return LOCKED;
        }
        if self.is_out_of_time() {
            self.resign();
            return Err(LockTimedOut);
        }
        let impatient = successor_since.elapsed() > IMPATIENT_AFTER;
        let waiter = self.waiter().impatient(impatient);
        let parked = match waiter.is_real_time() {
            true => self.park_urgently(waiter, true),
            false => self.park_as_successor(waiter),
        };
        match parked {
            // It has become free: still the successor.
            Parked::Invalid | Parked::Interrupted => BECAME_SUCCESSOR,
            parked => {
                self.is_self_appointed = false;
                after(parked)
            }
        }
    }

    /// In front of those who have not waited as long; behind them if it has just come.
    #[inline(always)]
    fn park_as_successor(&mut self, waiter: Waiter) -> Parked {
        self.note_parking();
        let (mutex, entry, until) = (self.mutex, waiter.entry(), Until::asleep(self.deadline));
        let announce = || {
            mutex.announce(|state| {
                let held = state.is_locked();
                held.then_some(state.without_successor().with_parked(true))
            })
        };
        let left = |others_wait| mutex.note_parked(others_wait);
        match self.is_self_appointed {
            true => parking::park(waiter_table(), mutex.key(), entry, until, announce, left),
            false => {
                parking::park_in_front(waiter_table(), mutex.key(), entry, until, announce, left)
            }
        }
    }

    /// As the successor: stays awake until it has the lock, or that is not worth while; whether it has
    /// it.
    fn compete(&mut self) -> bool {
        let is_taken = try_inherit(self.mutex) || may_stay_awake() && self.outlast();
        self.note_stay(is_taken);
        is_taken
    }

    fn outlast(&mut self) -> bool {
        let mutex = self.mutex;
        #[cfg(not(loom))]
        if self.naps() {
            if try_inherit(mutex) {
                return true;
            }
            mutex.set(State::with_handoff);
            let now = Moment::now().nanoseconds();
            self.stay(now).reserve(now);
        }
        let turn = mutex.state().turn();
        let mut was_taken = false;
        loop {
            let now = Moment::now().nanoseconds();
            match self.stay(now).successor(now, was_taken) {
                Successor::Linger => self.linger(now, |state| !state.is_locked()),
                Successor::Reserve => mutex.set(State::with_handoff),
                Successor::Park => return false,
            }
            let state = mutex.state();
            if state.is_urgent() || self.is_out_of_time() {
                return false;
            }
            was_taken |= state.turn() != turn;
            if try_inherit(mutex) {
                let is_reserved = self.stay(now).is_reserved();
                stats::count_many(Event::HandOffs, usize::from(is_reserved));
                return true;
            }
        }
    }

    /// As the successor, who goes without the lock: somebody else must be it.
    fn resign(&self) {
        let mut state = self.mutex.state();
        while !state.has_parked() || state.is_urgent() {
            match self
                .mutex
                .change(state, state.without_successor(), Ordering::Relaxed)
            {
                Ok(()) => return,
                Err(now) => state = now,
            }
        }
        parking::unpark_one(
            waiter_table(),
            self.mutex.key(),
            // If a real-time thread has parked meanwhile, this is the successor no longer.
            |first| !Waiter(first).is_real_time(),
            |woken, others_wait| {
                self.mutex.set(|state| {
                    let state = state.with_parked(others_wait);
                    if woken.is_none() {
                        state.without_successor()
                    } else {
                        state
                    }
                });
                SUCCESSOR
            },
        );
    }
}
