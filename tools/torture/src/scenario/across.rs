//! Tortured: process-shared locks in memory that several processes map, each at another address:
//! mutexes of every flavour and kind, rwlocks, a store with condvars, semaphores.
//!
//! Checked, over all processes: one holder at a time, and a writer is alone; no turn, write or
//! token is lost; owners and non-owners get the right errors; all threads end.

use super::cond::{Condvars, Place};
use super::{mutex, rwlock};
use crate::actor::{Actor, Verdict};
use crate::context::{Context, Round};
use crate::memory::shared_memory;
use crate::objects::library::condvar::Condvar;
use crate::objects::library::mutex::{Mutex, Sort};
use crate::objects::library::rwlock::RwLock;
use crate::parts::books::Books;
use crate::parts::store::Store;
use crate::parts::{team, turns};
use crate::seed::mix;
use crate::spot::{Spot, Word};
use std::ptr::NonNull;
use waitword::{Preference, RawCondvar, RawPosixMutex, RawRwLock, Scope, Semaphore};

const PROCESSES: usize = 3;
const TURNS: usize = 3_000;
const MOST_THREADS: usize = 96;
const MUTEXES: usize = 12;
const PREFERENCES: [Preference; 2] = [Preference::Reader, Preference::Writer];
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
        let room = 1 + round.dice().u32(0..3);
        let mut sorts = sorts();
        let mut mutex = || sorts.next().map(Sort::make).unwrap_or_default();
        Self {
            mutexes: [(); MUTEXES].map(|()| (mutex(), Books::default())),
            rwlocks: PREFERENCES
                .map(|preference| (RawRwLock::with(preference, Scope::Shared), Books::default())),
            lock: sort_of_store(round).make(),
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

/// The sort of the store's mutex in a round.
fn sort_of_store(round: Round) -> Sort {
    let number = round.dice().usize(0..MUTEXES);
    sorts().nth(number).expect("as many sorts as mutexes")
}

/// The names of the objects in the report.
struct Names {
    mutexes: Vec<Spot>,
    rwlocks: Vec<Spot>,
    lock: Spot,
    condvars: [Spot; 2],
    semaphores: [Spot; 2],
}

/// The world as one process sees it.
struct View<'a> {
    world: &'static World,
    names: &'a Names,
    mutexes: Vec<mutex::Guarded<Mutex>>,
    rwlocks: Vec<rwlock::Guarded<RwLock>>,
    lock: Mutex,
    condvars: Condvars<Condvar>,
}

pub(crate) fn run(context: &'static Context) -> Verdict {
    let memory = NonNull::new(shared_memory(size_of::<World>()).cast::<World>());
    let memory = memory.expect("memory is not at null");
    let names = &Names::new(context, memory);
    while let Some(now) = context.next_round() {
        // SAFETY: a mapping that is large enough and page-aligned. All processes of the previous
        // round have ended.
        unsafe { memory.write(World::new(now)) };
        let each = (now.threads.min(MOST_THREADS) / PROCESSES).max(4) / 4;
        team::run(context, PROCESSES, &|process| {
            let view = View::new(map_elsewhere(memory), names, now);
            work(context, now, process * each, each, &view)
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
        assert_ne!(elsewhere, memory.as_ptr().cast());
        &*elsewhere.cast::<World>()
    }
}
/// Four roles, of `each` threads each.
fn work(
    context: &'static Context,
    round: Round,
    first: usize,
    each: usize,
    view: &View<'_>,
) -> Verdict {
    let quota = (TURNS / (each * PROCESSES * 4)).max(4);
    let place = &Place { lock: &view.lock, condvars: &view.condvars, in_order: false };
    context.crew(round, |crew| {
        for index in first..first + each {
            crew.spawn("locker", index, move |actor| {
                (0..quota).try_for_each(|_| {
                    let lock = &view.mutexes[actor.dice.usize(0..MUTEXES)];
                    turns::turn(actor, lock, 0, None)
                })
            });
            crew.spawn("sharer", index, move |actor| {
                (0..quota).try_for_each(|_| {
                    let lock = &view.rwlocks[actor.dice.usize(0..PREFERENCES.len())];
                    turns::turn(actor, lock, 12, None)
                })
            });
            for gives in [true, false] {
                let role = if gives { "giver" } else { "taker" };
                crew.spawn(role, index, move |actor| {
                    for number in 0..quota {
                        let token = mix((index * quota + number) as u64);
                        let token = gives.then_some(token);
                        view.world.store.pass(actor, &place, token)?;
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

impl<'a> View<'a> {
    fn new(world: &'static World, names: &'a Names, round: Round) -> Self {
        let mutexes = world.mutexes.iter().zip(sorts()).zip(&names.mutexes);
        let rwlocks = world.rwlocks.iter().zip(PREFERENCES).zip(&names.rwlocks);
        let [not_empty, not_full] = names.condvars;
        Self {
            world,
            names,
            mutexes: mutexes
                .map(|(((mutex, books), sort), &spot)| mutex::Guarded {
                    lock: Mutex::at(mutex, sort, spot),
                    books,
                })
                .collect(),
            rwlocks: rwlocks
                .map(|(((lock, books), preference), &spot)| rwlock::Guarded {
                    lock: RwLock::at(lock, preference, spot),
                    books,
                })
                .collect(),
            lock: Mutex::at(&world.lock, sort_of_store(round), names.lock),
            condvars: Condvars {
                not_empty: Condvar::at(&world.not_empty, not_empty),
                not_full: Condvar::at(&world.not_full, not_full),
            },
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
                rwlocks: (0..PREFERENCES.len())
                    .map(|index| {
                        let lock = &raw mut (*world).rwlocks[index].0;
                        name("rwlock", lock.cast(), 64)
                    })
                    .collect(),
                lock: name("store's mutex", (&raw mut (*world).lock).cast(), 32),
                condvars: [
                    name("condvar `not empty`", (&raw mut (*world).not_empty).cast(), 64),
                    name("condvar `not full`", (&raw mut (*world).not_full).cast(), 64),
                ],
                semaphores: [
                    name("semaphore of stock", (&raw mut (*world).stock).cast(), 64),
                    name("semaphore of room", (&raw mut (*world).room).cast(), 64),
                ],
            }
        }
    }
}
