//! Whether memory is mapped, without a SIGSEGV if it is not.
//!
//! The kernel returns EFAULT for a word that is not mapped, and programs that test it expect that.
//! Asking it costs a system call, which serving futexes here is meant to save. So each positive
//! answer is cached, by page, and a word on a known page costs one load.
//!
//! | event | result |
//! |-------|--------|
//! | an address that was never valid | the kernel's: EFAULT |
//! | a page seen and then unmapped or protected | SIGSEGV, until another replaces it in the list |
//!
//! The kernel is asked by futex(2) itself, which a sandbox that allows futexes also allows:
//! FUTEX_CMP_REQUEUE of no waiters, which reads the word; FUTEX_WAKE_OP that adds nothing, which
//! writes it. The only waiters in the kernel on a private word are those with priority inheritance,
//! which neither operation wakes.

use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use syscalls::{Errno, Sysno, syscall6};

const PAGE_SHIFT: u32 = 12;
const PAGE: usize = 1 << PAGE_SHIFT;

/// How many pages are remembered. 4 KiB in all.
const REMEMBERED: usize = 512;

/// Pages that were mapped: the page's number, shifted by one; the lowest bit means that it can be
/// written. 0: none.
static SEEN: [AtomicUsize; REMEMBERED] = [const { AtomicUsize::new(0) }; REMEMBERED];

const WRITABLE: usize = 1;

/// Where a page is remembered: neighbours side by side, distant ones spread.
fn place(page: usize) -> &'static AtomicUsize {
    const GOLDEN: usize = 0x9e37_79b9_7f4a_7c15;
    let far = (page >> 6).wrapping_mul(GOLDEN) >> 32;
    &SEEN[(page ^ far) % REMEMBERED]
}

/// Whether these bytes can be read. The address may be arbitrary; `length` is less than a page.
#[inline]
pub(crate) fn is_readable(address: usize, length: usize) -> bool {
    let Some(last) = address.checked_add(length.saturating_sub(1)) else {
        return false;
    };
    page_is_readable(address) && (address / PAGE == last / PAGE || page_is_readable(last))
}

/// Whether a word can be read, asking the kernel. The address may be arbitrary.
pub(crate) fn can_be_read(address: usize) -> bool {
    ask_to_read(address & !3)
}

/// Whether a word of 32 bits can be read. Misaligned addresses are not checked here: they are
/// refused later.
#[inline]
pub(crate) fn word_is_readable(address: usize) -> bool {
    page_is_readable(address)
}

/// Whether a word of 32 bits can be written.
pub(crate) fn word_is_writable(address: usize) -> bool {
    let page = address >> PAGE_SHIFT;
    let place = place(page);
    // Relaxed: the cached value is only a hint, and orders no memory.
    if place.load(Relaxed) == page << 1 | WRITABLE {
        return true;
    }
    let is_there = ask_to_write(address & !3);
    if is_there {
        place.store(page << 1 | WRITABLE, Relaxed);
    }
    is_there
}

#[inline]
fn page_is_readable(address: usize) -> bool {
    let page = address >> PAGE_SHIFT;
    place(page).load(Relaxed) & !WRITABLE == page << 1 && page != 0 || look(address)
}

#[cold]
#[inline(never)]
fn look(address: usize) -> bool {
    let is_there = can_be_read(address);
    if is_there {
        let page = address >> PAGE_SHIFT;
        place(page).store(page << 1, Relaxed);
    }
    is_there
}

const PRIVATE: usize = 128;

fn ask_to_read(word: usize) -> bool {
    const CMP_REQUEUE: usize = 4;
    // SAFETY: any address may be passed. The kernel reads the word, or reports that it cannot, and
    // with counts of 0 wakes and moves no thread.
    let answer = unsafe { syscall6(Sysno::futex, word, CMP_REQUEUE | PRIVATE, 0, 0, word, 0) };
    answer != Err(Errno::EFAULT)
}

fn ask_to_write(word: usize) -> bool {
    const WAKE_OP: usize = 5;
    /// Add 0; the comparison does not matter.
    const ADD_NOTHING: usize = 1 << 28;
    // SAFETY: adds nothing, in one atomic step. It wakes no private waiter in the kernel.
    let answer =
        unsafe { syscall6(Sysno::futex, word, WAKE_OP | PRIVATE, 0, 0, word, ADD_NOTHING) };
    answer != Err(Errno::EFAULT)
}
