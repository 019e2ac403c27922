//! Tortured: mutexes of every type, protocol, robustness and scope, made with attributes, with
//! static initialisers and by C11, and spin locks. They are used with deadlines on both clocks,
//! recursively, nested, and by threads that are moved from CPU to CPU. Now and then all threads are
//! real-time ones, because only those may lock mutexes with a priority ceiling.
//!
//! Checked: no two threads ever hold a lock, every turn is counted once, every thread that waits
//! without a deadline ends, no deadline is early, owners and non-owners get the right errors, and
//! each mutex can be destroyed at the end.

use super::lock::{Kind, Lock, Made, Protocol, Sort};
use super::real_time;
use super::until::{Until, some_clock};
use crate::actor::{Actor, Verdict};
use crate::context::Context;
use crate::parts::books::Books;
use crate::parts::turns::{self, Locked, Turns};
use libc::{EBUSY, EDEADLK, EPERM};

const TURNS: usize = 2_500;
/// How many mutexes there are in a round, at most.
const AT_ONCE: usize = 5;
/// How many threads may be real-time ones. They leave little CPU time to other programs.
const MOST_REAL_TIME: usize = 16;

/// A lock and what it protects.
struct Guarded {
    lock: Lock,
    books: Books,
}

impl Locked for Guarded {
    type Held = ();

    fn name(&self) -> String {
        self.lock.sort.name()
    }

    fn books(&self) -> &Books {
        &self.books
    }

    fn take(&self, actor: &mut Actor, _readers: u32) -> Result<Option<()>, String> {
        let taken = match actor.dice.u32(0..10) {
            0 => self.lock.try_lock()?,
            1..4 => {
                let clock = some_clock(&mut actor.dice);
                let until = Until::tiny(&mut actor.dice, clock);
                self.lock.lock_until(actor, &until)?
            }
            _ => {
                self.lock.lock(actor)?;
                true
            }
        };
        Ok(taken.then_some(()))
    }

    fn stay(&self, actor: &mut Actor, (): ()) -> Verdict {
        match self.lock.sort.is_spin() {
            true => self.books.change_while(actor, |_| std::hint::spin_loop()),
            false => self.books.change(actor),
        }
    }

    fn go_on(&self, actor: &mut Actor, (): ()) -> Verdict {
        match actor.dice.u32(0..16) {
            0 => self.ask(actor),
            _ => Ok(()),
        }
    }

    fn may_hold_another(&self) -> bool {
        !self.lock.sort.is_spin()
    }

    fn give_back(&self, actor: &mut Actor, (): ()) -> Verdict {
        if actor.leaves_out() {
            actor.keeps(self.lock.object.spot);
        }
        self.lock.unlock()
    }

    fn ask_as_stranger(&self) -> Verdict {
        match self.lock.sort.made {
            Made::ByInit | Made::Static if self.lock.sort.knows_strangers() => {
                self.answers("a stranger", "unlock", self.lock.unlock_now(), EPERM)
            }
            _ => Ok(()),
        }
    }

    fn renew(&self) -> Verdict {
        self.lock.renew()
    }
}

impl Guarded {
    /// Checks the answers that its owner gets. With the lock held.
    fn ask(&self, actor: &mut Actor) -> Verdict {
        let Sort { kind, made, .. } = self.lock.sort;
        if kind == Kind::Recursive {
            let levels = actor.dice.usize(1..5);
            for level in 0..levels {
                match level % 2 {
                    0 => self.lock.lock(actor)?,
                    _ if self.lock.try_lock()? => {}
                    _ => return Err("an owner could not try-lock a recursive one".to_owned()),
                }
            }
            for _ in 0..levels {
                self.lock.unlock()?;
            }
            return Ok(());
        }
        if made == Made::Spin || made == Made::C11 {
            return match self.lock.try_lock()? {
                true => Err("it was free though it was held".to_owned()),
                false => Ok(()),
            };
        }
        let mutex = self.lock.mutex();
        // SAFETY: a mutex.
        let tried = unsafe { libc::pthread_mutex_trylock(mutex) };
        // Both answers are right for an error-checking mutex; glibc chooses by protocol and
        // robustness.
        if kind != Kind::ErrorChecking || tried != EDEADLK {
            self.answers("its owner", "try", tried, EBUSY)?;
        }
        // SAFETY: a mutex; an error-checking one answers at once.
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

    fn answers(&self, whom: &str, what: &str, answer: i32, expected: i32) -> Verdict {
        if answer == expected {
            return Ok(());
        }
        Err(format!(
            "it answers {whom} that asks to {what}: {answer}, not {expected}"
        ))
    }
}

pub(super) fn run(context: &'static Context) -> Verdict {
    let all = Sort::all()
        .map(|sort| {
            Ok(Guarded {
                lock: Lock::new(context, sort)?,
                books: Books::default(),
            })
        })
        .collect::<Result<Vec<_>, String>>()?;
    let real_time_allowed = real_time::is_allowed();
    while let Some(round) = context.next_round() {
        let mut dice = round.dice();
        let real_time = dice.u32(0..8) == 0 && real_time_allowed;
        // A real-time thread that spins for a holder that has lost its CPU does so for its whole
        // time slice.
        let fits = |sort: Sort| match real_time {
            true => !sort.is_spin(),
            false => sort.protocol != Protocol::Protect,
        };
        let fitting = all.iter().filter(|one| fits(one.lock.sort));
        let mut chosen = turns::some(&mut dice, fitting, AT_ONCE);
        // A thread that holds a spin lock must not wait for another lock.
        chosen.sort_by_key(|one| one.lock.sort.is_spin());
        let threads = match real_time {
            true => round.threads.min(MOST_REAL_TIME),
            false => round.threads,
        };
        let become_one = |_: &mut Actor, number| match real_time && number == 0 {
            true => real_time::become_one(),
            false => Ok(()),
        };
        turns::round(
            context,
            round,
            Turns::of(threads, TURNS),
            &chosen,
            &become_one,
        )?;
    }
    Ok(())
}
