//! Tortured: process-shared locks in memory that several processes map, each at another address:
//! mutexes of every flavour and kind, rwlocks, a store with condvars, semaphores.
//!
//! Checked, over all processes: one holder at a time, and a writer is alone; no turn, write or
//! token is lost; all threads end.

use super::locks::{Sort, in_time};
use crate::actor::{Actor, Verdict};
use crate::context::{Context, Round, mix};
use crate::parts::books::Books;
use crate::parts::store::{Condition, Monitor, Store};
use crate::parts::team;
use crate::process::shared_memory;
use crate::spot::{Spot, Word};
use std::ptr::NonNull;
use waitword::{
    Deadline, Preference, RawCondvar, RawPosixMutex, RawRwLock, RwLockError, Scope, Semaphore,
};

const PROCESSES: usize = 3;
const TURNS: usize = 3_000;
const MOST_THREADS: usize = 96;
const MUTEXES: usize = 12;
const ROOM: usize = 2;

/// All objects, as they lie in memory.
#[repr(C)]
struct World {
    mutexes: [(RawPosixMutex, Books); MUTEXES],
    rwlocks: [(RawRwLock, Books); 2],
    /// The mutex and the condvars of the store.
    lock: RawPosixMutex,
    not_empty: RawCondvar,
    not_full: RawCondvar,
    store: Store,
    /// How many tokens there is room for, and how many there are.
    room: Semaphore,
    stock: Semaphore,
}

impl World {
    fn new(round: Round) -> Self {
        let mut sorts = sorts();
        let number = round.dice().usize(0..MUTEXES);
        let room = 1 + round.dice().u32(0..3);
        let lock = sorts.nth(number).map(Sort::make).unwrap_or_default();
        let mut sorts = self::sorts();
        let mut mutex = || sorts.next().map(Sort::make).unwrap_or_default();
        Self {
            mutexes: [(); MUTEXES].map(|()| (mutex(), Books::default())),
            rwlocks: [Preference::Reader, Preference::Writer]
                .map(|preference| (RawRwLock::with(preference, Scope::Shared), Books::default())),
            lock,
            not_empty: RawCondvar::with_scope(Scope::Shared),
            not_full: RawCondvar::with_scope(Scope::Shared),
            store: Store::new(ROOM),
            room: Semaphore::with_scope(room, Scope::Shared),
            stock: Semaphore::with_scope(0, Scope::Shared),
        }
    }
}

fn sorts() -> impl Iterator<Item = Sort> {
    Sort::all().filter(|sort| sort.scope == Scope::Shared)
}

/// The world as one process sees it, with the names of its objects in the report.
#[derive(Clone, Copy)]
struct View<'a> {
    world: &'a World,
    names: &'a Names,
}

struct Names {
    mutexes: Vec<Spot>,
    rwlocks: Vec<Spot>,
    lock: Spot,
    bells: [Spot; 2],
    semaphores: [Spot; 2],
}

pub(super) fn run(context: &'static Context) -> Verdict {
    let memory = NonNull::new(shared_memory(size_of::<World>()).cast::<World>());
    let memory = memory.expect("memory is not at null");
    let names = &Names::new(context, memory);
    while let Some(now) = context.next_round() {
        // SAFETY: a mapping that is large enough and page-aligned. All processes of the previous
        // round have ended.
        unsafe { memory.write(World::new(now)) };
        let each = (now.threads.min(MOST_THREADS) / PROCESSES).max(4) / 4;
        team::run(context, PROCESSES, &|process| {
            let view = View {
                world: map_elsewhere(memory),
                names,
            };
            work(context, now, process * each, each, view)
        })?;
        // SAFETY: written above. No thread changes it any more.
        over(unsafe { memory.as_ref() })?;
    }
    Ok(())
}

/// Maps the same memory at another address of a forked process.
fn map_elsewhere(memory: NonNull<World>) -> &'static World {
    // SAFETY: a shared mapping. With an old size of 0 it stays, and the new one is elsewhere.
    unsafe {
        let flags = libc::MREMAP_MAYMOVE;
        let elsewhere = libc::mremap(memory.as_ptr().cast(), 0, size_of::<World>(), flags);
        assert_ne!(elsewhere, libc::MAP_FAILED, "cannot map the memory again");
        assert_ne!(elsewhere.cast(), memory.as_ptr());
        &*elsewhere.cast::<World>()
    }
}

/// Four roles, of `each` threads each.
fn work(
    context: &'static Context,
    round: Round,
    first: usize,
    each: usize,
    view: View<'_>,
) -> Verdict {
    let quota = (TURNS / (each * PROCESSES * 4)).max(4);
    context.crew(round, |crew| {
        for index in first..first + each {
            crew.spawn("locker", index, move |actor| {
                (0..quota).try_for_each(|_| view.lock(actor))
            });
            crew.spawn("sharer", index, move |actor| {
                (0..quota).try_for_each(|_| view.share(actor))
            });
            for gives in [true, false] {
                let role = if gives { "giver" } else { "taker" };
                crew.spawn(role, index, move |actor| {
                    for number in 0..quota {
                        let token = mix((index * quota + number) as u64);
                        view.world
                            .store
                            .pass(actor, &view, gives.then_some(token))?;
                        view.count(actor, gives)?;
                    }
                    Ok(())
                });
            }
        }
        Ok(())
    })
}

/// After all threads have ended.
fn over(world: &World) -> Verdict {
    let mutexes = world.mutexes.iter().map(|(_, books)| books);
    let mut all = mutexes.chain(world.rwlocks.iter().map(|(_, books)| books));
    all.try_for_each(Books::settle)?;
    world.store.settle()?;
    if world.stock.value() != 0 {
        return Err("posts are left over".to_owned());
    }
    let error = |error| format!("a condvar that no thread uses: {error}");
    world.not_empty.destroy().map_err(error)?;
    world.not_full.destroy().map_err(error)
}

impl View<'_> {
    fn lock(&self, actor: &mut Actor) -> Verdict {
        let index = actor.dice.usize(0..MUTEXES);
        let (mutex, books) = &self.world.mutexes[index];
        let spot = self.names.mutexes[index];
        let deadline = (actor.dice.u32(0..4) == 0).then(|| actor.tiny_deadline());
        let locked = actor.wait_at(spot, deadline.is_some(), || match deadline {
            Some(deadline) => mutex.lock_until(deadline),
            None => mutex.lock_checked(),
        });
        if in_time(actor, locked)? {
            actor.holds(spot);
            books.change(actor)?;
            if actor.leaves_out() {
                actor.keeps(spot);
            }
            actor.releases(spot);
            // SAFETY: locked just above.
            unsafe { mutex.unlock() };
        }
        Ok(())
    }

    fn share(&self, actor: &mut Actor) -> Verdict {
        let index = actor.dice.usize(0..2);
        let (lock, books) = &self.world.rwlocks[index];
        let spot = self.names.rwlocks[index];
        let writes = actor.dice.u32(0..4) == 0;
        let deadline = (actor.dice.u32(0..4) == 0).then(|| actor.tiny_deadline());
        let until: Option<&Deadline> = deadline.as_ref();
        let locked = actor.wait_at(spot, until.is_some(), || match writes {
            true => lock.write(0, until),
            false => lock.read(0, until),
        });
        match locked {
            Ok(()) => {}
            Err(RwLockError::TimedOut) if until.is_some() => return Ok(()),
            Err(error) => return Err(format!("not taken: {error}")),
        }
        actor.holds(spot);
        match writes {
            true => books.change(actor)?,
            false => books.look(actor)?,
        }
        actor.releases(spot);
        // SAFETY: taken above, in this way.
        unsafe {
            use waitword::lock_api::RawRwLock as _;
            match writes {
                true => lock.unlock_exclusive(),
                false => lock.unlock_shared(),
            }
        }
        Ok(())
    }

    fn bell(&self, what: Condition) -> (&RawCondvar, Spot) {
        let [not_empty, not_full] = self.names.bells;
        match what {
            Condition::NotEmpty => (&self.world.not_empty, not_empty),
            Condition::NotFull => (&self.world.not_full, not_full),
        }
    }

    /// Like the store, but without a lock: one semaphore counts the tokens, the other the room for
    /// more.
    fn count(&self, actor: &mut Actor, gives: bool) -> Verdict {
        let (take, give) = match gives {
            true => (&self.world.room, &self.world.stock),
            false => (&self.world.stock, &self.world.room),
        };
        let spot = self.names.semaphores[usize::from(gives)];
        let soon = actor.tiny_deadline();
        let is_short = actor.dice.u32(0..4) == 0;
        if !is_short || !actor.wait_at(spot, true, || take.wait_until(soon)) {
            actor.wait_at(spot, false, || take.wait());
        }
        give.post().map_err(|error| error.to_string())
    }
}

impl Monitor for View<'_> {
    fn lock(&self, actor: &mut Actor) -> Verdict {
        actor.wait_at(self.names.lock, false, || self.world.lock.lock());
        actor.holds(self.names.lock);
        Ok(())
    }

    fn unlock(&self, actor: &mut Actor) -> Verdict {
        actor.releases(self.names.lock);
        // SAFETY: locked by the caller.
        unsafe { self.world.lock.unlock() };
        Ok(())
    }

    fn wait(&self, actor: &mut Actor, what: Condition) -> Verdict {
        let (condvar, spot) = self.bell(what);
        let deadline = (actor.dice.u32(0..6) == 0).then(|| actor.tiny_deadline());
        actor.releases(self.names.lock);
        let waited = actor.wait_at(spot, deadline.is_some(), || {
            // SAFETY: the mutex is held, and all threads that wait here do so with it.
            unsafe { condvar.wait(&self.world.lock, deadline.as_ref()) }
        });
        actor.holds(self.names.lock);
        in_time(actor, waited).map(drop)
    }

    fn signal(&self, actor: &mut Actor, what: Condition, _inside: bool) -> Verdict {
        let (condvar, _) = self.bell(what);
        match actor.dice.u32(0..4) {
            0 => drop(condvar.notify_all()),
            _ => drop(condvar.notify_one()),
        }
        Ok(())
    }
}

impl Names {
    fn new(context: &Context, memory: NonNull<World>) -> Self {
        let name = |name: &str, place: *mut u8, bits| {
            // SAFETY: never unmapped, and an atomic of this size.
            let word = unsafe { Word::at(place, bits) };
            context.name_word(&format!("Shared {name}"), word, Scope::Shared)
        };
        let world = memory.as_ptr();
        // SAFETY: addresses inside the mapping; nothing is read.
        unsafe {
            Self {
                mutexes: (sorts().enumerate())
                    .map(|(index, sort)| {
                        let mutex = &raw mut (*world).mutexes[index].0;
                        name(&sort.name(), mutex.cast(), 32)
                    })
                    .collect(),
                rwlocks: (0..2)
                    .map(|index| {
                        let lock = &raw mut (*world).rwlocks[index].0;
                        name("rwlock", lock.cast(), 64)
                    })
                    .collect(),
                lock: name("store's mutex", (&raw mut (*world).lock).cast(), 32),
                bells: [
                    name(
                        "condvar `not empty`",
                        (&raw mut (*world).not_empty).cast(),
                        64,
                    ),
                    name(
                        "condvar `not full`",
                        (&raw mut (*world).not_full).cast(),
                        64,
                    ),
                ],
                semaphores: [
                    name("semaphore of stock", (&raw mut (*world).stock).cast(), 64),
                    name("semaphore of room", (&raw mut (*world).room).cast(), 64),
                ],
            }
        }
    }
}
