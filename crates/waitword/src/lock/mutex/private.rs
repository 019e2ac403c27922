//! The throughput-optimized and the adaptive mutex under contention: the protocol. (Waiman Long's
//! TO futexes, 2016: lock stealing, one optimistic spinner, hand-off after a bounded wait.)
//!
//! # Why
//!
//! A lock has its highest throughput when a running thread takes it again and again: no cache line
//! moves between CPUs and no thread is woken. Throughput is lowest when the lock is handed to a
//! sleeping thread: the lock is idle for as long as the wake-up takes. So a running thread may take
//! a free lock past all waiters (*barging*), and the time for which other threads may do so must be
//! bounded. The protocol bounds it for one waiter at a time, the **successor** (nsync's designated
//! waker).
//!
//! # Waiters
//!
//! A waiter first stays awake: `policy` defines how, for how long, and why. While awake, it may
//! take the lock like any newcomer. Then it parks.
//!
//! At most one of the awake waiters is the **successor**, whose number is in the word. While there
//! is a successor, unlocks wake no thread: the successor will take the lock, or make sure that
//! another waiter wakes up. A waiter becomes the successor when an unlock wakes it, or by itself if
//! there is none. Then:
//!
//! * If other threads take the lock past the successor for as long as it stays awake, it reserves
//!   the lock (HANDOFF): the next unlock leaves the lock to the successor. A hand-off to an awake
//!   thread costs the transfer of two cache lines.
//! * If the holder keeps the lock for that long, the successor parks: at the front of the queue if
//!   it was woken, at the back if not.
//! * Where a second CPU would not help, the successor naps before it reserves the lock
//!   (`policy/monopoly.rs`, `nap.rs`).
//!
//! "At the front" means in front of waiters of the same priority. A waiting real-time thread comes
//! before all of this, and a successor of a lower priority does not count (`real_time.rs`).
//!
//! From time to time, a waiter that would become the successor instead **yields its place** to a
//! parked waiter that has waited for a while (`yield_place`): it parks in that waiter's place and
//! wakes it as the successor. That wake-up runs on the CPU of a thread that has nothing better to
//! do, while the holder works on. It is also what makes all threads take turns.
//!
//! A thread that was signalled at a condvar does not wake up as the successor, unless it is one of
//! a chain or there is only one CPU (`policy/wakes.rs`). So the next signal wakes the next thread,
//! whether or not this one runs yet. If it were the successor, all signalled threads would run one
//! by one, each after a context switch.
//!
//! ```text
//!   CPU 0   A holds it, again and again | A comes again | B is woken, successor | B holds it ..
//!   CPU 1   C is awake, successor       | C holds it ...........................| D is woken ..
//!                                       ▲               ▲
//!                           C had reserved it           A finds no successor,
//!                                                       parks in B's place and wakes B
//! ```
//!
//! # What wakes a parked waiter
//!
//! ```text
//!   event                  there is a successor             there is no successor
//!   ─────                  ────────────────────             ─────────────────────
//!   unlock, threads are    wakes none; two exceptions       wakes the oldest as successor; an
//!   parked                 below                            IMPATIENT or real-time waiter is
//!                                                           handed the lock itself
//!   a waiter has been      it parks                         it becomes the successor, or wakes
//!   awake long enough                                       one as successor and parks in its
//!                                                           place
//!   the successor takes    —                                its unlock wakes, or a newcomer
//!   the lock                                                becomes the successor
//!   a waiter parks         only if the lock is held (the    only if the lock is held (the
//!                          unlock wakes it) or reserved     unlock wakes it)
//!                          (the successor does)
//!   the successor's        it wakes the oldest as
//!   deadline passes        successor
//! ```
//!
//! The two exceptions:
//!
//! * If the successor is late, the unlock wakes the oldest waiter that came to the mutex itself
//!   (`policy/wakes.rs`).
//! * If the successor may nap and the unlocking thread is about to wait for a condvar, the unlock
//!   wakes a waiter as if there were no successor, but not as the successor.
//!
//! An unlock by a thread that is about to wait for a condvar passes over waiters that come from the
//! same condvar, if another waiter is parked (`unlock.rs`).
//!
//! # Invariants
//!
//! 1. If a waiter is parked and the lock is free, then there is a successor, or the unlock that
//!    freed the lock is about to wake one, or a woken waiter will take the lock or find it held.
//! 2. The successor's number in the word stands for exactly one thread, and only that thread
//!    removes it. (With real-time threads it means that a waiter is awake, or that others will be
//!    woken; `real_time.rs` explains why that is enough.)
//! 3. PARKED is set and cleared under the bucket's lock.
//! 4. An unlock's last access to the word is the one that releases the lock. If there is a thread
//!    to wake, that access happens under the bucket's lock.
//!
//! # Orderings
//!
//! Taking the lock is Acquire, releasing it is Release. Setting PARKED is Release, and the read of
//! PARKED in an unlock is Acquire, only so that the unlock finds the table that the waiter is
//! queued in. All other changes of the word are Relaxed: they order nothing.

use super::history::{self, is_monopolized};
use super::nap;
use super::policy::{
    IMPATIENT_AFTER, LOOK_THROUGH, Newcomer, Policy, ROTATE_EVERY, SAMPLE_EVERY, Seen, Successor,
    takes_place,
};
use super::waiter::{EXTRA, HOLDER, SUCCESSOR, Waiter, elapsed};
use super::word::State;
use super::{LockTimedOut, PosixFlavour, RawPosixMutex};
use crate::atomic::Ordering;
use crate::futex::parking::{self, Parked, Request, Token};
use crate::park::Until;
use crate::park::spin::{self, FirstLooks, LockHistory};
use crate::private::{Choice, Queue};
use crate::stats::{self, Event};
use crate::sys::clock::{Deadline, nanoseconds as now};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Newcomer,
    Successor,
}

/// The next step of a thread on its way to the lock.
enum Step {
    /// It has the lock.
    Locked,
    TimedOut,
    /// It looks at the lock again, in this role.
    Look(Role),
    /// It parks.
    Park(Role),
    /// It has become the successor, but parks in the place of another waiter, and makes that one
    /// the successor.
    YieldPlace,
}

const NEWCOMER: Step = Step::Look(Role::Newcomer);
const BECAME_SUCCESSOR: Step = Step::Look(Role::Successor);

/// A thread on its way to the lock.
struct Contender<'a> {
    mutex: &'a RawPosixMutex,
    deadline: Option<&'a Deadline>,
    /// When it began to wait, in nanoseconds.
    began: u64,
    /// When it first became the successor.
    successor_since: Option<u64>,
    has_yielded_place: bool,
    /// It became the successor by itself, instead of being woken as such.
    is_self_appointed: bool,
    /// Its policy since it began to linger, if it has.
    stay: Option<Policy>,
    history: &'static LockHistory,
    /// It was woken as an extra waiter (`policy/wakes.rs`) and has not parked since.
    is_extra: bool,
    /// It has parked before.
    has_parked: bool,
    /// It was a real-time thread when it last came to park.
    is_real_time: bool,
}

/// Takes the lock, for a thread that has found it taken, or that was woken with this token by a
/// condvar, or from the queue that a condvar moved it to.
#[cold]
pub(in crate::lock) fn lock(
    mutex: &RawPosixMutex,
    deadline: Option<&Deadline>,
    woken_with: Token,
) -> Result<(), LockTimedOut> {
    match woken_with {
        // The usual case for a woken successor.
        SUCCESSOR if try_inherit(mutex) => {
            mutex.note_woken(true);
            return Ok(());
        }
        SUCCESSOR => mutex.note_woken(false),
        _ if looks(mutex) => {
            if woken_with == EXTRA {
                mutex.note_woken(true);
            }
            return Ok(());
        }
        _ => {}
    }
    let mut contender = Contender::new(mutex, deadline);
    contender.is_extra = woken_with == EXTRA;
    contender.has_yielded_place = contender.is_extra;
    let mut step = after(Parked::Woken(woken_with));
    loop {
        step = match step {
            Step::Locked => {
                if contender.is_extra {
                    mutex.note_woken(true);
                }
                return Ok(());
            }
            Step::TimedOut => return Err(LockTimedOut),
            Step::Look(Role::Newcomer) => contender.come(),
            Step::Look(Role::Successor) => contender.inherit(),
            Step::Park(role) => contender.park(role),
            Step::YieldPlace => contender.yield_place(),
        };
    }
}

/// The first looks, which end most waits: looks at the word at growing intervals, and takes the
/// lock if it may. Returns whether it did. (Does not look at a monopolized lock: that would disturb
/// the holder.)
pub(super) fn looks(mutex: &RawPosixMutex) -> bool {
    if !spin::is_allowed() || is_monopolized(mutex) {
        return false;
    }
    let mut looks = FirstLooks::begin(&history::of(mutex).stays);
    loop {
        let state = mutex.state();
        let may_take = state.may_barge();
        if may_take && mutex.change(state, state.taken(), Ordering::Acquire).is_ok() {
            looks.won();
            return true;
        }
        if !may_take && !looks.pause() {
            return false;
        }
    }
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

/// Decides what a parked thread does when it wakes up.
fn after(parked: Parked) -> Step {
    match parked {
        Parked::Woken(HOLDER) => Step::Locked,
        Parked::Woken(SUCCESSOR) => BECAME_SUCCESSOR,
        Parked::TimedOut => Step::TimedOut,
        // This includes a thread that was woken as an extra waiter while it waited for the mutex
        // and not for a condvar.
        Parked::Woken(_) | Parked::Invalid | Parked::Interrupted => NEWCOMER,
    }
}

impl<'a> Contender<'a> {
    fn new(mutex: &'a RawPosixMutex, deadline: Option<&'a Deadline>) -> Self {
        Self {
            mutex,
            deadline,
            began: now(),
            successor_since: None,
            has_yielded_place: false,
            is_self_appointed: false,
            stay: None,
            history: history::of(mutex),
            is_extra: false,
            has_parked: false,
            is_real_time: false,
        }
    }

    /// As a newcomer: takes the lock, parks behind the successor, or becomes the successor.
    fn come(&mut self) -> Step {
        let state = self.mutex.state();
        if state.may_barge() || self.is_real_time && !state.is_locked() {
            let taken = state.taken();
            if self.mutex.change(state, taken, Ordering::Acquire).is_err() {
                return NEWCOMER;
            }
            self.note_stay(true);
            return Step::Locked;
        }
        if state.is_urgent() || !spin::is_allowed() {
            return Step::Park(Role::Newcomer);
        }
        let now = now();
        // The word of a mutex that keeps an owner counts no turns.
        let is_sample_due = !state.is_special() && self.history.is_sample_due(now, SAMPLE_EVERY);
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
                    return Step::Locked;
                }
            }
            Newcomer::BecomeSuccessor => {
                let next = state.with_successor();
                if self.mutex.change(state, next, Ordering::Relaxed).is_ok() {
                    return self.be_successor(now, state.has_parked());
                }
            }
            Newcomer::Park => {
                self.note_stay(false);
                return Step::Park(Role::Newcomer);
            }
        }
        NEWCOMER
    }

    /// Continues as a thread that has just become the successor by itself.
    fn be_successor(&mut self, now: u64, others_are_parked: bool) -> Step {
        self.is_self_appointed = true;
        if others_are_parked && !self.has_yielded_place && self.history.rotates(now, ROTATE_EVERY) {
            return Step::YieldPlace;
        }
        self.mutex.note_successor(now);
        BECAME_SUCCESSOR
    }

    /// As the successor: stays awake until it has the lock, or until staying awake is no longer
    /// worth while; then parks.
    fn inherit(&mut self) -> Step {
        self.successor_since.get_or_insert_with(now);
        let is_taken = try_inherit(self.mutex) || spin::is_allowed() && self.outlast();
        self.note_stay(is_taken);
        if is_taken {
            return Step::Locked;
        }
        if self.is_out_of_time() {
            self.resign();
            return Step::TimedOut;
        }
        Step::Park(Role::Successor)
    }

    /// Returns whether it has the lock.
    fn outlast(&mut self) -> bool {
        let mutex = self.mutex;
        if self.naps() {
            if try_inherit(mutex) {
                return true;
            }
            mutex.set(State::with_handoff);
            let now = now();
            self.stay(now).reserve(now);
        }
        let turn = mutex.state().turn();
        let mut was_taken = false;
        loop {
            let now = now();
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

    /// As the successor: naps if the lock is monopolized. Returns whether it did.
    fn naps(&mut self) -> bool {
        let began = now();
        let nap = nap::due(self.mutex, self.deadline, began);
        if nap == 0 {
            return false;
        }
        self.note_parking();
        stats::count(Event::Sleeps);
        // The successor counts as late only once its nap should have ended.
        let ends = began + nap;
        self.mutex.note_successor(ends);
        nap::sleep(self.mutex, nap);
        spin::wanted_cpu(ends, now());
        true
    }

    /// Whether the deadline has passed. The timeout is then returned by the park that follows, or
    /// by a successor after it resigns.
    fn is_out_of_time(&self) -> bool {
        self.deadline.is_some_and(Deadline::has_passed)
    }

    /// The current stay awake: since the thread came, or since it woke up.
    fn stay(&mut self, now: u64) -> &mut Policy {
        let since = match self.has_parked {
            true => now,
            false => self.began,
        };
        let adapts = self.mutex.flavour() != PosixFlavour::Throughput;
        let stays = &self.history.stays;
        self.stay.get_or_insert_with(|| Policy::begin(spin::begin(since, stays, adapts)))
    }

    /// Notes how the stay ended.
    fn note_stay(&mut self, was_worth_while: bool) {
        if let Some(stay) = self.stay.take() {
            spin::end(*stay.spin(), &self.history.stays, was_worth_while);
        }
    }

    /// Leaves the word alone for a moment. Then yields the CPU to other threads, if there are any
    /// and the word has not reached a state that is `enough`.
    fn linger(&mut self, now: u64, enough: impl Fn(State) -> bool) {
        let mutex = self.mutex;
        self.stay(now).linger(|spin| spin::linger(spin, now, || enough(mutex.state())));
    }

    /// Records that the thread is about to park. The outcome of its stay awake has been noted
    /// before, if it is conclusive.
    fn note_parking(&mut self) {
        self.stay = None;
        if core::mem::replace(&mut self.has_parked, true) {
            stats::count(Event::SleptAgain);
        }
        if core::mem::take(&mut self.is_extra) {
            self.mutex.note_woken(false);
        }
    }

    /// The waiter to park as.
    fn waiter(&mut self) -> Waiter {
        let waiter = Waiter::since(self.began);
        self.is_real_time = waiter.is_real_time();
        waiter
    }

    fn request(&self, waiter: Waiter) -> Request<'a> {
        Request::new(self.mutex.key(), waiter.entry(), Until::asleep(self.deadline))
    }

    /// Parks, if an unlock is certain to look at the queue, or as a newcomer also if there is a
    /// successor: behind the others, or in front of those that have not waited as long.
    fn park(&mut self, role: Role) -> Step {
        let waiter = self.waiter();
        let is_real_time = waiter.is_real_time();
        let (in_front, waits_since) = match role {
            Role::Newcomer if is_real_time && self.has_parked => (true, Some(self.began)),
            Role::Newcomer => (false, None),
            Role::Successor => (is_real_time || !self.is_self_appointed, self.successor_since),
        };
        let impatient = waits_since.is_some_and(|since| elapsed(since) > IMPATIENT_AFTER);
        self.note_parking();
        let parked = parking::park(
            self.request(waiter.impatient(impatient)).in_front_if(in_front),
            || {
                self.mutex.announce(|state| match role {
                    _ if is_real_time => {
                        let held = state.is_locked();
                        held.then_some(state.with_real_time_parked())
                    }
                    Role::Newcomer => (!state.may_barge()).then_some(state.with_parked(true)),
                    Role::Successor => {
                        let held = state.is_locked();
                        held.then_some(state.without_successor().with_parked(true))
                    }
                })
            },
            || {},
            |queue| self.left(queue),
        );
        self.woken(role, parked)
    }

    /// The thread has given up its place in the queue.
    fn left(&self, queue: &Queue<'_>) {
        self.mutex.note_parked(queue.has_waiters());
    }

    fn woken(&mut self, role: Role, parked: Parked) -> Step {
        match parked {
            // The lock has become free: this thread is still the successor.
            Parked::Invalid | Parked::Interrupted if role == Role::Successor => BECAME_SUCCESSOR,
            parked => {
                self.is_self_appointed = false;
                after(parked)
            }
        }
    }

    /// As the successor: parks in the place of a waiter that has waited longer, and makes it the
    /// successor.
    #[cold]
    fn yield_place(&mut self) -> Step {
        self.has_yielded_place = true;
        let me = self.waiter();
        if me.is_real_time() {
            return BECAME_SUCCESSOR;
        }
        let now = now();
        let (mut seen, mut found) = (0, false);
        let longest_waiting = |kind| {
            let waiter = Waiter(kind);
            seen += 1;
            // A real-time thread has come meanwhile, and waits for the unlock.
            if found || seen > LOOK_THROUGH || waiter.is_real_time() {
                return Choice::Stop;
            }
            match takes_place(waiter.waited_until(now), waiter.ran_here()) {
                None => Choice::Stop,
                Some(false) => Choice::Pass,
                Some(true) => {
                    found = true;
                    self.mutex.note_successor(now);
                    Choice::Take
                }
            }
        };
        let parked =
            parking::park_instead_of(self.request(me), longest_waiting, SUCCESSOR, |queue| {
                self.left(queue)
            });
        if !matches!(parked, Parked::Invalid | Parked::Interrupted) {
            // The stay awake before the sleep is over.
            self.stay = None;
            self.has_parked = true;
        }
        self.woken(Role::Successor, parked)
    }

    /// As the successor: gives up without the lock. If threads are parked, wakes another successor.
    fn resign(&self) {
        let mut state = self.mutex.state();
        while !state.has_parked() || state.is_urgent() {
            let next = state.without_successor();
            match self.mutex.change(state, next, Ordering::Relaxed) {
                Ok(()) => return,
                Err(now) => state = now,
            }
        }
        parking::unpark_one(
            self.mutex.key(),
            // If a real-time thread has parked meanwhile, this thread is no longer the successor.
            |first| !Waiter(first).is_real_time(),
            |woken, others_wait| {
                self.mutex.set(|state| {
                    let state = state.with_parked(RawPosixMutex::stays_parked(others_wait));
                    match woken {
                        None => state.without_successor(),
                        Some(_) => state,
                    }
                });
                SUCCESSOR
            },
        );
    }
}
