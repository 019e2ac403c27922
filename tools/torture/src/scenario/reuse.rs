//! Tortured: objects that are destroyed as soon as POSIX allows it: a condition variable right
//! after its broadcast, a mutex by the thread that unlocks it last, a semaphore by the last thread
//! that it let through, a barrier and a reader/writer lock by the last thread that leaves. Their
//! page is taken away at once, and later given to another object of another kind.
//!
//! Checked: no thread touches an object after its end (that would be a SIGSEGV, or a changed byte),
//! and all threads end.

use crate::actor::{Actor, Verdict};
use crate::context::Context;
use crate::nap::let_others_run;
use crate::objects::pthread::barrier::Barrier;
use crate::objects::pthread::condvar::{Condvar, CondvarSort};
use crate::objects::pthread::mutex::Mutex;
use crate::objects::pthread::object::Object;
use crate::objects::pthread::rwlock::RwLock;
use crate::objects::pthread::semaphore::Semaphore;
use crate::objects::pthread::sort::{Kind, Made, Protocol, Sort};
use crate::objects::traits::{
    Attempt, Barrier as _, Held, Lock as _, ReadWrite as _, Semaphore as _,
};
use crate::spot::{Spot, Word};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use waitword::Scope;

const TURNS: usize = 1_500;
const PAGE: usize = 4096;
/// Pages of a group, used in turns.
const PAGES: usize = 4;
/// The bytes of memory that no thread may touch, while it can be read.
const REST: u8 = 0x5a;

/// What a turn uses.
enum Thing {
    Mutex(Mutex),
    /// All threads wait but one, which releases them and destroys it. The mutex is on a page that
    /// stays: it is used until all threads are through.
    Cond(Condvar, Mutex),
    Semaphore(Semaphore),
    Barrier(Barrier),
    ReadWrite(RwLock),
}

/// A group of threads that use objects, one after another.
struct Group {
    members: usize,
    pages: *mut u8,
    turns: Vec<Turn>,
    /// A barrier that separates the group's turns. It is never destroyed while it is in use.
    gate: Barrier,
}

/// What happens in one turn.
struct Turn {
    thing: Thing,
    spot: Spot,
    /// How many threads have yet to leave.
    left: AtomicUsize,
    waiting: AtomicUsize,
    /// In a condition variable's turn: the flag that is waited for.
    free: AtomicUsize,
    hidden: bool,
}

// SAFETY: the pages are for all threads of the group.
unsafe impl Sync for Group {}
// SAFETY: as above.
unsafe impl Send for Group {}

impl Group {
    fn page(&self, turn: usize) -> *mut u8 {
        // SAFETY: inside the mapping.
        unsafe { self.pages.add(turn % PAGES * PAGE) }
    }

    /// Before any thread comes.
    fn begin(&self, turn: usize) -> Verdict {
        if let Some(before) = turn.checked_sub(PAGES) {
            self.rests(before)?;
        }
        match &self.turns[turn].thing {
            Thing::Mutex(mutex) => mutex.make(),
            Thing::Cond(condvar, companion) => {
                companion.make()?;
                condvar.make()
            }
            Thing::Semaphore(semaphore) => semaphore.make(0),
            Thing::Barrier(barrier) => barrier.make(self.members),
            Thing::ReadWrite(lock) => lock.make(),
        }
    }

    /// Checks that the object of a turn has not been written to since its end.
    fn rests(&self, turn: usize) -> Verdict {
        let page = self.page(turn);
        // SAFETY: a page of ours that is not in use.
        let bytes = unsafe {
            libc::mprotect(page.cast(), PAGE, libc::PROT_READ | libc::PROT_WRITE);
            std::slice::from_raw_parts(page, 64)
        };
        match bytes.iter().all(|&byte| byte == REST) {
            true => Ok(()),
            false => {
                let what = match &self.turns[turn].thing {
                    Thing::Mutex(mutex) => mutex.name(),
                    Thing::Cond(condvar, _) => format!("{:?}", condvar.sort),
                    Thing::Semaphore(_) => "a semaphore".to_owned(),
                    Thing::Barrier(_) => "a barrier".to_owned(),
                    Thing::ReadWrite(lock) => lock.name(),
                };
                Err(format!("{what} was written to after its end: {bytes:02x?}"))
            }
        }
    }

    /// After the object has ended: from here on no thread may touch it.
    fn end(&self, turn: usize) {
        let page = self.page(turn);
        // SAFETY: a page of ours, whose object has ended.
        unsafe {
            page.write_bytes(REST, 64);
            if self.turns[turn].hidden {
                libc::mprotect(page.cast(), PAGE, libc::PROT_NONE);
            }
        }
    }

    /// A member's part in a turn. The thread that is the last to need the object destroys it.
    fn take(&self, actor: &mut Actor, number: usize, member: usize) -> Verdict {
        let turn = &self.turns[number];
        match &turn.thing {
            // The mutex protects the count. The thread that counts to zero unlocks it last.
            Thing::Mutex(mutex) => {
                mutex.lock(actor)?;
                let mine = turn.left.load(Relaxed) - 1;
                turn.left.store(mine, Relaxed);
                mutex.unlock()?;
                if mine > 0 {
                    return Ok(());
                }
                mutex.end()?;
            }
            Thing::Cond(condvar, companion) if member != 0 => {
                companion.lock(actor)?;
                turn.waiting.fetch_add(1, SeqCst);
                while turn.free.load(Relaxed) == 0 {
                    condvar.wait(actor, companion, false)?;
                }
                return companion.unlock();
            }
            Thing::Cond(condvar, companion) => {
                // All other threads are in their waits, so they have released the mutex.
                while turn.waiting.load(SeqCst) < self.members - 1 {
                    let_others_run();
                }
                companion.lock(actor)?;
                turn.free.store(1, Relaxed);
                condvar.broadcast(false)?;
                let with_mutex = number.is_multiple_of(2);
                if !with_mutex {
                    companion.unlock()?;
                }
                // No thread is blocked on it any more.
                condvar.end()?;
                self.end(number);
                return match with_mutex {
                    true => companion.unlock(),
                    false => Ok(()),
                };
            }
            // One thread posts as often as there are other threads.
            Thing::Semaphore(semaphore) if member == 0 => {
                let posts = self.members - 1 - usize::from(actor.leaves_out());
                return match semaphore.post_many(posts as u32) {
                    true => Ok(()),
                    false => Err("sem_post failed".to_owned()),
                };
            }
            Thing::Semaphore(semaphore) => {
                actor.wait_at(turn.spot, false, || semaphore.wait())?;
                // The poster counts too, and has not left: its last post let the last thread
                // through.
                if turn.left.fetch_sub(1, SeqCst) != 2 {
                    return Ok(());
                }
                semaphore.end()?;
            }
            Thing::Barrier(barrier) => {
                if !barrier.wait(actor)? {
                    return Ok(());
                }
                barrier.end()?;
            }
            // Which thread unlocks last is known only after the unlock, so all count after it.
            Thing::ReadWrite(lock) => {
                let held = [Held::Read, Held::Written][usize::from(actor.dice.bool())];
                lock.take(actor, held, Attempt::Patient)?;
                lock.give_back(actor, held)?;
                if turn.left.fetch_sub(1, SeqCst) != 1 {
                    return Ok(());
                }
                lock.end()?;
            }
        }
        self.end(number);
        Ok(())
    }
}

/// What a turn uses, at a place and with a place for a companion. Robust mutexes and those with a
/// priority ceiling are left out, because they are the C library's own.
fn some(dice: &mut fastrand::Rng, sorts: &[Sort], object: Object, companion: Object) -> Thing {
    match dice.u32(0..6) {
        0 | 1 => Thing::Mutex(Mutex { sort: sorts[dice.usize(0..sorts.len())], object }),
        2 | 3 => {
            let condvar = Condvar { sort: CondvarSort::some(dice), object };
            let plain = Mutex { sort: Sort::PLAIN, object: companion };
            Thing::Cond(condvar, plain)
        }
        4 if dice.bool() => Thing::Semaphore(Semaphore::private(object)),
        4 => Thing::ReadWrite(RwLock::plain(object)),
        _ => Thing::Barrier(Barrier::private(object)),
    }
}

/// A group's turns, on these pages.
fn group(
    dice: &mut fastrand::Rng,
    sorts: &[Sort],
    (members, turns): (usize, usize),
    (spots, pages): &(Vec<Spot>, usize),
    gate: Object,
) -> Group {
    let pages: *mut u8 = std::ptr::with_exposed_provenance_mut(*pages);
    let turn = |number: usize| {
        let page = number % PAGES;
        // SAFETY: inside the mapping, which stays; the companions lie behind the pages of the
        // objects.
        let (object, companion) = unsafe {
            (
                Object::lies_at(pages.add(page * PAGE), spots[page]),
                Object::lies_at(pages.add(PAGES * PAGE + page * 64), spots[page]),
            )
        };
        Turn {
            thing: some(dice, sorts, object, companion),
            spot: spots[page],
            left: AtomicUsize::new(members),
            waiting: AtomicUsize::new(0),
            free: AtomicUsize::new(0),
            hidden: dice.bool(),
        }
    };
    Group { members, pages, turns: (0..turns).map(turn).collect(), gate: Barrier::private(gate) }
}

pub(crate) fn run(context: &'static Context) -> Verdict {
    let sorts: Vec<_> = Sort::mutexes()
        .filter(|sort| sort.made != Made::C11 && sort.protocol != Protocol::Protect)
        .filter(|sort| !sort.robust && sort.kind != Kind::ErrorChecking)
        .collect();
    let mut grounds = Vec::new();
    while let Some(round) = context.next_round() {
        let mut dice = round.dice();
        let size = dice.usize(2..=round.threads.min(8));
        let count = round.threads / size;
        while grounds.len() < count {
            let gate = Object::new(context, "gate of a group", false);
            grounds.push((ground(context, grounds.len())?, gate));
        }
        let turns = (TURNS / round.threads).max(PAGES * 2);
        let groups: Vec<Group> = (grounds[..count].iter())
            .map(|(ground, gate)| group(&mut dice, &sorts, (size, turns), ground, *gate))
            .collect();
        let groups = &groups;
        context.crew(round, |crew| {
            for (number, group) in groups.iter().enumerate() {
                group.gate.make(size)?;
                for member in 0..size {
                    crew.spawn("member", number * size + member, move |actor| {
                        for turn in 0..turns {
                            if member == 0 {
                                group.begin(turn)?;
                            }
                            group.gate.wait(actor)?;
                            group.take(actor, turn, member)?;
                            actor.step();
                            group.gate.wait(actor)?;
                        }
                        Ok(())
                    });
                }
            }
            Ok(())
        })?;
        for group in groups {
            (turns - PAGES..turns).try_for_each(|turn| group.rests(turn))?;
            group.gate.end()?;
        }
    }
    Ok(())
}

/// Pages for a group, and names for the objects in them.
fn ground(context: &Context, number: usize) -> Result<(Vec<Spot>, usize), String> {
    // SAFETY: a new mapping, at an address that the kernel chooses.
    let memory = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            PAGE * (PAGES + 1),
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    if memory == libc::MAP_FAILED {
        return Err("no memory".to_owned());
    }
    // The report must not read a page that was taken away, so it gets a word that is never used.
    let unused: &'static mut u64 = Box::leak(Box::new(0));
    let address = (&raw mut *unused).cast();
    let spots = (0..PAGES)
        .map(|page| {
            let name = format!("page {page} of group {number} (its word is not shown)");
            // SAFETY: leaked, and used as this word only.
            context.name_word(&name, unsafe { Word::at(address, 32) }, Scope::Private)
        })
        .collect();
    Ok((spots, memory.expose_provenance()))
}
