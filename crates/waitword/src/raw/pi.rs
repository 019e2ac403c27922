//! Operations with priority inheritance and plain ones on the same private word.
//!
//! The kernel has one queue for a word and returns EINVAL to an operation that reaches a waiter of
//! the other kind. Here the two kinds are queued in two places:
//!
//! | waits by | queued |
//! |----------|--------|
//! | WAIT, WAIT_BITSET, `futex_wait`, `futex_waitv` | in our table |
//! | ..., moved by REQUEUE, CMP_REQUEUE, `futex_requeue` | in our table, at the second word |
//! | LOCK_PI, LOCK_PI2 | in the kernel |
//! | WAIT_REQUEUE_PI | in the kernel |
//! | ..., moved by CMP_REQUEUE_PI | in the kernel, at the second word |
//!
//! So each operation looks in its own place first. Then it asks whether the other place has a
//! waiter of the other kind:
//!
//! | operation | its own place | asks for the other kind | the kernel's result |
//! |-----------|---------------|-------------------------|---------------------|
//! | WAKE, WAKE_BITSET, `futex_wake` | table | [`is_in_kernel`] (1) | EINVAL (2) |
//! | REQUEUE, CMP_REQUEUE, `futex_requeue` | table | the same for the first word (3) | the same |
//! | WAKE_OP | table | the same for both words (4) | EINVAL (5) |
//! | LOCK_PI, LOCK_PI2, TRYLOCK_PI | kernel | [`is_in_table`] | EDEADLK or EINVAL (6) |
//! | UNLOCK_PI | kernel | the same | EPERM if the caller does not hold the word, else EINVAL |
//! | CMP_REQUEUE_PI, the first word | kernel | the same (1) | EINVAL (7) |
//! | CMP_REQUEUE_PI, the second word | kernel | the same | EINVAL, if there is a waiter to move |
//!
//! 1. If it wants more than it found.
//! 2. The waiters found first are awake.
//! 3. The second word is not looked at.
//! 4. For the first word, then, if it compares, for the second.
//! 5. The second word is changed. If the EINVAL is for the first word, the second one's waiters
//!    sleep on.
//! 6. EDEADLK if the caller holds the word, else EINVAL.
//! 7. The waiters found first are moved.
//!
//! A wait looks for no waiters.
//!
//! # Both kinds on one word
//!
//! In this case the kernel goes by the order of arrival, which is not known here. Each operation
//! finds its own kind first and returns EINVAL if it wants more. So it finds all the waiters that
//! the kernel's operation would, and possibly more.
//!
//! The library also does not know which waiter CMP_REQUEUE_PI would move first. If that thread
//! holds the second word and plain waiters are queued there, the kernel returns EDEADLK and the
//! library EINVAL.
//!
//! # Cost
//!
//! In a process that never makes a PI wait, a wake that finds fewer waiters than it asked for loads
//! one flag. From the first wait with priority inheritance on ([`EVER`]), such a wake also asks the
//! kernel, as it would without this library. The library's own priority-inheriting locks do not set
//! the flag: no other operation meets their words.
//!
//! # Order
//!
//! A waiter that the caller knows to be waiting is found: one in the table was queued there before;
//! one in the kernel has set [`EVER`] before it was queued. If a waiter and an operation come at
//! the same time, either may be first. A plain waiter that is queued just after LOCK_PI has looked
//! is ordered after it, which may happen in the kernel too.

use super::call::{CLOCK_REALTIME, Call, PRIVATE_FLAG, private_word};
use crate::atomic::full_fence;
use crate::futex::{RawFutex, Scope, private};
use crate::private::{is_inside, waiter_table};
use crate::sys::tid::tid;
use crate::sys::{self, Errno};
use crate::word::{RawWakeOp, Size};
use core::cell::Cell;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

const LOCK_PI: i32 = 6;
const UNLOCK_PI: i32 = 7;
const TRYLOCK_PI: i32 = 8;
const WAIT_REQUEUE_PI: i32 = 11;
const CMP_REQUEUE_PI: i32 = 12;
const LOCK_PI2: i32 = 13;

/// Whether this process has ever asked the kernel for a wait with priority inheritance on a private
/// word.
static EVER: AtomicBool = AtomicBool::new(false);

/// Call before a wait with priority inheritance is passed to the kernel.
fn note_wait() {
    // Relaxed: if another thread has set it, that thread's fence and, further down, the kernel's
    // own make it known.
    if !EVER.load(Ordering::Relaxed) {
        EVER.store(true, Ordering::Relaxed);
        // A waker changes the word, makes a fence, and reads the flag. The kernel compares the word
        // after this fence.
        full_fence();
    }
}

/// Whether the kernel may have any waiter with priority inheritance.
#[inline]
fn may_be_in_kernel() -> bool {
    // Relaxed: read after the fence of the look at the table.
    EVER.load(Ordering::Relaxed)
}

/// Whether a waiter with priority inheritance is queued on this word.
#[cold]
fn is_in_kernel(word: RawFutex) -> bool {
    const REQUEUE: usize = 3;
    let address = word.word.address.expose_provenance();
    // A requeue of the word to itself. It moves and wakes no thread, and is refused if there is
    // such a waiter.
    let question = [address, REQUEUE | PRIVATE_FLAG as usize, 0, i32::MAX as usize, address, 0];
    // SAFETY: the kernel looks the address up and does not touch the word, which is aligned.
    let answer = unsafe { sys::futex_raw::raw(question) };
    answer == Err(Errno::INVAL)
}

/// Checks the number of waiters found in the place of plain waiters. Returns `count`.
///
/// # Errors
/// `EINVAL` if more were wanted and a waiter with priority inheritance is queued on the word.
#[inline]
pub(super) fn found(count: usize, wanted: usize, word: RawFutex) -> Result<usize, Errno> {
    let is_known_to_kernel =
        word.scope == Scope::Private && word.word.size == Size::U32 && !word.numa;
    if is_known_to_kernel && count < wanted && may_be_in_kernel() && is_in_kernel(word) {
        return Err(Errno::INVAL);
    }
    Ok(count)
}

/// WAKE_OP on private words.
///
/// # Errors
/// As [`found`], with the second word changed; those of the words' keys.
///
/// # Safety
/// The second word is mapped, aligned and writable; node words, if there are any, are mapped and
/// aligned.
pub(super) unsafe fn wake_op(
    first: RawFutex,
    count: usize,
    second: RawFutex,
    second_count: usize,
    op: RawWakeOp,
) -> Result<usize, Errno> {
    // SAFETY: this function's own contract.
    let (first_key, second_key) = unsafe { (first.key()?, second.key()?) };
    // Faults the word's page in before the buckets are locked.
    // SAFETY: this function's own contract.
    unsafe { second.word.load() };
    let compares = Cell::new(false);
    let change = || {
        // SAFETY: this function's own contract.
        let before = unsafe { op.apply(second.word) };
        compares.set(op.compares(before, second.word.size));
        compares.get()
    };
    // If the result for the first word is an error, the second word's waiters must not be woken.
    let is_refused = found(0, count, first).is_err();
    let first_pass = if is_refused { 0 } else { second_count };
    let waiters = waiter_table();
    let both = |of_first, of_second| (of_first, of_second);
    let words = [(first_key, count), (second_key, first_pass)];
    let (of_first, mut of_second) = private::wake_op(waiters, words, change, both);
    // Checked again after the change, which may have been of this word.
    found(of_first, count, first)?;
    if !compares.get() {
        return Ok(of_first);
    }
    if is_refused {
        of_second = private::wake(waiters, second_key, second_count, u64::MAX);
    }
    Ok(of_first + found(of_second, second_count, second)?)
}

/// Whether a plain waiter is queued on this word.
fn is_in_table(word: RawFutex) -> bool {
    // A handler that interrupted its own thread in a bucket section cannot look.
    if is_inside() {
        return false;
    }
    // SAFETY: there is no node word.
    let Ok(key) = (unsafe { word.key() }) else {
        return false;
    };
    let waiter_table = waiter_table();
    waiter_table.find_waiters(key).is_some() && waiter_table.lock_queue(key).has_waiters()
}

/// Whether the word has plain waiters and no others: then an operation with priority inheritance
/// must not add to them. If the word cannot be read (waiters can be moved to such a word), the
/// kernel reports that.
fn is_plain(word: RawFutex) -> bool {
    is_in_table(word) && is_readable(word) && !(may_be_in_kernel() && is_in_kernel(word))
}

fn is_readable(word: RawFutex) -> bool {
    const CMP_REQUEUE: usize = 4;
    let address = word.word.address.expose_provenance();
    let question = [address, CMP_REQUEUE | PRIVATE_FLAG as usize, 0, 0, address, 0];
    // SAFETY: the call wakes and moves no thread; the kernel reads the word, if it can.
    let answer = unsafe { sys::futex_raw::raw(question) };
    answer != Err(Errno::FAULT)
}

/// The result of an operation with priority inheritance on private words, if plain waiters
/// determine it. `None`, also for all other operations: the kernel determines it and must be asked.
///
/// # Safety
/// As [`futex`](super::futex).
pub(super) unsafe fn answer(call: &Call) -> Option<Result<usize, Errno>> {
    let by_wall_clock = call.op & CLOCK_REALTIME != 0;
    let word = private_word(call.uaddr);
    match (call.op & !CLOCK_REALTIME) ^ PRIVATE_FLAG {
        // The kernel refuses this flag here.
        LOCK_PI | TRYLOCK_PI | UNLOCK_PI if by_wall_clock => None,
        command @ (LOCK_PI | LOCK_PI2 | TRYLOCK_PI) => {
            let is_wait = command != TRYLOCK_PI;
            if is_wait {
                note_wait();
            }
            // SAFETY: called only if the word is plain. Then it was readable, and aligned, since
            // waiters are queued on it.
            let refused = || match unsafe { is_held_by_caller(word) } {
                true => Errno::DEADLK,
                false => Errno::INVAL,
            };
            let time = if is_wait { call.timeout_or_val2 } else { 0 };
            is_plain(word).then(|| Err(wrong_with_time(time).unwrap_or_else(refused)))
        }
        UNLOCK_PI => {
            // SAFETY: the word is mapped and aligned, by this function's own contract.
            let refused = || match unsafe { is_held_by_caller(word) } {
                true => Errno::INVAL,
                false => Errno::PERM,
            };
            is_plain(word).then(|| Err(refused()))
        }
        WAIT_REQUEUE_PI => {
            note_wait();
            None
        }
        // SAFETY: this function's own contract.
        CMP_REQUEUE_PI if !by_wall_clock => Some(unsafe { cmp_requeue(call) }),
        _ => None,
    }
}

/// Whether the calling thread holds the word, according to its value.
///
/// # Safety
/// It is mapped and aligned.
unsafe fn is_held_by_caller(word: RawFutex) -> bool {
    const TID_MASK: u64 = 0x3fff_ffff;
    // SAFETY: this function's own contract.
    unsafe { word.word.load() & TID_MASK == tid().into() }
}

/// A word without waiters that no waiter asks to be moved to. Always 0.
static NOWHERE: AtomicU32 = AtomicU32::new(0);

/// The kernel's error for the time of a wait, if there is one: it is checked before the word.
fn wrong_with_time(time: usize) -> Option<Errno> {
    const WAIT_BITSET: usize = 9;
    if time == 0 {
        return None;
    }
    let wait = WAIT_BITSET | PRIVATE_FLAG as usize;
    let another_value = 1;
    let word = NOWHERE.as_ptr().expose_provenance();
    let question = [word, wait, another_value, time, 0, u32::MAX as usize];
    // SAFETY: the kernel reads the time, if it can, and the word, which is ours.
    let answer = unsafe { sys::futex_raw::raw(question) };
    answer.err().filter(|&error| error != Errno::AGAIN)
}

/// CMP_REQUEUE_PI between private words.
///
/// # Safety
/// As [`futex`](super::futex).
unsafe fn cmp_requeue(call: &Call) -> Result<usize, Errno> {
    let [from, to] = [call.uaddr, call.uaddr2].map(private_word);
    let is_refused = call.uaddr != call.uaddr2 && is_plain(to);
    // If the target has plain waiters, ask the kernel to move to `NOWHERE` instead. No waiter waits
    // to be moved there, so the kernel refuses (EINVAL) to move one, and checks everything else as
    // usual.
    let call = Call { uaddr2: if is_refused { NOWHERE.as_ptr() } else { call.uaddr2 }, ..*call };
    // SAFETY: this function's own contract; `NOWHERE` is a word of ours.
    let moved = unsafe { call.send()? };
    let wanted = (call.timeout_or_val2 as i32 as usize).saturating_add(1);
    if moved < wanted && is_in_table(from) {
        return Err(Errno::INVAL);
    }
    Ok(moved)
}
