//! Tortured: threads are cancelled again and again, and replaced, while they wait for tokens: in
//! condition variables of every sort with mutexes of every sort, with and without deadlines, and in
//! semaphores. Some are cancelled asynchronously, some disable cancellation for a while.
//!
//! Checked: a cleanup handler finds the mutex held by its thread. A cancelled waiter takes no token
//! and no signal with it (each giver signals once for a token, and no signal is repeated). The
//! tokens given are the tokens taken. All threads end.

use crate::actor::{Actor, Verdict};
use crate::context::{Context, Round};
use crate::count::Count;
use crate::objects::pthread::abi::{self, CleanupBuffer};
use crate::objects::pthread::bare::{Bare, Ended};
use crate::objects::pthread::condvar::{Condvar, CondvarSort};
use crate::objects::pthread::mutex::Mutex;
use crate::objects::pthread::object::zero;
use crate::objects::pthread::semaphore::Semaphore;
use crate::objects::pthread::sort::{Kind, Made, Protocol, Sort};
use crate::objects::pthread::until::{Until, some_clock};
use crate::objects::traits::{Lock as _, Semaphore as _};
use crate::parts::books::Pair;
use crate::slice::DropIn;
use libc::c_void;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};

const TOKENS: usize = 1_200;
/// At most this many tokens are ready at any time, so that most takers wait for tokens.
const AHEAD: usize = 4;

/// Where tokens are given and taken.
struct Store {
    lock: Mutex,
    condvar: Condvar,
    /// Changed with the mutex held, by plain loads and stores.
    tokens: AtomicUsize,
    pair: Pair,
    taken: AtomicUsize,
    closed: AtomicBool,
    /// Whether threads may be cancelled asynchronously in a wait. POSIX does not promise it, the
    /// drop-in does.
    asynchronously: bool,
    semaphore: Semaphore,
    taken_from_semaphore: AtomicUsize,
    context: &'static Context,
}

/// The argument of a cleanup handler.
struct Visit {
    store: &'static Store,
    holds: AtomicBool,
    asynchronous: AtomicBool,
}

impl Store {
    /// With the mutex held: checks that no other thread holds it.
    fn is_alone(&self) -> bool {
        self.pair.change(std::hint::spin_loop)
    }

    /// With the mutex held: takes a token, if there is one. Returns whether there was.
    fn take_if_there(&self, actor: &mut Actor) -> Result<bool, String> {
        if !self.is_alone() {
            return Err("two threads hold a mutex".to_owned());
        }
        let Some(left) = self.tokens.load(Relaxed).checked_sub(1) else {
            return Ok(false);
        };
        self.tokens.store(left, Relaxed);
        let counted = if actor.miscounts() { 2 } else { 1 };
        self.taken.fetch_add(counted, Relaxed);
        actor.step();
        Ok(true)
    }

    /// With the mutex held: whether the mutex itself reports that, as far as it can be asked.
    fn is_held(&self) -> bool {
        let Sort { kind, made, .. } = self.lock.sort;
        if kind == Kind::Recursive || made == Made::C11 {
            return true;
        }
        // SAFETY: a mutex that the calling thread holds, and that is not recursive.
        let answer = unsafe { libc::pthread_mutex_trylock(self.lock.raw()) };
        answer == libc::EBUSY || answer == libc::EDEADLK
    }
}

/// The cleanup handler of a taker.
unsafe extern "C-unwind" fn clean_up(visit: *mut c_void) {
    // SAFETY: in the frame of the thread that is being unwound, above this one.
    let visit = unsafe { &*visit.cast::<Visit>() };
    let store = visit.store;
    if !visit.holds.load(Relaxed) {
        return;
    }
    if !store.is_held() || !store.is_alone() {
        store.context.complain("a cleanup handler did not find the mutex held");
    }
    if visit.asynchronous.load(Relaxed) {
        // The thread may have received a signal, and then not have looked at the store.
        let _ = store.condvar.signal(false);
    }
    if let Err(error) = store.lock.unlock() {
        store.context.complain(&format!("a cleanup handler's unlock: {error}"));
    }
}

/// Takes tokens until the store is closed. It has nothing to drop where it can be cancelled.
fn take(actor: &mut Actor, store: &'static Store) -> Verdict {
    let visit =
        Visit { store, holds: AtomicBool::new(false), asynchronous: AtomicBool::new(false) };
    let mut buffer = CleanupBuffer::new();
    // SAFETY: popped below, in this frame.
    unsafe {
        let visit = (&raw const visit).cast_mut().cast();
        abi::_pthread_cleanup_push(&raw mut buffer, clean_up, visit);
    }
    let verdict = take_all(actor, store, &visit);
    // SAFETY: pushed above.
    unsafe { abi::_pthread_cleanup_pop(&raw mut buffer, 0) };
    verdict
}

fn take_all(actor: &mut Actor, store: &'static Store, visit: &Visit) -> Verdict {
    loop {
        if actor.dice.u32(0..8) == 0 {
            take_one_undisturbed(actor, store)?;
        }
        store.lock.lock(actor)?;
        visit.holds.store(true, Relaxed);
        while store.tokens.load(Relaxed) == 0 && !store.closed.load(Relaxed) {
            wait(actor, store, visit)?;
        }
        let taken = store.take_if_there(actor)?;
        visit.holds.store(false, Relaxed);
        store.lock.unlock()?;
        if !taken {
            return Ok(());
        }
        // A cancellation point, now and then.
        actor.dawdle();
        take_from_semaphore(actor, store)?;
    }
}

/// One wait with the mutex held, during which the thread may be cancelled.
fn wait(actor: &mut Actor, store: &Store, visit: &Visit) -> Verdict {
    let asynchronously = store.asynchronously && actor.dice.bool();
    let timed = actor.dice.u32(0..8) == 0;
    if !asynchronously {
        return store.condvar.wait(actor, &store.lock, timed);
    }
    let clock = some_clock(&mut actor.dice);
    let until = Until::tiny(&mut actor.dice, clock);
    visit.asynchronous.store(true, Relaxed);
    let mut old = 0;
    // SAFETY: room for the old type; nothing needs to be dropped before the type is set back.
    let answer = unsafe {
        abi::pthread_setcanceltype(abi::CANCEL_ASYNCHRONOUS, &raw mut old);
        let answer = store.condvar.wait_now(&store.lock, if timed { Some(&until) } else { None });
        abi::pthread_setcanceltype(abi::CANCEL_DEFERRED, &raw mut old);
        answer
    };
    visit.asynchronous.store(false, Relaxed);
    match answer {
        0 | libc::ETIMEDOUT => Ok(()),
        number => zero("a wait", number),
    }
}

/// Takes a token, if there is one, with cancellation disabled.
fn take_one_undisturbed(actor: &mut Actor, store: &Store) -> Verdict {
    let mut old = 0;
    // SAFETY: room for the old state.
    unsafe { abi::pthread_setcancelstate(abi::CANCEL_DISABLE, &raw mut old) };
    store.lock.lock(actor)?;
    if store.tokens.load(Relaxed) == 0 && !store.closed.load(Relaxed) {
        store.condvar.wait(actor, &store.lock, true)?;
    }
    store.take_if_there(actor)?;
    store.lock.unlock()?;
    // SAFETY: as above. A pending request is acted on at the next cancellation point.
    unsafe { abi::pthread_setcancelstate(abi::CANCEL_ENABLE, &raw mut old) };
    Ok(())
}

/// A taken token must be counted, so there is no cancellation point between the two.
fn take_from_semaphore(actor: &mut Actor, store: &Store) -> Verdict {
    let clock = some_clock(&mut actor.dice);
    let until = Until::from_now(clock, 1 << actor.dice.u32(10..22));
    if store.semaphore.wait_until(actor, &until) {
        store.taken_from_semaphore.fetch_add(1, Relaxed);
        actor.step();
    }
    Ok(())
}

fn give(actor: &mut Actor, store: &Store, tokens: usize) -> Verdict {
    for _ in 0..tokens {
        if !store.semaphore.post() {
            return Err("sem_post failed".to_owned());
        }
        loop {
            store.lock.lock(actor)?;
            let there = store.tokens.load(Relaxed);
            if !store.is_alone() {
                return Err("two threads hold a mutex".to_owned());
            }
            if there < AHEAD {
                store.tokens.store(there + 1, Relaxed);
                break;
            }
            store.lock.unlock()?;
            crate::nap::let_others_run();
        }
        actor.step();
        let with_mutex = actor.dice.bool();
        let signals = !actor.leaves_out();
        if with_mutex && signals {
            store.condvar.signal(false)?;
        }
        store.lock.unlock()?;
        if !with_mutex && signals {
            store.condvar.signal(false)?;
        }
        actor.count(Count::Wakes, 1);
        actor.dawdle();
    }
    Ok(())
}

/// Cancels takers, and replaces them, until all tokens were given. Then it lets them end by
/// themselves.
fn cancel(
    actor: &mut Actor,
    (context, round): (&'static Context, Round),
    store: &'static Store,
    takers: usize,
    givers_left: &AtomicUsize,
) -> Verdict {
    let start = |number: usize| {
        let seed = round.seed_of("taker", number);
        Bare::start(context, "taker", seed, take, store)
    };
    let mut alive = (0..takers).map(start).collect::<Result<Vec<_>, _>>()?;
    let mut number = takers;
    while givers_left.load(SeqCst) > 0 {
        match actor.dice.u32(0..4) {
            0 => std::thread::sleep(std::time::Duration::from_micros(actor.dice.u64(0..300))),
            _ => std::thread::yield_now(),
        }
        let mut victims = Vec::new();
        for _ in 0..actor.dice.usize(1..=takers.min(3)) {
            victims.push(alive.swap_remove(actor.dice.usize(0..alive.len())));
        }
        victims.iter().try_for_each(Bare::cancel)?;
        for victim in victims {
            if victim.join()? != Ended::Cancelled {
                return Err("a cancelled taker ended by itself".to_owned());
            }
            actor.count(Count::Kills, 1);
            alive.push(start(number)?);
            number += 1;
        }
    }
    store.lock.lock(actor)?;
    store.closed.store(true, Relaxed);
    store.condvar.broadcast(false)?;
    store.lock.unlock()?;
    for taker in alive {
        if taker.join()? != Ended::Itself {
            return Err("a taker ended as cancelled, but was not".to_owned());
        }
    }
    Ok(())
}

pub(crate) fn run(context: &'static Context) -> Verdict {
    let sorts: Vec<_> = Sort::mutexes().filter(|sort| sort.protocol != Protocol::Protect).collect();
    while let Some(round) = context.next_round() {
        let mut dice = round.dice();
        let sort = sorts[dice.usize(0..sorts.len())];
        let condvar = CondvarSort::some(&mut dice);
        // A combination that the drop-in leaves to the C library waits as the C library does.
        let ours = !condvar.shared || !(sort.shared || sort.robust);
        let store: &'static Store = Box::leak(Box::new(Store {
            lock: Mutex::new(context, sort)?,
            condvar: Condvar::new(context, "tokens", condvar)?,
            tokens: AtomicUsize::new(0),
            pair: Pair::default(),
            taken: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
            asynchronously: context.slice.drop_in == Some(DropIn::On) && ours && dice.bool(),
            semaphore: Semaphore::any(context, dice.u32(0..4) == 0),
            taken_from_semaphore: AtomicUsize::new(0),
            context,
        }));
        store.semaphore.make(0)?;
        let takers = (round.threads / 2).max(2);
        let givers = (round.threads / 4).max(1);
        let quota = (TOKENS / givers / takers.isqrt()).max(2);
        let givers_left = AtomicUsize::new(givers);
        let givers_left = &givers_left;
        context.crew(round, |crew| {
            crew.spawn("canceller", 0, move |actor| {
                cancel(actor, (context, round), store, takers, givers_left)
            });
            for index in 0..givers {
                crew.spawn("giver", index, move |actor| {
                    let given = give(actor, store, quota);
                    givers_left.fetch_sub(1, SeqCst);
                    given
                });
            }
            Ok(())
        })?;
        over(store, givers * quota)?;
    }
    Ok(())
}

fn over(store: &Store, given: usize) -> Verdict {
    let (taken, left) = (store.taken.load(Relaxed), store.tokens.load(Relaxed));
    if taken != given || left != 0 {
        return Err(format!("{given} tokens were given, {taken} taken, {left} are left"));
    }
    let value = store.semaphore.value() as usize;
    let taken = store.taken_from_semaphore.load(Relaxed);
    if taken + value != given {
        return Err(format!(
            "a semaphore was posted {given} times, taken {taken} times, and holds {value}"
        ));
    }
    store.condvar.end()?;
    store.lock.renew()
}
