//! Tortured: objects that are destroyed as soon as POSIX allows it: a condition variable right
//! after its broadcast, a mutex by the thread that unlocks it last, a semaphore by the last thread
//! that it let through, a barrier and a reader/writer lock by the last thread that leaves. Their
//! page is taken away at once, and later given to another object of another kind.
//!
//! Checked: no thread touches an object after its end (that would be a SIGSEGV, or a changed byte),
//! and all threads end.

use super::abi;
use super::bell::BellSort;
use super::lock::{Kind, Made, Protocol, Sort};
use super::object::zero;
use crate::actor::{Actor, Verdict};
use crate::context::Context;
use crate::spot::{Spot, Word};
use libc::{pthread_cond_t, pthread_mutex_t, pthread_rwlock_t, sem_t};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use waitword::Scope;

const TURNS: usize = 1_500;
const PAGE: usize = 4096;
/// Pages of a group, used in turns.
const PAGES: usize = 4;
/// The bytes of memory that no thread may touch, while it can be read.
const REST: u8 = 0x5a;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Mutex(Sort),
    /// All threads wait but one, which releases them and destroys it.
    Cond(BellSort),
    Semaphore,
    Barrier,
    ReadWrite,
}

/// A group of threads that use objects, one after another.
struct Group {
    members: usize,
    spots: Vec<Spot>,
    pages: *mut u8,
    turns: Vec<Turn>,
    /// A barrier that separates the group's turns. It is never destroyed while it is in use.
    gate: *mut libc::pthread_barrier_t,
}

/// What happens in one turn.
struct Turn {
    what: What,
    /// How many threads have yet to leave.
    left: AtomicUsize,
    waiting: AtomicUsize,
    /// In a condition variable's turn: the flag that is waited for, under a mutex that outlives the
    /// turn.
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

    /// The mutex of a condition variable, on a page that stays: it is used until all threads are
    /// through.
    fn companion(&self, turn: usize) -> *mut pthread_mutex_t {
        // SAFETY: inside the mapping, behind the pages of the objects.
        unsafe { self.pages.add(PAGES * PAGE + turn % PAGES * 64).cast() }
    }

    /// Before any thread comes.
    fn begin(&self, turn: usize) -> Verdict {
        let page = self.page(turn);
        let what = &self.turns[turn].what;
        // SAFETY: a page of ours that is not in use.
        unsafe {
            if let Some(before) = turn.checked_sub(PAGES) {
                self.rests(before)?;
            }
            page.write_bytes(0xa5, 64);
            match *what {
                What::Mutex(sort) => sort.make(page.cast()),
                What::Cond(sort) => {
                    Sort::by_init()
                        .next()
                        .map_or(Ok(()), |plain| plain.make(self.companion(turn)))?;
                    sort.make(page.cast())
                }
                What::Semaphore => zero("sem_init", libc::sem_init(page.cast(), 0, 0)),
                What::Barrier => {
                    let members = self.members as u32;
                    let made = abi::pthread_barrier_init(page.cast(), std::ptr::null(), members);
                    zero("pthread_barrier_init", made)
                }
                What::ReadWrite => {
                    let made = libc::pthread_rwlock_init(page.cast(), std::ptr::null());
                    zero("pthread_rwlock_init", made)
                }
            }
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
                let what = self.turns[turn].what;
                Err(format!(
                    "{what:?} was written to after its end: {bytes:02x?}"
                ))
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

    fn take(&self, actor: &mut Actor, turn: usize, member: usize) -> Verdict {
        let spot = self.spots[turn % PAGES];
        match self.turns[turn].what {
            What::Mutex(_) => actor.wait_at(spot, false, || self.through_mutex(turn)),
            What::Cond(_) => actor.wait_at(spot, false, || self.through_cond(turn, member)),
            What::Semaphore => {
                let leaves_out = actor.leaves_out();
                actor.wait_at(spot, false, || {
                    self.through_semaphore(turn, member, leaves_out)
                })
            }
            What::Barrier => actor.wait_at(spot, false, || self.through_barrier(turn)),
            What::ReadWrite => {
                let writes = actor.dice.bool();
                actor.wait_at(spot, false, || self.through_rwlock(turn, writes))
            }
        }
    }

    /// The mutex protects the count. The thread that counts to zero unlocks it last, and then
    /// destroys it.
    fn through_mutex(&self, turn: usize) -> Verdict {
        let mutex = self.page(turn).cast::<pthread_mutex_t>();
        let left = &self.turns[turn].left;
        // SAFETY: the mutex exists until all threads have been through.
        unsafe {
            zero("lock", libc::pthread_mutex_lock(mutex))?;
            let mine = left.load(Relaxed) - 1;
            left.store(mine, Relaxed);
            zero("unlock", libc::pthread_mutex_unlock(mutex))?;
            if mine == 0 {
                zero("destroy", libc::pthread_mutex_destroy(mutex))?;
                self.end(turn);
            }
        }
        Ok(())
    }

    fn through_cond(&self, turn: usize, member: usize) -> Verdict {
        let cond = self.page(turn).cast::<pthread_cond_t>();
        let mutex = self.companion(turn);
        let Turn { waiting, free, .. } = &self.turns[turn];
        // SAFETY: the condition variable exists until it is destroyed here; the mutex lives on.
        unsafe {
            if member != 0 {
                zero("lock", libc::pthread_mutex_lock(mutex))?;
                waiting.fetch_add(1, SeqCst);
                while free.load(Relaxed) == 0 {
                    zero("wait", abi::pthread_cond_wait(cond, mutex))?;
                }
                return zero("unlock", libc::pthread_mutex_unlock(mutex));
            }
            // All other threads are in their waits, so they have released the mutex.
            while waiting.load(SeqCst) < self.members - 1 {
                crate::actor::let_others_run();
            }
            zero("lock", libc::pthread_mutex_lock(mutex))?;
            free.store(1, Relaxed);
            zero("broadcast", libc::pthread_cond_broadcast(cond))?;
            let with_mutex = turn.is_multiple_of(2);
            if !with_mutex {
                zero("unlock", libc::pthread_mutex_unlock(mutex))?;
            }
            // No thread is blocked on it any more.
            zero("destroy", libc::pthread_cond_destroy(cond))?;
            self.end(turn);
            if with_mutex {
                zero("unlock", libc::pthread_mutex_unlock(mutex))?;
            }
        }
        Ok(())
    }

    /// One thread posts as often as there are other threads. The last one let through destroys the
    /// semaphore.
    fn through_semaphore(&self, turn: usize, member: usize, leaves_out: bool) -> Verdict {
        let semaphore = self.page(turn).cast::<sem_t>();
        let Turn { left, .. } = &self.turns[turn];
        // SAFETY: it exists until all threads were let through, and all posts are done but the
        // last, which lets the last thread through.
        unsafe {
            if member == 0 {
                let posts = self.members - 1 - usize::from(leaves_out);
                for _ in 0..posts {
                    zero("sem_post", libc::sem_post(semaphore))?;
                }
                return Ok(());
            }
            while abi::sem_wait(semaphore) != 0 {
                let error = std::io::Error::last_os_error();
                if error.raw_os_error() != Some(libc::EINTR) {
                    return Err(format!("sem_wait: {error}"));
                }
            }
            // The poster counts too, and has not left.
            if left.fetch_sub(1, SeqCst) == 2 {
                zero("sem_destroy", libc::sem_destroy(semaphore))?;
                self.end(turn);
            }
        }
        Ok(())
    }

    /// The serial thread destroys it.
    fn through_barrier(&self, turn: usize) -> Verdict {
        let barrier = self.page(turn).cast();
        // SAFETY: made for all members.
        match unsafe { libc::pthread_barrier_wait(barrier) } {
            0 => Ok(()),
            libc::PTHREAD_BARRIER_SERIAL_THREAD => {
                // SAFETY: all threads have been released.
                zero("destroy", unsafe { libc::pthread_barrier_destroy(barrier) })?;
                self.end(turn);
                Ok(())
            }
            number => Err(format!("a barrier returned {number}")),
        }
    }

    /// The thread that unlocked last destroys it. That is known only after the unlock, so all count
    /// after it.
    fn through_rwlock(&self, turn: usize, writes: bool) -> Verdict {
        let lock = self.page(turn).cast::<pthread_rwlock_t>();
        // SAFETY: the lock exists until all threads have been through.
        unsafe {
            match writes {
                true => zero("wrlock", libc::pthread_rwlock_wrlock(lock))?,
                false => zero("rdlock", libc::pthread_rwlock_rdlock(lock))?,
            }
            zero("unlock", libc::pthread_rwlock_unlock(lock))?;
            if self.turns[turn].left.fetch_sub(1, SeqCst) == 1 {
                zero("destroy", libc::pthread_rwlock_destroy(lock))?;
                self.end(turn);
            }
        }
        Ok(())
    }
}

/// What a turn uses. Robust mutexes and those with a priority ceiling are left out, because they
/// are the C library's own.
fn some(dice: &mut fastrand::Rng, sorts: &[Sort]) -> What {
    match dice.u32(0..6) {
        0 | 1 => What::Mutex(sorts[dice.usize(0..sorts.len())]),
        2 | 3 => What::Cond(BellSort::some(dice)),
        4 if dice.bool() => What::Semaphore,
        4 => What::ReadWrite,
        _ => What::Barrier,
    }
}

pub(super) fn run(context: &'static Context) -> Verdict {
    let sorts: Vec<_> = Sort::mutexes()
        .filter(|sort| sort.made != Made::C11 && sort.protocol != Protocol::Protect)
        .filter(|sort| !sort.robust && sort.kind != Kind::ErrorChecking)
        .collect();
    let mut grounds: Vec<(Vec<Spot>, usize)> = Vec::new();
    while let Some(round) = context.next_round() {
        let mut dice = round.dice();
        let size = dice.usize(2..=round.threads.min(8));
        let groups = round.threads / size;
        while grounds.len() < groups {
            grounds.push(ground(context, grounds.len())?);
        }
        let turns = (TURNS / round.threads).max(PAGES * 2);
        let groups: Vec<Group> = grounds[..groups]
            .iter()
            .map(|(spots, pages)| Group {
                members: size,
                spots: spots.clone(),
                pages: std::ptr::with_exposed_provenance_mut(*pages),
                turns: (0..turns)
                    .map(|_| Turn {
                        what: some(&mut dice, &sorts),
                        left: AtomicUsize::new(size),
                        waiting: AtomicUsize::new(0),
                        free: AtomicUsize::new(0),
                        hidden: dice.bool(),
                    })
                    .collect(),
                gate: Box::into_raw(Box::new(
                    // SAFETY: overwritten by its initialiser just below.
                    unsafe { std::mem::zeroed() },
                )),
            })
            .collect();
        let groups = &groups;
        context.crew(round, |crew| {
            for (number, group) in groups.iter().enumerate() {
                // SAFETY: unused memory for a barrier.
                zero("pthread_barrier_init", unsafe {
                    abi::pthread_barrier_init(group.gate, std::ptr::null(), size as u32)
                })?;
                for member in 0..size {
                    crew.spawn("member", number * size + member, move |actor| {
                        for turn in 0..turns {
                            if member == 0 {
                                group.begin(turn)?;
                            }
                            // SAFETY: made for all members.
                            unsafe { libc::pthread_barrier_wait(group.gate) };
                            group.take(actor, turn, member)?;
                            actor.step();
                            // SAFETY: as above.
                            unsafe { libc::pthread_barrier_wait(group.gate) };
                        }
                        Ok(())
                    });
                }
            }
            Ok(())
        })?;
        for group in groups {
            (turns - PAGES..turns).try_for_each(|turn| group.rests(turn))?;
            // SAFETY: all threads have ended.
            unsafe {
                zero(
                    "pthread_barrier_destroy",
                    libc::pthread_barrier_destroy(group.gate),
                )?;
                drop(Box::from_raw(group.gate));
            }
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
