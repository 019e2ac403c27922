//! Tortured: thousands of threads that come and go, joined and detached. Destructors of their
//! thread-local storage lock, wait and signal as they end, while other threads allocate with locks
//! held, and load and unload libraries.
//!
//! Checked: each destructor has done its part once, every token arrives, no two threads ever hold
//! the mutex, and all threads end.

use super::abi;
use super::bell::{Bell, BellSort};
use super::lock::{Kind, Lock, Made, Protocol, Sort};
use super::object::zero;
use crate::actor::{Actor, Verdict};
use crate::context::Context;
use crate::count::Count;
use crate::parts::books::Pair;
use libc::c_void;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

const VISITS: usize = 600;
/// Small libraries that are part of every glibc, and that this program does not use otherwise.
const LIBRARIES: [&std::ffi::CStr; 4] = [
    c"libutil.so.1",
    c"libanl.so.1",
    c"libBrokenLocale.so.1",
    c"libresolv.so.2",
];
/// How often a destructor asks to be called again. The C library grants three more calls.
const PASSES: usize = 3;

/// What all threads share.
struct Hall {
    lock: Lock,
    bell: Bell,
    pair: Pair,
    /// Threads that were started, threads that have left, and the passes of their destructors.
    started: AtomicUsize,
    gone: AtomicUsize,
    passes: AtomicUsize,
    key: libc::pthread_key_t,
    context: &'static Context,
}

/// What a thread leaves to its destructor.
struct Legacy {
    hall: &'static Hall,
    passes_left: usize,
    miscounts: bool,
}

impl Hall {
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

/// The destructor of a thread's legacy.
unsafe extern "C" fn leave(legacy: *mut c_void) {
    // SAFETY: boxed for the thread that ends.
    let mut legacy = unsafe { Box::from_raw(legacy.cast::<Legacy>()) };
    let hall = legacy.hall;
    let actor = Actor::new(hall.context, "destructor", 0);
    let mut done = hall.turn(&actor);
    hall.passes.fetch_add(1, SeqCst);
    if legacy.passes_left > 0 {
        legacy.passes_left -= 1;
        // SAFETY: a key of ours; the legacy becomes its value again.
        unsafe { libc::pthread_setspecific(hall.key, Box::into_raw(legacy).cast()) };
    } else {
        actor.step();
        done = done.and_then(|()| {
            hall.lock.lock(&actor)?;
            hall.gone
                .fetch_add(if legacy.miscounts { 2 } else { 1 }, SeqCst);
            hall.bell.broadcast(false)?;
            hall.lock.unlock()
        });
    }
    if let Err(complaint) = done {
        hall.context.complain(&complaint);
    }
}

/// A visitor takes a turn, and leaves something for its destructor to do.
unsafe extern "C-unwind" fn visit(legacy: *mut c_void) -> *mut c_void {
    // SAFETY: boxed for this thread, which passes it on to its destructor.
    let hall = unsafe { (*legacy.cast::<Legacy>()).hall };
    // SAFETY: a key of ours.
    unsafe { libc::pthread_setspecific(hall.key, legacy) };
    let actor = Actor::new(hall.context, "visitor", 0);
    if let Err(complaint) = hall.turn(&actor) {
        hall.context.complain(&complaint);
    }
    std::ptr::null_mut()
}

fn invite(actor: &mut Actor, hall: &'static Hall) -> Verdict {
    let legacy = Box::into_raw(Box::new(Legacy {
        hall,
        passes_left: actor.dice.usize(0..=PASSES),
        miscounts: actor.miscounts(),
    }));
    // SAFETY: the thread has not been started.
    let passes = unsafe { (*legacy).passes_left } + 1;
    let detached = actor.dice.bool();
    let mut thread = MaybeUninit::uninit();
    let mut attributes = MaybeUninit::uninit();
    // SAFETY: attributes are initialised, used and destroyed; the thread is joined once if it is
    // not detached.
    unsafe {
        libc::pthread_attr_init(attributes.as_mut_ptr());
        libc::pthread_attr_setstacksize(attributes.as_mut_ptr(), crate::context::STACK);
        if detached {
            let detached = libc::PTHREAD_CREATE_DETACHED;
            libc::pthread_attr_setdetachstate(attributes.as_mut_ptr(), detached);
        }
        let made = abi::pthread_create(
            thread.as_mut_ptr(),
            attributes.as_ptr(),
            visit,
            legacy.cast(),
        );
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        zero("pthread_create", made)?;
        hall.started.fetch_add(1, SeqCst);
        // Destructors add their passes one by one, so that the sum is 0 at the end.
        hall.passes.fetch_sub(passes, SeqCst);
        actor.count(Count::Threads, 1);
        if !detached {
            let thread = thread.assume_init();
            zero(
                "pthread_join",
                libc::pthread_join(thread, std::ptr::null_mut()),
            )?;
        }
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

pub(super) fn run(context: &'static Context) -> Verdict {
    let mut key = 0;
    // SAFETY: room for the key.
    zero("pthread_key_create", unsafe {
        libc::pthread_key_create(&raw mut key, Some(leave))
    })?;
    let mut halls: Vec<&'static Hall> = Vec::new();
    let sorts = Sort::mutexes().filter(|sort| {
        sort.kind != Kind::Recursive && sort.made != Made::C11 && sort.protocol != Protocol::Protect
    });
    for sort in sorts.step_by(3) {
        halls.push(Box::leak(Box::new(Hall {
            lock: Lock::new(context, sort)?,
            bell: Bell::new(context, "a thread has left", BellSort::PLAIN)?,
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
        let hall = halls[dice.usize(0..halls.len())];
        hall.started.store(0, SeqCst);
        hall.gone.store(0, SeqCst);
        hall.passes.store(0, SeqCst);
        let quota = (VISITS / round.threads).max(2);
        context.crew(round, |crew| {
            for index in 0..round.threads {
                crew.spawn("host", index, move |actor| {
                    for _ in 0..quota {
                        match actor.dice.u32(0..8) {
                            0 => load(actor)?,
                            1..4 => hall.turn(actor)?,
                            _ => {}
                        }
                        invite(actor, hall)?;
                    }
                    Ok(())
                });
            }
            crew.spawn("host of the last", 0, move |actor| {
                let all = quota * round.threads;
                hall.lock.lock(actor)?;
                while hall.gone.load(SeqCst) < all {
                    hall.bell.wait(actor, &hall.lock, false)?;
                }
                hall.lock.unlock()
            });
            Ok(())
        })?;
        let counts = [&hall.started, &hall.gone, &hall.passes].map(|count| count.load(SeqCst));
        if counts[0] != counts[1] || counts[2] != 0 {
            return Err(format!(
                "{} threads were started, {} destructors ended, sum of missing passes: {}",
                counts[0], counts[1], counts[2] as isize
            ));
        }
    }
    Ok(())
}
