//! A team: some threads that start, use one object of each type for a while, and end; and where its
//! objects lie.

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use std::cell::Cell;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::thread::Builder;
use std::time::Duration;
use waitword::{
    AutoEvent, Barrier, Condvar, Deadline, Event, Futex, Latch, Mutex, Once, Op, RwLock, Scope,
    Semaphore, WakeOp, probe, wait_any,
};

/// What is left behind on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leak {
    Memory,
    Mapping,
    /// A thread that waits forever.
    Waiter,
}

const PAGE: usize = 4096;
/// As many pages as there may be teams: each has its objects where no other team's were.
const PAGES: usize = 1 << 18;

/// Address space for the objects of all teams.
pub(crate) struct Ground {
    start: *mut u8,
    used: AtomicUsize,
}

// SAFETY: each page is handed out only once.
unsafe impl Sync for Ground {}

/// One object of each type, in a page of its own.
struct Objects {
    threads: u32,
    once: Once,
    barrier: Barrier,
    shared_barrier: Barrier,
    latch: Latch,
    mutex: Mutex<u64>,
    rwlock: RwLock<u64>,
    next: Mutex<u32>,
    turned: Condvar,
    tokens: [Semaphore; 2],
    shared_tokens: Semaphore,
    event: Event,
    auto_event: AutoEvent,
    narrow: AtomicU8,
    word: AtomicU32,
    wide: AtomicU64,
    elsewhere: AtomicU32,
    shared: AtomicU32,
    unused: AtomicU32,
}

const _: () = assert!(size_of::<Objects>() <= PAGE);

impl Objects {
    fn new(threads: u32) -> Self {
        Self {
            threads,
            once: Once::new(),
            barrier: Barrier::new(threads),
            shared_barrier: Barrier::with_scope(threads, Scope::Shared),
            latch: Latch::new(threads),
            mutex: Mutex::new(0),
            rwlock: RwLock::new(0),
            next: Mutex::new(0),
            turned: Condvar::new(),
            tokens: [const { Semaphore::new(0) }; 2],
            shared_tokens: Semaphore::with_scope(0, Scope::Shared),
            event: Event::new(),
            auto_event: AutoEvent::new(),
            narrow: AtomicU8::new(0),
            word: AtomicU32::new(0),
            wide: AtomicU64::new(0),
            elsewhere: AtomicU32::new(0),
            shared: AtomicU32::new(0),
            unused: AtomicU32::new(0),
        }
    }
}

impl Ground {
    pub(crate) fn new() -> Self {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a mapping of its own, at an address that the kernel chooses.
        let start = unsafe {
            let start = mmap_anonymous(std::ptr::null_mut(), PAGES * PAGE, access, flags);
            let start = start.expect("address space");
            // Each page must be freed by itself. A kernel without huge pages does not know this
            // advice.
            let _ = madvise(start, PAGES * PAGE, Advice::LinuxNoHugepage);
            start
        };
        Self { start: start.cast(), used: AtomicUsize::new(0) }
    }

    /// `size` threads use a new set of objects. Returns how many operations they made.
    pub(crate) fn team(&self, size: usize, number: u64, leak: Option<Leak>) -> u64 {
        let page = self.used.fetch_add(1, SeqCst);
        assert!(page < PAGES, "more teams than pages");
        // SAFETY: inside the mapping, and this team's alone.
        let place = unsafe { self.start.add(page * PAGE) }.cast::<Objects>();
        // SAFETY: as above; aligned to a page.
        let objects: &Objects = unsafe {
            place.write(Objects::new(size as u32));
            &*place
        };
        let turns = if size == 2 { 4 } else { 2 };
        let operations = std::thread::scope(|scope| {
            let work = |member| move || Member::new(objects, member).work(turns);
            let members: Vec<_> = (0..size as u32)
                .map(|member| {
                    // An unoptimized `wait_any` takes 60 KiB with some compilers.
                    let builder = Builder::new().stack_size(128 << 10);
                    builder.spawn_scoped(scope, work(member)).expect("a thread")
                })
                .collect();
            let done = members.into_iter().map(|member| member.join().expect("no panic"));
            done.sum()
        });
        match leak {
            None => {}
            Some(Leak::Memory) => drop(std::hint::black_box(vec![1u8; 256 << 10].leak())),
            Some(Leak::Mapping) => (0..4).for_each(|one| leave_a_mapping(number + one)),
            Some(Leak::Waiter) if number % 64 == 0 => leave_a_waiter(),
            Some(Leak::Waiter) => {}
        }
        // SAFETY: all members have ended; the page is not used again.
        unsafe {
            place.drop_in_place();
            madvise(place.cast(), PAGE, Advice::LinuxDontNeed).expect("a page of ours");
        }
        operations
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`, and no team is left.
        unsafe { munmap(self.start.cast(), PAGES * PAGE) }.expect("a mapping of ours");
    }
}

fn leave_a_mapping(number: u64) {
    // Different from its neighbour, or the kernel would merge the two.
    let access = match number % 2 {
        0 => ProtFlags::READ,
        _ => ProtFlags::READ | ProtFlags::WRITE,
    };
    // SAFETY: as above.
    unsafe { mmap_anonymous(std::ptr::null_mut(), PAGE, access, MapFlags::PRIVATE) }
        .expect("a page");
}

fn leave_a_waiter() {
    static FOR_EVER: AtomicU32 = AtomicU32::new(0);
    let builder = Builder::new().stack_size(64 << 10);
    builder.spawn(|| while Futex::private(&FOR_EVER).wait(0).is_ok() {}).expect("a thread");
}

/// A member of a team, and how many operations it has made.
struct Member<'a> {
    objects: &'a Objects,
    number: u32,
    operations: Cell<u64>,
}

impl<'a> Member<'a> {
    fn new(objects: &'a Objects, number: u32) -> Self {
        Self { objects, number, operations: Cell::new(0) }
    }

    fn count(&self, operations: u64) {
        self.operations.set(self.operations.get() + operations);
    }

    fn work(self, turns: u32) -> u64 {
        let o = self.objects;
        o.once.call_once(|| ());
        for turn in 0..turns {
            self.short_sections();
            self.nobody_there();
            self.barriers();
            self.condvar(turn);
            match (o.threads, self.number) {
                (2, 0) => self.sleeps(turn),
                (2, _) => self.wakes(turn),
                _ => {}
            }
        }
        o.latch.arrive_and_wait().expect("each arrives once");
        self.count(2);
        self.operations.get()
    }

    /// Locks, mostly without waiting.
    fn short_sections(&self) {
        const SECTIONS: u64 = 40;
        let o = self.objects;
        for section in 0..SECTIONS {
            *o.mutex.lock() += 1;
            let _ = o.mutex.try_lock().map(|mut value| *value += 1);
            let _ = *o.rwlock.read();
            if section % 16 == 0 {
                *o.rwlock.write() += 1;
                drop(o.rwlock.upgradable_read());
            }
            let past = Duration::ZERO;
            let _ = o.mutex.try_lock_for(past).map(drop);
            let _ = o.rwlock.try_write_for(past).map(drop);
        }
        // Each is taken and released.
        self.count(SECTIONS * 10);
    }

    /// Wakes without waiters, waits that do not sleep, waits whose deadline passed before they
    /// began.
    fn nobody_there(&self) {
        const TIMES: u64 = 10;
        let o = self.objects;
        let past = Deadline::after(Duration::ZERO);
        for _ in 0..TIMES {
            let never = AtomicU64::new(7);
            let never = Futex::private(&never);
            let _ = never.wake(usize::MAX);
            let _ = never.wait(8);
            let _ = never.wait_until(7, past);
            let _ = never.requeue(Futex::private(&o.elsewhere), 1, 1);
            let _ = wait_any(&[never.expecting(7), never.expecting(7)], Some(past));
            let _ = o.tokens[0].wait_until(past) && o.tokens[0].post().is_ok();
            let _ = o.auto_event.wait_until(past);
            let _ = o.event.wait_until(past);
            let mut next = o.next.lock();
            let _ = o.turned.wait_for(&mut next, Duration::ZERO);
        }
        self.count(TIMES * 10);
    }

    fn barriers(&self) {
        self.objects.barrier.wait();
        let _ = self.objects.barrier.wait_for(Duration::ZERO);
        self.objects.shared_barrier.wait();
        self.count(3);
    }

    /// One after another, each signalling the next.
    fn condvar(&self, turn: u32) {
        let o = self.objects;
        let mine = turn * o.threads + self.number;
        let mut next = o.next.lock();
        while *next != mine {
            o.turned.wait(&mut next);
            self.count(1);
        }
        *next += 1;
        o.turned.notify_all();
        drop(next);
        self.count(3);
    }

    /// The member of two that mostly waits.
    fn sleeps(&self, turn: u32) {
        let o = self.objects;
        let next = turn + 1;
        for _ in 0..2 {
            o.tokens[0].wait();
            let _ = o.tokens[1].post();
            o.shared_tokens.wait();
        }
        // Moved to another word, changed, and woken there.
        while o.word.load(SeqCst) != next {
            let _ = Futex::private(&o.word).wait(turn);
            self.count(1);
        }
        while u32::from(o.narrow.load(SeqCst)) != next % 256 {
            let words = [
                Futex::private(&o.narrow).expecting(turn as u8),
                Futex::private(&o.wide).expecting(0),
                Futex::shared(&o.unused).expecting(0),
            ];
            let with_shared = turn % 2 == 1 && probe::futex_waitv().is_there();
            let _ = wait_any(if with_shared { &words } else { &words[..2] }, None);
            self.count(1);
        }
        while o.shared.load(SeqCst) != next {
            let _ = Futex::shared(&o.shared).wait(turn);
            self.count(1);
        }
        o.event.wait();
        o.auto_event.wait();
        o.barrier.wait();
        o.event.reset();
        self.count(10);
    }

    /// The other member.
    fn wakes(&self, turn: u32) {
        let o = self.objects;
        let next = turn + 1;
        for _ in 0..2 {
            let _ = o.tokens[0].post();
            o.tokens[1].wait();
            let _ = o.shared_tokens.post();
        }
        let (word, elsewhere) = (Futex::private(&o.word), Futex::private(&o.elsewhere));
        let _ = word.requeue(elsewhere, 0, 1);
        let set = WakeOp::new(Op::Set, next);
        let _ = elsewhere.wake_op(1, word, 1, set);
        let _ = (elsewhere.wake(1), word.wake(1));
        o.narrow.store(next as u8, SeqCst);
        let _ = Futex::private(&o.narrow).wake(1);
        o.shared.store(next, SeqCst);
        let _ = Futex::shared(&o.shared).wake(1);
        o.event.set();
        o.auto_event.set();
        o.barrier.wait();
        self.count(15);
    }
}
