//! Tortured: C++20's wait and notify on atomics of every size and sign, on `bool` and on pointers; neighbours in one
//! line, so that buckets are shared.
//!
//! Checked: a partner that has changed the value is always seen; what a wait returns is not what it waited to leave.

use crate::actor::{Actor, Verdict};
use crate::context::Context;
use crate::count::Count;
use crate::spot::{Spot, Word};
use std::sync::atomic::{
    AtomicBool, AtomicI16, AtomicI64, AtomicPtr, AtomicU8, AtomicU32, AtomicUsize, Ordering::SeqCst,
};
use waitword::{AtomicWait, Scope};

const TURNS: usize = 6_000;

/// Two threads change one atomic in turns; each waits until it is not as the partner must leave it.
#[derive(Default)]
#[repr(C)]
struct Pairs {
    pointer: AtomicPtr<u8>,
    i64: AtomicI64,
    usize: AtomicUsize,
    u32: AtomicU32,
    i16: AtomicI16,
    u8: AtomicU8,
    bool: AtomicBool,
}

const KINDS: usize = 7;

pub(super) fn run(context: &'static Context) -> Verdict {
    let most = context.slice.most_threads() / 2;
    let groups: &'static [Pairs] = Box::leak(
        (0..most.div_ceil(KINDS))
            .map(|_| Pairs::default())
            .collect(),
    );
    // SAFETY: leaked, and each an atomic of this size.
    let name = |name, address: usize, bits| unsafe {
        context.name_word(name, Word::at(address as *mut u8, bits), Scope::Private)
    };
    let spots = |group: &Pairs| -> [Spot; KINDS] {
        [
            name(
                "pointer",
                (&raw const group.pointer).expose_provenance(),
                64,
            ),
            name("i64", (&raw const group.i64).expose_provenance(), 64),
            name("usize", (&raw const group.usize).expose_provenance(), 64),
            name("u32", (&raw const group.u32).expose_provenance(), 32),
            name("i16", (&raw const group.i16).expose_provenance(), 16),
            name("u8", (&raw const group.u8).expose_provenance(), 8),
            name("bool", (&raw const group.bool).expose_provenance(), 8),
        ]
    };
    let named: Vec<_> = groups.iter().map(|group| (group, spots(group))).collect();
    let named = &named;
    while let Some(round) = context.next_round() {
        let pairs = round.threads / 2;
        let turns = (TURNS / pairs).max(2);
        context.crew(round, |crew| {
            for pair in 0..pairs {
                let (group, spots) = &named[pair / KINDS];
                let spot = spots[pair % KINDS];
                for side in [0u8, 1] {
                    crew.spawn("partner", pair * 2 + side as usize, move |actor| {
                        (0..turns).try_for_each(|_| turn(actor, group, spot, pair % KINDS, side))
                    });
                }
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Waits for the own side's value, and leaves the other's.
fn turn(actor: &mut Actor, group: &Pairs, spot: Spot, kind: usize, side: u8) -> Verdict {
    let (mine, other) = (side, 1 - side);
    let pointer = |side: u8| std::ptr::without_provenance_mut(side as usize * 64);
    match kind {
        0 => one(
            actor,
            spot,
            &group.pointer,
            pointer(mine),
            pointer(other),
            |value| {
                group.pointer.store(value, SeqCst);
            },
        ),
        1 => {
            let value = |side| if side == 0 { 0 } else { i64::MIN };
            one(
                actor,
                spot,
                &group.i64,
                value(mine),
                value(other),
                |value| {
                    group.i64.store(value, SeqCst);
                },
            )
        }
        2 => {
            let value = |side| if side == 0 { 0 } else { usize::MAX };
            one(
                actor,
                spot,
                &group.usize,
                value(mine),
                value(other),
                |value| {
                    group.usize.store(value, SeqCst);
                },
            )
        }
        3 => one(
            actor,
            spot,
            &group.u32,
            mine.into(),
            other.into(),
            |value| {
                group.u32.store(value, SeqCst);
            },
        ),
        4 => {
            let value = |side: u8| -i16::from(side);
            one(
                actor,
                spot,
                &group.i16,
                value(mine),
                value(other),
                |value| {
                    group.i16.store(value, SeqCst);
                },
            )
        }
        5 => one(actor, spot, &group.u8, mine, other, |value| {
            group.u8.store(value, SeqCst);
        }),
        _ => one(actor, spot, &group.bool, mine != 0, other != 0, |value| {
            group.bool.store(value, SeqCst);
        }),
    }
}

fn one<A: AtomicWait<Value = T>, T: Copy + PartialEq>(
    actor: &mut Actor,
    spot: Spot,
    atomic: &A,
    mine: T,
    other: T,
    store: impl FnOnce(T),
) -> Verdict {
    let found = if actor.dice.u32(0..8) > 0 {
        Some(actor.wait_at(spot, false, || atomic.wait(other)))
    } else {
        let soon = actor.tiny_deadline();
        let found = actor.wait_at(spot, true, || atomic.wait_until(other, soon));
        actor.count(Count::Timeouts, usize::from(found.is_none()));
        found.or_else(|| Some(actor.wait_at(spot, false, || atomic.wait(other))))
    };
    if found != Some(mine) || actor.miscounts() {
        return Err("a wait has returned the value that it was to leave".to_owned());
    }
    actor.dawdle();
    store(other);
    if !actor.leaves_out() {
        match actor.dice.bool() {
            true => atomic.notify_one(),
            false => atomic.notify_all(),
        }
    }
    actor.count(Count::Woken, 1);
    actor.step();
    Ok(())
}
