//! Tortured: `pthread_once` and `call_once`. Many threads come at once. Routines take their time,
//! call other once-routines, are left by unwinding (as by a C++ exception), or end their thread.
//!
//! Checked: each routine completes exactly once, and no caller returns before it has.

use super::abi::{self, Routine};
use super::bare::Bare;
use super::object::Object;
use crate::actor::{Actor, Verdict};
use crate::context::Context;
use libc::pthread_once_t;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

const CONTROLS: usize = 64;
const CALLS: usize = 6_000;

/// A routine to be called once.
struct Item {
    control: Object,
    by_c11: bool,
    started: AtomicUsize,
    /// Written plainly at the end of the routine, and read plainly by all threads that return.
    done: AtomicUsize,
    next: Cell<Option<&'static Item>>,
}

// SAFETY: `next` is written before there are threads.
unsafe impl Sync for Item {}

thread_local! {
    /// For routines, which have no arguments.
    static ITEM: Cell<Option<&'static Item>> = const { Cell::new(None) };
    static FATE: Cell<Fate> = const { Cell::new(Fate::Returns) };
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Returns,
    Unwinds,
    EndsThread,
    CallsAnother,
}

unsafe extern "C-unwind" fn routine() {
    let (Some(item), fate) = (ITEM.get(), FATE.get()) else {
        return;
    };
    item.started.fetch_add(1, Relaxed);
    std::thread::yield_now();
    match fate {
        Fate::Unwinds => resume_unwind(Box::new(())),
        // SAFETY: no frame on the way has anything to drop, except that of the once-call itself,
        // which is what is tested.
        Fate::EndsThread => unsafe { libc::pthread_exit(std::ptr::null_mut()) },
        Fate::CallsAnother => {
            if let Some(next) = item.next.get() {
                FATE.set(Fate::Returns);
                next.call();
            }
        }
        Fate::Returns => {}
    }
    item.done.store(item.done.load(Relaxed) + 1, Relaxed);
}

impl Item {
    fn call(&'static self) {
        let outer = ITEM.replace(Some(self));
        let control = self.control.at::<pthread_once_t>();
        // SAFETY: a control that was zeroed, and the routine.
        unsafe {
            match self.by_c11 {
                true => abi::call_once(control, routine as Routine),
                false => {
                    abi::pthread_once(control, routine as Routine);
                }
            }
        }
        ITEM.set(outer);
    }

    /// Calls it until the routine has completed.
    fn settle(&'static self, actor: &mut Actor) -> Verdict {
        let mut ended = false;
        while !ended {
            FATE.set(match actor.dice.u32(0..8) {
                0 | 1 => Fate::Unwinds,
                2 => Fate::CallsAnother,
                _ => Fate::Returns,
            });
            ended = self.control.wait(actor, false, || {
                catch_unwind(AssertUnwindSafe(|| self.call())).is_ok()
            });
        }
        actor.step();
        match self.done.load(Relaxed) {
            1 => Ok(()),
            times => Err(format!("a caller returned, and it was done {times} times")),
        }
    }
}

/// Calls it; if the routine runs in this thread, the thread ends in it.
fn visit(_actor: &mut Actor, item: &'static Item) -> Verdict {
    FATE.set(Fate::EndsThread);
    item.call();
    Ok(())
}

pub(super) fn run(context: &'static Context) -> Verdict {
    let items: Vec<Item> = (0..CONTROLS)
        .map(|index| Item {
            control: Object::new(context, &format!("once {index}"), false),
            by_c11: index % 4 == 3,
            started: AtomicUsize::new(0),
            done: AtomicUsize::new(0),
            next: Cell::new(None),
        })
        .collect();
    let items: &'static [Item] = items.leak();
    for pair in items.windows(2) {
        // Forwards only, so that no routine waits for itself.
        pair[0].next.set(Some(&pair[1]));
    }
    while let Some(round) = context.next_round() {
        for item in items {
            item.control.fill(0);
            item.started.store(0, Relaxed);
            item.done.store(0, Relaxed);
        }
        let quota = (CALLS / round.threads).clamp(4, CONTROLS);
        context.crew(round, |crew| {
            for index in 0..round.threads {
                crew.spawn("caller", index, move |actor| {
                    for item in &items[..quota] {
                        if actor.dice.u32(0..32) == 0 {
                            let seed = actor.dice.u64(..);
                            Bare::start(context, "visitor", seed, visit, item)?.join()?;
                        }
                        item.settle(actor)?;
                    }
                    Ok(())
                });
            }
            Ok(())
        })?;
        for item in &items[..quota] {
            let done = item.done.load(Relaxed);
            if done != 1 {
                return Err(format!("it was done {done} times"));
            }
        }
    }
    Ok(())
}
