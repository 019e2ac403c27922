//! The recorder: what a thread does when a wait has ended.
//!
//! ```text
//!   began = begin()             the time, if this process records
//!   ...                         the wait
//!   end(began, what)            shorter than the threshold: nothing
//!                               not drawn (`sampling.rs`): nothing
//!                               walk the stack; write it, if it is new; write the wait
//!                               ring half full: append it to the records file
//! ```
//!
//! # Rules
//!
//! * No heap, no lock of the program's, no function of the dynamic loader.
//! * `errno` is as before.
//! * A handler that interrupts the recorder in its own thread does not record: its wait is counted
//!   as lost.
//! * A forked child records into files of its own. It is recognized by its *process number*, which
//!   the caller passes: any number but 0 that differs between a process and its forked children.

use crate::budget::Budget;
use crate::chain::{Chain, Waited};
use crate::control;
use crate::duty::has_rested;
use crate::files::time;
use crate::format::{
    CELLS, Causes, Ended, Header, Hold, MOST_FRAMES, Object, PRIORITY_AGAIN, Ring, Tag, Wait,
    cells_of_stack, stack_cells,
};
use crate::holders::{self, By, Shares};
use crate::recording::{self, Recording, is_on, threshold};
use crate::ring::Writer;
use crate::sampling::Sampling;
use crate::stacks::{self, Known};
use crate::sums::Sums;
use crate::switches::{Changed, Spent, Switches};
use crate::ticks::Clock;
use crate::unwind::{self, Bounds, walk};
use core::cell::Cell;
use core::ptr::{self, NonNull};
use core::sync::atomic::Ordering;

/// What is recorded of a wait.
#[derive(Clone, Copy, Debug)]
pub struct What {
    /// What the thread waited for.
    pub object: Object,
    /// Its address.
    pub address: u64,
    /// How the wait ended.
    pub ended: Ended,
}

/// When a wait began.
#[derive(Clone, Copy, Debug)]
pub struct Began {
    at: u64,
    /// How often the lock had been released before.
    releases: u64,
}

/// What a thread keeps for its recording.
struct Thread {
    /// Null: it has none.
    ring: Cell<*const Ring>,
    /// The recording that the ring belongs to, and its process.
    recording: Cell<*const Recording>,
    process: Cell<u32>,
    is_recording: Cell<bool>,
    bounds: Bounds,
    switches: Switches,
    sums: Sums,
    chain: Chain,
    sampling: Sampling,
    clock: Clock,
}

std::thread_local! {
    // No destructor: it would be registered with the C library.
    static THREAD: Thread = const {
        Thread {
            ring: Cell::new(ptr::null()),
            recording: Cell::new(ptr::null()),
            process: Cell::new(0),
            is_recording: Cell::new(false),
            bounds: Bounds::new(),
            switches: Switches::new(),
            sums: Sums::new(),
            chain: Chain::new(),
            sampling: Sampling::new(),
            clock: Clock::new(),
        }
    };
}

/// A thread begins to wait, for ever or until a deadline. `None` if waits are not recorded.
pub fn begin(process: u32, object: Object, address: u64, has_deadline: bool) -> Option<Began> {
    is_on().then(|| {
        // Before the time: the first one is made here.
        let ring = my_ring(process);
        let now = now();
        if let Some(ring) = ring {
            ring.begin_wait(object, address, has_deadline, now);
        }
        let releases = match object.is_lock() {
            true => holders::wanted(address, now),
            false => u64::MAX,
        };
        Began { at: now, releases }
    })
}

/// Records a wait that has ended now.
pub fn end(process: u32, began: Began, what: &What) {
    let now = now();
    if what.object.is_lock() {
        holders::had(what.address);
        if what.ended == Ended::Got && what.object != Object::Read {
            holders::taken(what.address, || now);
        }
    }
    ended(process);
    if is_recorded(began, now) {
        keeping_errno(|| {
            with_ring(process, |thread, writer| thread.write_wait(writer, began, now, what));
        });
    }
}

/// Records a wait at a condition variable that has ended now. If other threads kept this mutex for
/// longer than the threshold after the signal, the time from then on is a wait for the mutex.
pub fn end_at_condvar(process: u32, began: Began, what: &What, mutex: u64) {
    let now = now();
    ended(process);
    holders::taken(mutex, || now);
    if !is_recorded(began, now) {
        return;
    }
    // The last signal: with several waiters, this one may have been signalled before.
    let signalled = holders::between(what.address, began.at, now, began.releases).last_at;
    let released = holders::between(mutex, signalled.max(began.at), now, u64::MAX).last_at;
    let is_contended = what.ended == Ended::Got
        && signalled != 0
        && released.saturating_sub(signalled) >= threshold();
    let signalled = if is_contended { signalled } else { now };
    keeping_errno(|| {
        with_ring(process, |thread, writer| {
            thread.write_wait(writer, began, signalled, what);
            let at_mutex = What { object: Object::Mutex, address: mutex, ended: Ended::Got };
            let began = Began { at: signalled, releases: u64::MAX };
            thread.write_wait(writer, began, now, &at_mutex);
        });
    });
}

/// Whether a wait that began and ended at these times leaves a record.
#[inline]
fn is_recorded(began: Began, now: u64) -> bool {
    if !is_on() {
        return false;
    }
    control::look_for_beats(now);
    now.saturating_sub(began.at) >= threshold()
}

fn ended(process: u32) {
    if let Some(ring) = my_ring(process) {
        ring.end_wait();
    }
}

/// How a thread takes a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Take {
    /// With others.
    pub to_read: bool,
    /// It has waited, or other threads wait.
    pub is_contended: bool,
}

/// Notes that the calling thread has taken a lock.
#[inline]
pub fn take(process: u32, address: u64, how: Take) {
    my_ring(process);
    take_at_once(process, address, how);
}

/// [`take`] if the thread has recorded something before. Returns false if not, and nothing has been
/// done. The caller may be left in the middle of this call.
#[inline]
pub fn take_at_once(process: u32, address: u64, how: Take) -> bool {
    THREAD.with(|thread| {
        let Some(ring) = thread.ring_in(process) else { return false };
        ring.hold(address, how.to_read);
        ring.count_turn(address);
        if how.is_contended && !how.to_read {
            holders::taken(address, || thread.clock.now());
        }
        true
    })
}

/// As [`take`], for a caller that does not see every thread take its locks, and that has no lock
/// more than once. Turns are not counted, because threads are compared by them. More locks than
/// there is room for are not counted either: [`release`] would take others for them.
///
/// Nothing happens if the thread has recorded nothing yet. So this makes no file, and as with
/// [`release`], nothing that it calls can be cancelled.
#[inline]
pub fn hold(process: u32, address: u64) {
    if let Some(ring) = made_ring(process) {
        ring.hold_once(address);
        holders::taken(address, now);
    }
}

/// Notes that the calling thread is about to release a lock. Returns whether it was known to hold
/// it.
#[inline]
pub fn release(process: u32, address: u64) -> bool {
    // Without a ring it is known to hold nothing.
    made_ring(process).is_some_and(|ring| ring.release(address))
}

/// For looks at holds: where the holder is, and how it spent the time. Long holds are looked at in
/// any case.
static LOOKS: Budget = Budget::new();

/// Notes that the calling thread is about to release a lock that other threads wait for: their
/// waits are charged to it. `hands_over`: no other thread can take the lock before the waiter that
/// it is kept for.
///
/// Also call this before a condition variable is signalled, with its address: waits there show
/// which thread signalled last, and when.
pub fn note_release(process: u32, address: u64, hands_over: bool) {
    keeping_errno(|| {
        with_ring(process, |thread, writer| {
            let now = time(libc::CLOCK_MONOTONIC);
            let since = holders::kept_since(address).map(|since| since.min(now));
            let mut by = By { thread: writer.thread(), ..By::default() };
            if let Some(since) = since {
                writer.ring().count_turns_at(address, now);
                by.shares = thread.spent(since, now).map_or_else(Shares::default, Shares::of);
                by.shares.call = writer.ring().call_since(since);
            }
            match since.and_then(|since| thread.chain.most_of(since, now)) {
                // Charged to the end of the chain.
                Some(Waited { address, by: last, .. }) if last.thread != 0 => {
                    by = By { next: address, ..last };
                }
                waited => {
                    by.next = waited.map_or(0, |waited| waited.address);
                    by.stack = write_stack(thread, writer);
                }
            }
            if let Some(since) = since.filter(|since| now - since >= threshold()) {
                let stack = if by.next == 0 { by.stack } else { write_stack(thread, writer) };
                let mut hold = Hold::new(stack, since, now - since, address);
                hold.running = by.shares.running;
                hold.preempted = by.shares.preempted;
                hold.asleep = by.shares.asleep;
                hold.call = by.shares.call;
                writer.write(hold.to_cell());
            }
            holders::note(address, since, now, writer.thread(), by, hands_over);
            thread.look_at_switches(writer, now);
            LOOKS.spend(now, time(libc::CLOCK_MONOTONIC));
        });
    });
}

/// [`note_release`] of a lock that was kept for less than the threshold, if the budget does not
/// allow a look at it. Returns false if not, and nothing has been done. The caller may be left in
/// the middle of this call.
#[inline]
pub fn note_release_at_once(process: u32, address: u64, hands_over: bool) -> bool {
    THREAD.with(|thread| {
        let ring = thread.ring_in(process);
        ring.is_some_and(|ring| thread.note_short(ring, address, hands_over))
    })
}

/// [`note_release_at_once`], if threads wait (`hands_over`), and [`release`] of the lock that the
/// thread has taken last. Returns false if that is not enough, and nothing has been done. The
/// caller may be left in the middle of this call.
#[inline]
pub fn release_at_once(process: u32, address: u64, hands_over: Option<bool>) -> bool {
    THREAD.with(|thread| {
        let Some(ring) = thread.ring_in(process) else { return false };
        let is_noted = |hands_over| thread.note_short(ring, address, hands_over);
        let is_done = ring.has_taken_last(address) && hands_over.is_none_or(is_noted);
        if is_done {
            ring.release_last();
        }
        is_done
    })
}

impl Thread {
    /// See [`note_release_at_once`].
    #[inline]
    fn note_short(&self, ring: &Ring, address: u64, hands_over: bool) -> bool {
        let now = self.clock.now();
        let since = holders::kept_since(address).unwrap_or(now);
        let is_long = now.saturating_sub(since) >= threshold();
        if is_long || LOOKS.allows(now) {
            return false;
        }
        // Relaxed: only this thread writes it.
        holders::note_last(address, now, ring.thread.load(Ordering::Relaxed), hands_over)
    }

    /// Writes a wait that ended at `end`, if it is long enough and drawn.
    fn write_wait(&self, writer: &mut Writer<'_>, began: Began, end: u64, what: &What) {
        let &What { object, address, ended } = what;
        let took = end.saturating_sub(began.at);
        if took < threshold() {
            return;
        }
        self.look_at_switches(writer, end);
        let kept = holders::between(address, began.at, end, began.releases);
        let mut by = By::default();
        if took >= PRIORITY_AGAIN {
            writer.ring().note_priority();
        }
        if object.is_lock() {
            writer.ring().count_turns_at(address, end);
            by = kept.longest;
            self.chain.note(Waited { address, began: began.at, ended: end, by });
            if !self.switches.are_shown() {
                _ = self.sums.read(end);
            }
        }
        let Some(weight_shift) = self.sampling.takes(end, threads(writer.header())) else {
            return;
        };
        let stack = write_stack(self, writer);
        let sleeps = self.switches.between(began.at, end).map_or(0, |spent| spent.sleeps);
        let ended = match ended {
            Ended::Got if kept.handed_over => Ended::HandedOver,
            ended => ended,
        };
        writer.write(
            Wait {
                tag: Tag::Wait as u8,
                object: object as u8,
                ended: ended as u8,
                weight_shift,
                stack,
                began: began.at,
                took,
                address,
                holder: by.thread,
                holder_stack: by.stack,
                waker: kept.last,
                in_vain: sleeps.saturating_sub(1).min(u32::from(u16::MAX)) as u16,
                passed: if object.is_lock() { kept.passed } else { 0 },
                running: by.shares.running,
                preempted: by.shares.preempted,
                asleep: by.shares.asleep,
                call: by.shares.call,
                next: by.next,
            }
            .to_cell(),
        );
    }

    /// How the thread spent the time between these two.
    fn spent(&self, since: u64, now: u64) -> Option<Spent> {
        match self.switches.are_shown() {
            true => self.switches.between(since, now),
            false => self.sums.since(since, now),
        }
    }

    /// Notes that causes come from sums, if there are any, until a ring shows switches.
    fn note_sums(&self, header: &Header) {
        if self.sums.read(time(libc::CLOCK_MONOTONIC)).is_some() {
            // Relaxed, as below: it says nothing of other fields.
            header.causes.fetch_max(Causes::Sums as u32, Ordering::Relaxed);
        }
    }

    fn look_at_switches(&self, writer: &Writer<'_>, now: u64) {
        let header = writer.header();
        match self.switches.look(now, threads(header) as usize) {
            Some(Changed::Begun) if !has_rested() => {
                header.causes.store(Causes::Switches as u32, Ordering::Relaxed);
            }
            // The coarsest of its threads.
            Some(Changed::Rests) => self.note_sums(header),
            _ => {}
        }
    }

    /// Its ring in this process.
    #[inline]
    fn ring_in(&self, process: u32) -> Option<&'static Ring> {
        match self.belongs_to(process, recording::last()) {
            // SAFETY: null, or a ring that was mapped by this process, and is never unmapped.
            true => unsafe { self.ring.get().as_ref() },
            false => None,
        }
    }

    #[inline]
    fn belongs_to(&self, process: u32, recording: *const Recording) -> bool {
        self.process.get() == process && ptr::eq(self.recording.get(), recording)
    }
}

/// The calling thread's clock.
#[inline]
fn now() -> u64 {
    THREAD.with(|thread| thread.clock.now())
}

/// The number of threads that record, about: a ring is used again when its thread has ended.
fn threads(header: &Header) -> u64 {
    // Relaxed: only a number.
    header.rings.load(Ordering::Relaxed).into()
}

/// The calling thread's ring, if it has one.
#[inline]
fn made_ring(process: u32) -> Option<&'static Ring> {
    THREAD.with(|thread| thread.ring_in(process))
}

/// The calling thread's ring; made, if it has none yet.
#[inline]
fn my_ring(process: u32) -> Option<&'static Ring> {
    /// Out of line: once for each thread.
    #[cold]
    fn make(process: u32) {
        keeping_errno(|| with_ring(process, |_, _| {}));
    }
    THREAD.with(|thread| {
        thread.ring_in(process).or_else(|| {
            if is_on() && !thread.belongs_to(process, recording::last()) {
                make(process);
            }
            thread.ring_in(process)
        })
    })
}

/// Appends the calling thread's cells to the records file, and the process's maps to theirs. Call
/// this before the process ends; what other threads have not appended is in their rings.
pub fn finish(process: u32) {
    if !is_on() {
        return;
    }
    keeping_errno(|| {
        with_ring(process, |_, writer| writer.flush());
        if let Some(recording) = recording::of_process(process) {
            recording.note_maps();
        }
    });
}

/// Calls `work` with the calling thread's ring. If there is none, or a handler has interrupted such
/// a call, counts that.
fn with_ring(process: u32, work: impl FnOnce(&Thread, &mut Writer<'_>)) {
    let Some(recording) = recording::of_process(process) else {
        return;
    };
    let header = recording.header();
    THREAD.with(|thread| {
        if thread.is_recording.replace(true) {
            header.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        if !thread.belongs_to(process, recording) {
            let before = thread.ring.replace(ptr::null());
            // (A parent's ring is left alone.)
            let is_mine = thread.process.get() == process;
            let before = NonNull::new(before.cast_mut()).filter(|_| is_mine);
            // Otherwise it tries again the next time.
            if let Ok(ring) = recording.take_ring(process, before) {
                // SAFETY: a ring of this process is never unmapped.
                if let Some(ring) = ring.map(|ring| unsafe { ring.as_ref() }) {
                    // Relaxed: only this thread begins it.
                    let number = ring.number.load(Ordering::Relaxed) as usize;
                    thread.switches.set_place(number, time(libc::CLOCK_MONOTONIC));
                    thread.note_sums(header);
                }
                thread.ring.set(ring.map_or(ptr::null(), |ring| ring.as_ptr().cast_const()));
                thread.recording.set(recording);
                thread.process.set(process);
            }
        }
        match thread.ring.get().is_null() {
            false => {
                let names = recording.names();
                // SAFETY: a ring of this process, which this thread alone writes, followed by its
                // cells; never unmapped.
                let mut writer = unsafe { Writer::new(thread.ring.get(), names, header) };
                work(thread, &mut writer);
                writer.flush_if_half_full();
            }
            true => _ = header.unheard.fetch_add(1, Ordering::Relaxed),
        }
        if unwind::has_new_modules() {
            recording.note_maps();
        }
        thread.is_recording.set(false);
    });
}

fn write_stack(thread: &Thread, writer: &mut Writer<'_>) -> u32 {
    let mut frames = [0; MOST_FRAMES];
    let len = walk(&thread.bounds, &mut frames);
    let frames = &frames[..len];
    let hash = stacks::hash(frames);
    match stacks::number(hash) {
        Known::Before(number) => number,
        Known::New(number) => {
            writer.write_all(cells_of_stack(len), stack_cells(number, hash, frames));
            number
        }
        Known::Full => {
            writer.header().stacks_lost.fetch_add(1, Ordering::Relaxed);
            0
        }
    }
}

fn keeping_errno(work: impl FnOnce()) {
    // SAFETY: the calling thread's own variable.
    let number = unsafe { *libc::__errno_location() };
    work();
    // SAFETY: the calling thread's own variable, whose address is the same as above.
    unsafe { *libc::__errno_location() = number };
}

const _: () = assert!(CELLS > 2 * (MOST_FRAMES / 8 + 2));
