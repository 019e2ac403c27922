//! Tortured: the raw futex interface of the library: each operation of futex(2) and futex2, on
//! private and on shared words. On shared words the kernel's own calls are mixed in, because there
//! both use one queue. With the drop-in, all calls are made through the C library's `syscall`,
//! which is then the drop-in's.
//!
//! Checked: a baton comes round in each ring, which a single lost wake-up would stop; errors are
//! those of futex(2).

use crate::actor::{Actor, Verdict};
use crate::context::Context;
use crate::count::Count;
use crate::parts::ring::{self, MEMBERS};
use crate::spot::Spot;
use std::ptr::{null, null_mut};
use waitword::raw::{self, Errno, PRIVATE, SIZE_U32, Timespec, Waitv};
use waitword::{Scope, probe};

const PASSES: usize = 8_000;
/// Calls of Linux 6.7 that the crate `libc` does not know. Their numbers are the same on every
/// architecture.
const FUTEX2_WAKE: libc::c_long = 454;
const FUTEX2_WAIT: libc::c_long = 455;
const FUTEX2_REQUEUE: libc::c_long = 456;
const ALL: u32 = i32::MAX as u32;
/// "Add 0 to the second word; wake there too if it was less than 0."
const NEVER: u32 = (libc::FUTEX_OP_ADD as u32) << 28 | (libc::FUTEX_OP_CMP_LT as u32) << 24;

pub(crate) fn run(context: &'static Context) -> Verdict {
    let most = context.slice.most_threads();
    // Rings are alternately private and shared. Each scope has a word to which waiters are moved.
    let scope = |ring: usize| [Scope::Private, Scope::Shared][ring % 2];
    let name = |name, scope| Named { spot: context.name_word(name, Context::new_word(32), scope) };
    let words: Vec<_> = (0..most).map(|index| name("ring word", scope(index / MEMBERS))).collect();
    let detours = [0, 1].map(|ring| name("detour", scope(ring)));
    while let Some(round) = context.next_round() {
        let laps = (PASSES / round.threads).max(2);
        context.crew(round, |crew| {
            let members = round.threads / MEMBERS * MEMBERS;
            let catch =
                move |actor: &mut Actor, ring, own: Named| own.catch(actor, detours[ring % 2]);
            let pass =
                move |actor: &mut Actor, ring, next: Named| next.pass(actor, detours[ring % 2]);
            ring::hire(crew, &words[..members], laps, catch, pass);
            Ok(())
        })?;
    }
    Ok(())
}

/// A word in the form that the calls take.
#[derive(Clone, Copy)]
struct Named {
    spot: Spot,
}

impl Named {
    fn address(self) -> *mut u32 {
        std::ptr::with_exposed_provenance_mut(self.spot.word.address())
    }

    fn is_private(self) -> bool {
        self.spot.scope == Scope::Private
    }

    /// futex(2): the library's; for a shared word, now and then the kernel's own.
    fn futex(
        self,
        actor: &mut Actor,
        op: i32,
        val: u32,
        fourth: usize,
        second: *mut u32,
        val3: u32,
    ) -> Result<usize, Errno> {
        let first = self.address();
        let (flag, by_call) = match self.is_private() {
            true => (libc::FUTEX_PRIVATE_FLAG, actor.calls()),
            false => (0, actor.calls() || actor.dice.bool()),
        };
        let op = op | flag;
        // SAFETY: words that are never freed, and a whole time where there is one.
        unsafe {
            match by_call {
                true => {
                    answered(libc::syscall(libc::SYS_futex, first, op, val, fourth, second, val3))
                }
                false => raw::futex(first, op, val, fourth, second, val3),
            }
        }
    }

    fn flags(self) -> u32 {
        SIZE_U32 | if self.is_private() { PRIVATE } else { 0 }
    }

    fn expecting(self, value: u64) -> Waitv {
        Waitv {
            val: value,
            uaddr: self.address().expose_provenance() as u64,
            flags: self.flags(),
            reserved: 0,
        }
    }

    /// Waits for the baton. Hardly ever with a deadline, which would hide a lost wake-up.
    fn catch(self, actor: &mut Actor, detour: Self) -> Verdict {
        while !self.spot.word.replace(1, 0) {
            actor.is_at(self.spot, false);
            let ended = self.wait(actor, detour);
            actor.is_elsewhere();
            actor.count(Count::Waits, 1);
            match ended {
                Ok(_) => actor.count(Count::Woken, 1),
                Err(Errno::TIMEDOUT) => actor.count(Count::Timeouts, 1),
                Err(Errno::AGAIN) => {}
                Err(error) => return Err(format!("a wait failed: {error:?}")),
            }
        }
        actor.step();
        Ok(())
    }

    /// Waits while the word holds 0, by one of the available calls.
    fn wait(self, actor: &mut Actor, detour: Self) -> Result<usize, Errno> {
        match self.wait_by_some_call(actor, detour) {
            Err(Errno::NOSYS) if !has_futex2() => {
                self.futex(actor, libc::FUTEX_WAIT, 0, 0, null_mut(), 0)
            }
            ended => ended,
        }
    }

    fn wait_by_some_call(self, actor: &mut Actor, detour: Self) -> Result<usize, Errno> {
        let soon = Timespec { tv_sec: 0, tv_nsec: 1 << actor.dice.u32(0..20) };
        let relative = (&raw const soon).expose_provenance();
        match actor.dice.u32(0..32) {
            0 => self.futex(actor, libc::FUTEX_WAIT, 0, relative, null_mut(), 0),
            // An absolute time, long past.
            1 => self.futex(actor, libc::FUTEX_WAIT_BITSET, 0, relative, null_mut(), 1),
            2..12 => self.futex(actor, libc::FUTEX_WAIT, 0, 0, null_mut(), 0),
            12..20 => {
                let mask = actor.dice.u32(..) | 1;
                self.futex(actor, libc::FUTEX_WAIT_BITSET, 0, 0, null_mut(), mask)
            }
            20..26 => {
                let word = self.address().cast();
                let clock = libc::CLOCK_MONOTONIC;
                let (mask, flags, never) = (u64::from(ALL), self.flags(), null::<Timespec>());
                // SAFETY: a word that is never freed, and no time.
                unsafe {
                    match actor.calls() {
                        true => answered(libc::syscall(
                            FUTEX2_WAIT,
                            word,
                            0_u64,
                            mask,
                            flags,
                            never,
                            clock,
                        )),
                        false => raw::futex_wait(word, 0, mask, flags, never, clock),
                    }
                }
            }
            _ => {
                // No thread changes the detour's word.
                let words = [detour.expecting(0), self.expecting(0)];
                let (words, never) = (words.as_ptr(), null::<Timespec>());
                let clock = libc::CLOCK_MONOTONIC;
                // SAFETY: as above.
                unsafe {
                    match actor.calls() {
                        true => answered(libc::syscall(
                            libc::SYS_futex_waitv,
                            words,
                            2_u32,
                            0_u32,
                            never,
                            clock,
                        )),
                        false => raw::futex_waitv(words, 2, 0, never, clock),
                    }
                }
            }
        }
    }

    /// Puts the baton down, and wakes the thread that waits for it, by one of the calls.
    fn pass(self, actor: &mut Actor, detour: Self) -> Verdict {
        actor.dawdle();
        self.spot.word.store(1);
        if actor.leaves_out() {
            return Ok(());
        }
        let woken = match self.wake(actor, detour) {
            // A compare-and-requeue found the baton already taken, by a thread that did not wait.
            Err(Errno::AGAIN) if self.spot.word.load() == 0 => Ok(0),
            woken => woken,
        };
        let woken = woken.map_err(|error| format!("a wake failed: {error:?}"))?;
        actor.count(Count::Wakes, woken);
        Ok(())
    }

    fn wake(self, actor: &mut Actor, detour: Self) -> Result<usize, Errno> {
        match self.wake_by_some_call(actor, detour) {
            Err(Errno::NOSYS) if !has_futex2() => {
                self.futex(actor, libc::FUTEX_WAKE, 1, 0, null_mut(), 0)
            }
            woken => woken,
        }
    }

    fn wake_by_some_call(self, actor: &mut Actor, detour: Self) -> Result<usize, Errno> {
        let (there, all) = (detour.address(), ALL as usize);
        match actor.dice.u32(0..8) {
            0 => self.futex(actor, libc::FUTEX_WAKE, 1, 0, null_mut(), 0),
            1 => self.futex(actor, libc::FUTEX_WAKE_BITSET, 1, 0, null_mut(), u32::MAX),
            2 => self.futex(actor, libc::FUTEX_WAKE_OP, 1, 1, there, NEVER),
            3 => {
                let (word, mask, flags) = (self.address().cast(), u64::from(ALL), self.flags());
                // SAFETY: a word that is never freed.
                unsafe {
                    match actor.calls() {
                        true => answered(libc::syscall(FUTEX2_WAKE, word, mask, 1_i32, flags)),
                        false => raw::futex_wake(word, mask, 1, flags),
                    }
                }
            }
            4 => {
                self.futex(actor, libc::FUTEX_REQUEUE, 0, all, there, 0)?;
                detour.futex(actor, libc::FUTEX_WAKE, ALL, 0, null_mut(), 0)
            }
            5 => {
                self.futex(actor, libc::FUTEX_CMP_REQUEUE, 0, all, there, 1)?;
                detour.futex(actor, libc::FUTEX_WAKE, ALL, 0, null_mut(), 0)
            }
            6 => {
                let words = [self.expecting(1), detour.expecting(0)];
                let words = words.as_ptr();
                // SAFETY: words that are never freed.
                unsafe {
                    match actor.calls() {
                        true => {
                            answered(libc::syscall(FUTEX2_REQUEUE, words, 0_u32, 0_i32, i32::MAX))
                        }
                        false => raw::futex_requeue(words, 0, 0, i32::MAX),
                    }
                }?;
                detour.futex(actor, libc::FUTEX_WAKE, ALL, 0, null_mut(), 0)
            }
            _ => self.futex(actor, libc::FUTEX_WAKE, ALL, 0, null_mut(), 0),
        }
    }
}

/// Whether this kernel has all of futex2. Without the library, and for shared words in any case,
/// only the kernel provides it.
fn has_futex2() -> bool {
    probe::futex2_wait_call().is_there()
}

/// The result of the C library's `syscall`.
fn answered(answer: libc::c_long) -> Result<usize, Errno> {
    match answer {
        // SAFETY: the calling thread's own.
        -1 => Err(Errno::from_raw_os_error(unsafe { *libc::__errno_location() })),
        answer => Ok(answer as usize),
    }
}
