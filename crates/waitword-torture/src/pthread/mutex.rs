//! Tortured: mutexes of every type, protocol, robustness and scope, made by attributes, by static initialisers and by C11, and
//! spin locks; with deadlines on both clocks, levels of recursion, one inside another, threads moved from CPU to CPU; now and
//! then all threads are real-time ones, which alone may lock mutexes with a priority ceiling.
//!
//! Checked: never two threads have a lock, every turn is counted once, everybody who waits without a deadline comes to an end, no
//! deadline is early, owners and strangers are told apart, and in the end each mutex can be destroyed.

use super::lock::{Kind, Lock, Made, Protocol, Sort};
use super::real_time;
use super::until::{Until, some_clock};
use crate::actor::{Actor, Verdict};
use crate::context::Context;
use libc::{EBUSY, EDEADLK, EPERM};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

const TURNS: usize = 2_500;
/// How many mutexes there are in a round, at most.
const AT_ONCE: usize = 5;
/// How many threads may be real-time ones: they leave others little of the machine.
const MOST_REAL_TIME: usize = 16;

/// A lock and what it protects.
struct Guarded {
    lock: Lock,
    /// Changed by plain loads and stores, one after the other: two threads in the lock would lose turns, or see the two
    /// differ.
    pair: [AtomicU64; 2],
    /// The turns that were taken, by those who took them.
    turns: AtomicUsize,
}

impl Guarded {
    fn new(context: &Context, sort: Sort) -> Result<Self, String> {
        Ok(Self {
            lock: Lock::new(context, sort)?,
            pair: Default::default(),
            turns: AtomicUsize::new(0),
        })
    }

    /// Takes the lock in one way or another; whether it could be had.
    fn lock(&self, actor: &mut Actor) -> Result<bool, String> {
        match actor.dice.u32(0..10) {
            0 => self.lock.try_lock(),
            1..4 => {
                let clock = some_clock(&mut actor.dice);
                let until = Until::tiny(&mut actor.dice, clock);
                self.lock.lock_until(actor, &until)
            }
            _ => self.lock.lock(actor).map(|()| true),
        }
    }

    fn unlock(&self, actor: &mut Actor) -> Verdict {
        if actor.leaves_out() {
            let spot = self.lock.object.spot;
            actor.wait_at(spot, spot.word.load(), false, || {
                loop {
                    std::thread::park();
                }
            })
        }
        self.lock.unlock()
    }

    /// With the lock held.
    fn change(&self, actor: &mut Actor) -> Verdict {
        let [first, second] = &self.pair;
        let before = first.load(Relaxed);
        first.store(before + 1, Relaxed);
        if self.lock.sort.is_spin() {
            std::hint::spin_loop();
        } else {
            actor.dawdle();
        }
        if second.load(Relaxed) != before {
            return Err(format!("two threads have a {}", self.lock.sort.name()));
        }
        second.store(before + 1, Relaxed);
        let turns = if actor.miscounts() { 2 } else { 1 };
        self.turns.fetch_add(turns, Relaxed);
        actor.step();
        Ok(())
    }

    /// What its owner is told. With the lock held.
    fn ask(&self, actor: &mut Actor) -> Verdict {
        let Sort { kind, made, .. } = self.lock.sort;
        if kind == Kind::Recursive {
            let levels = actor.dice.usize(1..5);
            for level in 0..levels {
                match level % 2 {
                    0 => self.lock.lock(actor)?,
                    _ if self.lock.try_lock()? => {}
                    _ => return Err("an owner could not try a recursive one".to_owned()),
                }
            }
            for _ in 0..levels {
                self.lock.unlock()?;
            }
            self.lock.object.held();
            return Ok(());
        }
        if made == Made::Spin || made == Made::C11 {
            return match self.lock.try_lock()? {
                true => Err(format!("a held {} was free", self.lock.sort.name())),
                false => Ok(()),
            };
        }
        let mutex = self.lock.mutex();
        // SAFETY: a mutex.
        let tried = unsafe { libc::pthread_mutex_trylock(mutex) };
        // Both are right for one that checks for errors; glibc chooses by protocol and robustness.
        if kind != Kind::ErrorChecking || tried != EDEADLK {
            self.answers("its owner", "try", tried, EBUSY)?;
        }
        // SAFETY: a mutex; whoever checks for errors answers at once.
        unsafe {
            if kind == Kind::ErrorChecking {
                self.answers(
                    "its owner",
                    "lock",
                    libc::pthread_mutex_lock(mutex),
                    EDEADLK,
                )?;
            }
            if !self.lock.sort.robust {
                let answer = libc::pthread_mutex_destroy(mutex);
                self.answers("its owner", "destroy", answer, EBUSY)?;
            }
        }
        Ok(())
    }

    /// By one who does not hold it.
    fn ask_as_stranger(&self) -> Verdict {
        match self.lock.sort.made {
            Made::ByInit | Made::Static if self.lock.sort.knows_strangers() => {
                self.answers("a stranger", "unlock", self.lock.unlock_now(), EPERM)
            }
            _ => Ok(()),
        }
    }

    fn answers(&self, whom: &str, what: &str, answer: i32, expected: i32) -> Verdict {
        if answer == expected {
            return Ok(());
        }
        let name = self.lock.sort.name();
        Err(format!(
            "{name} answers {whom}, asked to {what}: {answer}, not {expected}"
        ))
    }

    fn turn(&self, actor: &mut Actor, inside: Option<&Self>) -> Verdict {
        if !self.lock(actor)? {
            return Ok(());
        }
        self.change(actor)?;
        if actor.dice.u32(0..16) == 0 {
            self.ask(actor)?;
        }
        if let Some(inside) = inside {
            inside.turn(actor, None)?;
        }
        self.unlock(actor)?;
        if actor.dice.u32(0..16) == 0 {
            self.ask_as_stranger()?;
        }
        Ok(())
    }

    /// When all are gone.
    fn over(&self) -> Verdict {
        let turns = self.turns.swap(0, Relaxed) as u64;
        let counted = self.pair.each_ref().map(|half| half.swap(0, Relaxed));
        if counted != [turns; 2] {
            return Err(format!(
                "{}: {turns} turns were taken, and counted: {counted:?}",
                self.lock.sort.name()
            ));
        }
        self.lock.renew()
    }
}

pub(super) fn run(context: &'static Context) -> Verdict {
    let all = Sort::all()
        .map(|sort| Guarded::new(context, sort))
        .collect::<Result<Vec<_>, _>>()?;
    let real_time_allowed = real_time::is_allowed();
    while let Some(round) = context.next_round() {
        let mut dice = round.dice();
        let real_time = dice.u32(0..8) == 0 && real_time_allowed;
        // Real-time threads that spin for one that has lost its CPU do so for their whole slice.
        let fits = |sort: Sort| match real_time {
            true => !sort.is_spin(),
            false => sort.protocol != Protocol::Protect,
        };
        // In the order in which they are taken one inside the other.
        let mut chosen: Vec<&Guarded> = all.iter().filter(|one| fits(one.lock.sort)).collect();
        dice.shuffle(&mut chosen);
        chosen.truncate(dice.usize(1..=AT_ONCE));
        // Whoever holds a spin lock must not wait for another.
        chosen.sort_by_key(|one| one.lock.sort.is_spin());
        let chosen = &chosen;
        let threads = match real_time {
            true => round.threads.min(MOST_REAL_TIME),
            false => round.threads,
        };
        let quota = (TURNS / threads).max(2);
        context.crew(round, |crew| {
            for index in 0..threads {
                crew.spawn("worker", index, move |actor| {
                    if real_time {
                        real_time::become_one()?;
                    }
                    for _ in 0..quota {
                        let outer = actor.dice.usize(0..chosen.len());
                        let inner = actor.dice.usize(0..chosen.len() * 4);
                        let inside = (inner > outer).then(|| chosen.get(inner)).flatten();
                        let inside = inside.filter(|_| !chosen[outer].lock.sort.is_spin());
                        chosen[outer].turn(actor, inside.copied())?;
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
