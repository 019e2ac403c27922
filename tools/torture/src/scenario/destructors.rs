//! Tortured: thousands of threads that come and go, joined and detached. Destructors of their
//! thread-local storage lock, wait and signal as they end, while other threads allocate with locks
//! held, and load and unload libraries.
//!
//! Checked: each destructor has done its part once, every token arrives, no two threads ever hold
//! the mutex, and all threads end.

use crate::actor::{Actor, Verdict};
use crate::context::Context;
use crate::count::Count;
use crate::objects::pthread::bare::create;
use crate::objects::pthread::condvar::{Condvar, CondvarSort};
use crate::objects::pthread::mutex::Mutex;
use crate::objects::pthread::object::zero;
use crate::objects::pthread::sort::{Kind, Made, Protocol, Sort};
use crate::parts::books::Pair;
use libc::c_void;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

const VISITS: usize = 600;
/// Small libraries that are part of every glibc, and that this program does not use otherwise.
const LIBRARIES: [&std::ffi::CStr; 4] =
    [c"libutil.so.1", c"libanl.so.1", c"libBrokenLocale.so.1", c"libresolv.so.2"];
/// How often a destructor asks to be called again. The C library grants three more calls.
const PASSES: usize = 3;

/// What all threads share.
struct Common {
    lock: Mutex,
    condvar: Condvar,
    pair: Pair,
    /// Threads that were started, threads that have left, and the passes of their destructors.
    started: AtomicUsize,
    gone: AtomicUsize,
    passes: AtomicUsize,
    key: libc::pthread_key_t,
    context: &'static Context,
}

/// What a thread leaves to its destructor.
struct ThreadData {
    common: &'static Common,
    passes_left: usize,
    miscounts: bool,
}

impl Common {
    fn turn(&self, actor: &Actor) -> Verdict {
        self.lock.lock(actor)?;
        let sound = self.change();
        self.lock.unlock()?;
        sound
    }

    /// With the mutex held.
    fn change(&self) -> Verdict {
        // The allocator has locks of its own.
        let size = 1 << (self.pair.halves()[0] % 14);
        let alone = (self.pair).change(|| drop(std::hint::black_box(vec![0_u64; size])));
        match alone {
            true => Ok(()),
            false => Err("two threads hold a mutex".to_owned()),
        }
    }
}

/// The destructor of a thread's data.
unsafe extern "C" fn leave(data: *mut c_void) {
    // SAFETY: boxed for the thread that ends.
    let mut data = unsafe { Box::from_raw(data.cast::<ThreadData>()) };
    let common = data.common;
    let actor = Actor::new(common.context, "destructor", 0);
    let mut done = common.turn(&actor);
    common.passes.fetch_add(1, SeqCst);
    if data.passes_left > 0 {
        data.passes_left -= 1;
        // SAFETY: a key of ours; the data becomes its value again.
        unsafe { libc::pthread_setspecific(common.key, Box::into_raw(data).cast()) };
    } else {
        actor.step();
        done = done.and_then(|()| {
            common.lock.lock(&actor)?;
            common.gone.fetch_add(if data.miscounts { 2 } else { 1 }, SeqCst);
            common.condvar.broadcast(false)?;
            common.lock.unlock()
        });
    }
    if let Err(complaint) = done {
        common.context.complain(&complaint);
    }
}

/// A visitor takes a turn, and leaves something for its destructor to do.
unsafe extern "C-unwind" fn visit(data: *mut c_void) -> *mut c_void {
    // SAFETY: boxed for this thread, which passes it on to its destructor.
    let common = unsafe { (*data.cast::<ThreadData>()).common };
    // SAFETY: a key of ours.
    unsafe { libc::pthread_setspecific(common.key, data) };
    let actor = Actor::new(common.context, "visitor", 0);
    if let Err(complaint) = common.turn(&actor) {
        common.context.complain(&complaint);
    }
    std::ptr::null_mut()
}

fn start_visitor(actor: &mut Actor, common: &'static Common) -> Verdict {
    let data = Box::into_raw(Box::new(ThreadData {
        common,
        passes_left: actor.dice.usize(0..=PASSES),
        miscounts: actor.miscounts(),
    }));
    // SAFETY: the thread has not been started.
    let passes = unsafe { (*data).passes_left } + 1;
    let detached = actor.dice.bool();
    // SAFETY: the data is the thread's, which is joined once if it is not detached.
    let thread = unsafe { create(detached, visit, data.cast()) }?;
    common.started.fetch_add(1, SeqCst);
    // Destructors add their passes one by one, so that the sum is 0 at the end.
    common.passes.fetch_sub(passes, SeqCst);
    actor.count(Count::Threads, 1);
    if !detached {
        // SAFETY: as above.
        zero("pthread_join", unsafe { libc::pthread_join(thread, std::ptr::null_mut()) })?;
    }
    actor.step();
    Ok(())
}

/// Loads a library and unloads it again.
fn load(actor: &mut Actor) -> Verdict {
    let name = LIBRARIES[actor.dice.usize(0..LIBRARIES.len())];
    // SAFETY: a NUL-terminated name; libraries that do nothing when they are loaded.
    unsafe {
        let library = libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL);
        if !library.is_null() {
            libc::dlsym(library, c"no_such_name".as_ptr());
            libc::dlclose(library);
        }
    }
    Ok(())
}

pub(crate) fn run(context: &'static Context) -> Verdict {
    let mut key = 0;
    // SAFETY: room for the key.
    zero("pthread_key_create", unsafe { libc::pthread_key_create(&raw mut key, Some(leave)) })?;
    let mut all: Vec<&'static Common> = Vec::new();
    let sorts = Sort::mutexes().filter(|sort| {
        sort.kind != Kind::Recursive && sort.made != Made::C11 && sort.protocol != Protocol::Protect
    });
    for sort in sorts.step_by(3) {
        all.push(Box::leak(Box::new(Common {
            lock: Mutex::new(context, sort)?,
            condvar: Condvar::new(context, "a thread has left", CondvarSort::PLAIN)?,
            pair: Pair::default(),
            started: AtomicUsize::new(0),
            gone: AtomicUsize::new(0),
            passes: AtomicUsize::new(0),
            key,
            context,
        })));
    }
    while let Some(round) = context.next_round() {
        let mut dice = round.dice();
        let common = all[dice.usize(0..all.len())];
        common.started.store(0, SeqCst);
        common.gone.store(0, SeqCst);
        common.passes.store(0, SeqCst);
        let quota = (VISITS / round.threads).max(2);
        context.crew(round, |crew| {
            for index in 0..round.threads {
                crew.spawn("host", index, move |actor| {
                    for _ in 0..quota {
                        match actor.dice.u32(0..8) {
                            0 => load(actor)?,
                            1..4 => common.turn(actor)?,
                            _ => {}
                        }
                        start_visitor(actor, common)?;
                    }
                    Ok(())
                });
            }
            crew.spawn("host of the last", 0, move |actor| {
                let visitors = quota * round.threads;
                common.lock.lock(actor)?;
                while common.gone.load(SeqCst) < visitors {
                    common.condvar.wait(actor, &common.lock, false)?;
                }
                common.lock.unlock()
            });
            Ok(())
        })?;
        let counts =
            [&common.started, &common.gone, &common.passes].map(|count| count.load(SeqCst));
        if counts[0] != counts[1] || counts[2] != 0 {
            return Err(format!(
                "{} threads were started, {} destructors ended, sum of missing passes: {}",
                counts[0], counts[1], counts[2] as isize
            ));
        }
    }
    Ok(())
}
