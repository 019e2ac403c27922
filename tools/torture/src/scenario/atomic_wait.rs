//! Tortured: C++20's wait and notify on atomics of every size and sign, on `bool` and on pointers.
//! They are neighbours in one cache line, so that they share buckets.
//!
//! Checked: a waiter always notices that its partner has changed the value; a wait never returns
//! the value that it was to wait out.

use crate::actor::{Actor, Verdict};
use crate::context::Context;
use crate::count::Count;
use crate::spot::{Spot, Word};
use std::ptr::without_provenance_mut as place;
use std::sync::atomic::{
    AtomicBool, AtomicI16, AtomicI64, AtomicPtr, AtomicU8, AtomicU32, AtomicUsize, Ordering::SeqCst,
};
use waitword::{AtomicWait, Scope};

const TURNS: usize = 6_000;

/// One atomic of each kind.
#[derive(Default)]
#[repr(C)]
struct Group {
    pointer: AtomicPtr<u8>,
    i64: AtomicI64,
    usize: AtomicUsize,
    u32: AtomicU32,
    i16: AtomicI16,
    u8: AtomicU8,
    bool: AtomicBool,
}

impl Group {
    fn pairs(&'static self, context: &Context) -> [Box<dyn Turn>; 7] {
        [
            Pair::new(context, &self.pointer, |side| place(side * 64)),
            Pair::new(context, &self.i64, |side| [0, i64::MIN][side]),
            Pair::new(context, &self.usize, |side| [0, usize::MAX][side]),
            Pair::new(context, &self.u32, |side| side as u32),
            Pair::new(context, &self.i16, |side| -(side as i16)),
            Pair::new(context, &self.u8, |side| side as u8),
            Pair::new(context, &self.bool, |side| side == 1),
        ]
    }
}

/// An atomic that can be changed.
trait Change: AtomicWait<Value: PartialEq> + Sync {
    fn change(&self, value: Self::Value);
}

macro_rules! can_be_changed {
    ($($atomic:ty),*) => {
        $(impl Change for $atomic {
            fn change(&self, value: Self::Value) {
                self.store(value, SeqCst);
            }
        })*
    };
}

can_be_changed!(AtomicPtr<u8>, AtomicI64, AtomicUsize, AtomicU32, AtomicI16, AtomicU8, AtomicBool);

/// An atomic that two threads change alternately. Each waits until it no longer holds what that
/// thread stored.
struct Pair<A: Change + 'static> {
    atomic: &'static A,
    spot: Spot,
    /// The value that each side waits for, and that the other side stores.
    value: fn(usize) -> A::Value,
}

impl<A: Change> Pair<A> {
    #[allow(clippy::new_ret_no_self)]
    fn new(context: &Context, atomic: &'static A, value: fn(usize) -> A::Value) -> Box<dyn Turn> {
        let address = std::ptr::from_ref(atomic).cast_mut().cast();
        // SAFETY: never freed, and an atomic of this size.
        let word = unsafe { Word::at(address, 8 * size_of::<A>() as u32) };
        let spot = context.name_word(std::any::type_name::<A>(), word, Scope::Private);
        Box::new(Self { atomic, spot, value })
    }
}

/// A pair with any kind of atomic.
trait Turn: Sync {
    /// Waits for this side's value, and stores the other side's.
    fn turn(&self, actor: &mut Actor, side: usize) -> Verdict;
}

impl<A: Change> Turn for Pair<A> {
    fn turn(&self, actor: &mut Actor, side: usize) -> Verdict {
        let (atomic, spot) = (self.atomic, self.spot);
        let (mine, other) = ((self.value)(side), (self.value)(1 - side));
        let mut found = None;
        if actor.dice.u32(0..8) == 0 {
            let soon = actor.tiny_deadline();
            found = actor.wait_at(spot, true, || atomic.wait_until(other, soon));
            actor.count(Count::Timeouts, usize::from(found.is_none()));
        }
        let found = found.unwrap_or_else(|| actor.wait_at(spot, false, || atomic.wait(other)));
        if found != mine || actor.miscounts() {
            return Err("a wait returned the value that it was to wait out".to_owned());
        }
        actor.dawdle();
        atomic.change(other);
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
}

pub(crate) fn run(context: &'static Context) -> Verdict {
    let most = context.slice.most_threads() / 2;
    let mut all = Vec::new();
    while all.len() < most {
        let group: &'static Group = Box::leak(Box::default());
        all.extend(group.pairs(context));
    }
    let all = &all;
    while let Some(round) = context.next_round() {
        let pairs = round.threads / 2;
        let turns = (TURNS / pairs).max(2);
        context.crew(round, |crew| {
            for (number, pair) in all[..pairs].iter().enumerate() {
                for side in [0, 1] {
                    crew.spawn("partner", number * 2 + side, move |actor| {
                        (0..turns).try_for_each(|_| pair.turn(actor, side))
                    });
                }
            }
            Ok(())
        })?;
    }
    Ok(())
}
