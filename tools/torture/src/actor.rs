//! A thread of a scenario: it waits and wakes, counts its operations, and records on the board what
//! it is doing.

use crate::board::{Doing, Place};
use crate::context::Context;
pub(crate) use crate::context::Verdict;
use crate::count::Count;
use crate::fault::kind::Fault;
use crate::fault::shuffle::Cpus;
use crate::fault::{hold, stutter};
use crate::nap::nap;
use crate::slice::Sabotage;
use crate::spot::{How, Spot};
use std::cell::Cell;
use std::time::{Duration, SystemTime};
use waitword::{Cmp, Deadline, Error, Op, wait_any};

/// See the module documentation.
pub(crate) struct Actor {
    context: &'static Context,
    place: &'static Place,
    /// The thread's own random choices.
    pub(crate) dice: fastrand::Rng,
    /// The choices of sabotage. They are separate, so that a run makes the same other choices with
    /// and without sabotage.
    sabotage_dice: fastrand::Rng,
    /// How many signals the thread had handled when its last wait began.
    handled_before: Cell<u64>,
}

thread_local! {
    /// For signal handlers, and for code that has no actor at hand.
    static HERE: Cell<Option<&'static Place>> = const { Cell::new(None) };
    static HANDLED: Cell<u64> = const { Cell::new(0) };
}

/// The place of the calling thread; in a signal handler, that of the interrupted thread.
pub(crate) fn own_place() -> Option<&'static Place> {
    HERE.with(Cell::get)
}

/// Every signal handler must call this: the thread has handled one more signal.
pub(crate) fn count_signal() {
    HANDLED.with(|handled| handled.set(handled.get() + 1));
    if let Some(place) = own_place() {
        place.count(Count::Signals, 1);
    }
}

impl Actor {
    /// Takes a place on the board for the calling thread. `dice` seeds its choices.
    pub(crate) fn new(context: &'static Context, name: &str, dice: u64) -> Self {
        let place = context.board.join(name);
        place.count(Count::Threads, 1);
        HERE.with(|here| here.set(Some(place)));
        Self {
            context,
            place,
            dice: fastrand::Rng::with_seed(dice),
            sabotage_dice: fastrand::Rng::with_seed(!dice),
            handled_before: Cell::new(0),
        }
    }

    /// Whether the thread has handled a signal since its last wait began.
    pub(crate) fn was_interrupted(&self) -> bool {
        HANDLED.with(Cell::get) != self.handled_before.get()
    }

    /// Whether to call futexes through `syscall`, as programs do: with the drop-in.
    pub(crate) fn calls(&self) -> bool {
        self.context.slice.drop_in.is_some()
    }

    pub(crate) fn context(&self) -> &'static Context {
        self.context
    }

    /// Whether `fault` is injected.
    pub(crate) fn has(&self, fault: Fault) -> bool {
        self.context.has(fault)
    }

    /// Records one step of progress.
    pub(crate) fn step(&self) {
        self.count(Count::Operations, 1);
        stutter::pause_with_all(self.context.board);
    }

    pub(crate) fn count(&self, what: Count, by: usize) {
        self.place.count(what, by);
    }

    /// A deadline within the next fraction of a millisecond, or just past, on either clock.
    pub(crate) fn tiny_deadline(&mut self) -> Deadline {
        let ahead = Duration::from_nanos(1 << self.dice.u32(0..19));
        match self.dice.u32(0..8) {
            0 => Deadline::at_system_time(SystemTime::now() + ahead),
            1 => Deadline::at_system_time(SystemTime::now() - ahead),
            _ => Deadline::after(ahead),
        }
    }

    /// Records, for the report, that the thread holds the lock whose word is `spot`.
    pub(crate) fn holds(&self, spot: Spot) {
        self.place.hold(spot.number);
    }

    /// Records that the thread is about to release it.
    pub(crate) fn releases(&self, spot: Spot) {
        self.place.release(spot.number);
    }

    /// Lets other threads run for a moment, now and then; often called with a lock held.
    pub(crate) fn dawdle(&mut self) {
        stutter::pause_with_all(self.context.board);
        if self.context.has(Fault::Hold)
            && let Some((time, asleep)) = hold::choose(&mut self.dice)
        {
            self.count(Count::Holds, 1);
            return hold::hold(time, asleep);
        }
        match self.dice.u32(0..64) {
            0 => nap(self.dice.u64(0..100)),
            1..8 => std::thread::yield_now(),
            8..16 => (0..self.dice.u32(0..200)).for_each(|_| std::hint::spin_loop()),
            _ => {}
        }
    }

    pub(crate) fn wait(&self, spot: Spot, expected: u64, how: How) -> Result<(), Error> {
        let doing = match how.deadline {
            None => Doing::Waiting,
            Some(_) => Doing::WaitingUntil,
        };
        self.place.set(doing, spot.number, expected);
        self.handled_before.set(HANDLED.with(Cell::get));
        let ended = spot.wait(expected, how);
        self.place.set(Doing::Other, 0, 0);
        self.count_wait(ended)
    }

    /// Waits on all of `spots` at once, each with the value that it is expected to hold.
    pub(crate) fn wait_any(
        &self,
        spots: &[(Spot, u64)],
        deadline: Option<Deadline>,
    ) -> Result<usize, Error> {
        let words: Vec<_> =
            spots.iter().map(|(spot, expected)| spot.expecting(*expected)).collect();
        if let [(first, expected), others @ ..] = spots {
            let others = others.iter().map(|(spot, _)| spot.number);
            self.place.set_several(first.number, *expected, others);
        }
        let ended = wait_any(&words, deadline);
        self.place.set(Doing::Other, 0, 0);
        self.count_wait(ended)
    }

    fn count_wait<T>(&self, ended: Result<T, Error>) -> Result<T, Error> {
        self.count(Count::Waits, 1);
        match ended {
            Ok(_) => self.count(Count::Woken, 1),
            Err(Error::TimedOut) => self.count(Count::Timeouts, 1),
            Err(Error::Interrupted) => self.count(Count::Interrupted, 1),
            Err(_) => {}
        }
        ended
    }

    pub(crate) fn wake(&mut self, spot: Spot, count: usize, mask: u64) -> Result<usize, String> {
        if self.leaves_out() {
            return Ok(0);
        }
        self.place.set(Doing::Waking, spot.number, 0);
        let woken = spot.wake(count, mask);
        self.place.set(Doing::Other, 0, 0);
        let woken = self.count_woken("wake", woken)?;
        if woken > count {
            return Err(format!("wake({count}) woke {woken}"));
        }
        Ok(woken)
    }

    /// Like [`Spot::requeue`], but returns the woken and the moved waiters separately. `None`: the
    /// value was not the expected one.
    pub(crate) fn requeue(
        &mut self,
        from: Spot,
        expected: Option<u64>,
        to: Spot,
        (wake, moved): (usize, usize),
    ) -> Result<Option<(usize, usize)>, String> {
        if self.leaves_out() {
            return Ok(None);
        }
        self.place.set(Doing::Requeueing, from.number, 0);
        let both = from.requeue(expected, to, wake, moved);
        self.place.set(Doing::Other, 0, 0);
        if both == Err(Error::Mismatch) && expected.is_some() {
            return Ok(None);
        }
        // Wakes come first: any count beyond them is of moved waiters.
        let woken = both.map(|both| both.min(wake));
        let over = both.map_or(0, |both| both.saturating_sub(wake));
        let woken = self.count_woken("requeue", woken)?;
        if over > moved {
            return Err(format!("requeue({wake}, {moved}) moved {over}"));
        }
        self.count(Count::Requeues, over);
        Ok(Some((woken, over)))
    }

    pub(crate) fn wake_op(
        &mut self,
        (first, count): (Spot, usize),
        (second, second_count): (Spot, usize),
        change: (Op, u64),
        when: Option<(Cmp, u64)>,
    ) -> Result<usize, String> {
        self.place.set(Doing::Waking, first.number, 0);
        let woken = first.wake_op(count, second, second_count, change, when);
        self.place.set(Doing::Other, 0, 0);
        self.count_woken("wake_op", woken)
    }

    fn count_woken(&mut self, what: &str, woken: Result<usize, Error>) -> Result<usize, String> {
        let mut woken = woken.map_err(|error| format!("{what} failed: {error}"))?;
        if self.miscounts() {
            woken += 1;
        }
        self.count(Count::Wakes, woken);
        Ok(woken)
    }

    /// Runs `what`, which may wait for an object with this word, with or without a deadline.
    pub(crate) fn wait_at<R>(&self, spot: Spot, until: bool, what: impl FnOnce() -> R) -> R {
        self.is_at(spot, until);
        self.handled_before.set(HANDLED.with(Cell::get));
        let result = what();
        self.is_elsewhere();
        self.count(Count::Waits, 1);
        result
    }

    /// Records that the thread may wait for an object with this word, for callers that cannot pass
    /// a closure.
    pub(crate) fn is_at(&self, spot: Spot, until: bool) {
        let doing = match until {
            true => Doing::EnteringUntil,
            false => Doing::Entering,
        };
        self.place.set(doing, spot.number, spot.word.load());
    }

    /// Records that the thread no longer waits there.
    pub(crate) fn is_elsewhere(&self) {
        self.place.set(Doing::Other, 0, 0);
    }

    /// Sabotage: never continues, and keeps what it holds. (It must not return: the thread could
    /// come to a lock that it holds itself, and would get an error there instead of hanging.)
    pub(crate) fn keeps(&self, spot: Spot) -> ! {
        self.place.set(Doing::Keeping, spot.number, spot.word.load());
        loop {
            std::thread::park();
        }
    }

    /// Moves the thread to one CPU, or lets the scheduler place it anywhere.
    pub(crate) fn move_to_some_cpu(&mut self) {
        // The main thread's CPUs, because it is never moved. A thread that was moved may have only
        // one CPU left.
        let Some(allowed) = Cpus::of(std::process::id() as i32) else {
            return;
        };
        match self.dice.u32(0..4) {
            0 => allowed.set_for(0),
            _ => allowed.pick(&mut self.dice).set_for(0),
        }
    }

    /// Sabotage: whether to leave out a call that would wake another thread.
    pub(crate) fn leaves_out(&mut self) -> bool {
        self.context.slice.sabotage == Some(Sabotage::SkipWake)
            && self.sabotage_dice.u32(0..200) == 0
    }

    /// Sabotage: whether to let a later waiter overtake an earlier one.
    pub(crate) fn overtakes(&mut self) -> bool {
        self.context.slice.sabotage == Some(Sabotage::Overtake)
            && self.sabotage_dice.u32(0..20) == 0
    }

    /// Sabotage: whether to make a wait so long that it counts as starved.
    pub(crate) fn starves(&mut self) -> bool {
        self.context.slice.sabotage == Some(Sabotage::Starve)
            && self.sabotage_dice.u32(0..1000) == 0
    }

    /// Sabotage: whether to count something that did not happen.
    pub(crate) fn miscounts(&mut self) -> bool {
        self.context.slice.sabotage == Some(Sabotage::Miscount)
            && self.sabotage_dice.u32(0..200) == 0
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        // The actor of a cancelled thread is dropped by the thread that joins it, whose own place
        // must stay.
        HERE.with(|here| {
            if here.get().is_some_and(|place| std::ptr::eq(place, self.place)) {
                here.set(None);
            }
        });
        self.place.leave();
    }
}
