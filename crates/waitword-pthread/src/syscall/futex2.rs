//! futex2: futex_wait, futex_wake, futex_requeue, futex_waitv.

use super::arguments::{Arguments, FUTEX_REQUEUE, FUTEX_WAIT, FUTEX_WAITV, FUTEX_WAKE};
use crate::memory;
use core::ptr::{with_exposed_provenance, with_exposed_provenance_mut};
use waitword::WAIT_ANY_MAX;
use waitword::raw::{self, Errno, PRIVATE, SIZE_U32, Timespec, Waitv};

/// Which side serves a word, by its flags.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Word {
    Private,
    Shared,
    /// With flags that the kernel refuses, or that it knows and we leave to it.
    Other,
}

impl Word {
    fn of(flags: u32) -> Self {
        const PRIVATE_U32: u32 = PRIVATE | SIZE_U32;
        match flags {
            PRIVATE_U32 => Self::Private,
            SIZE_U32 => Self::Shared,
            _ => Self::Other,
        }
    }
}

/// The entries that a call names, at any alignment, since the kernel copies them. Empty if they
/// cannot be read.
///
/// # Safety
/// If the memory is mapped, it holds entries and no thread writes to it.
unsafe fn entries(address: usize, count: usize) -> impl Iterator<Item = Waitv> {
    let is_readable =
        count <= WAIT_ANY_MAX && memory::is_readable(address, count * size_of::<Waitv>());
    let list = with_exposed_provenance::<Waitv>(address);
    // SAFETY: either the list is readable for `count` entries, as the kernel has confirmed, or none
    // are read; that they are entries, and stay so, is this function's contract. They may be
    // misaligned, and are read accordingly.
    (0..if is_readable { count } else { 0 })
        .map(move |index| unsafe { list.add(index).read_unaligned() })
}

fn time_is_readable(time: usize) -> bool {
    time == 0 || memory::is_readable(time, size_of::<Timespec>())
}

/// Whether the call is about private words, in memory that is mapped.
///
/// # Safety
/// The arguments are those that the call of this number takes.
pub(super) unsafe fn is_ours(number: usize, arguments: &Arguments) -> bool {
    let [first, second, _, fourth, fifth, _] = *arguments;
    match number {
        FUTEX_WAIT => {
            Word::of(fourth as u32) == Word::Private
                && memory::word_is_readable(first)
                && time_is_readable(fifth)
        }
        FUTEX_WAKE => Word::of(fourth as u32) == Word::Private,
        FUTEX_REQUEUE => {
            // SAFETY: forwards this function's own contract: the arguments are those of
            // futex_requeue.
            let mut entries = unsafe { entries(first, 2) };
            let is_private = |entry: &Waitv| Word::of(entry.flags) == Word::Private;
            let is_read = |entry: &Waitv| memory::word_is_readable(entry.uaddr as usize);
            entries.next().is_some_and(|from| is_private(&from) && is_read(&from))
                && entries.next().is_some_and(|to| is_private(&to))
        }
        FUTEX_WAITV => {
            // SAFETY: forwards this function's own contract: the arguments are those of
            // futex_waitv.
            let entries = unsafe { entries(first, second as u32 as usize) };
            let (mut some_private, mut all_known) = (false, true);
            for entry in entries {
                match Word::of(entry.flags) {
                    Word::Private => {
                        some_private = true;
                        all_known &= memory::word_is_readable(entry.uaddr as usize);
                    }
                    Word::Shared => {}
                    Word::Other => all_known = false,
                }
            }
            some_private && all_known && time_is_readable(fourth)
        }
        _ => false,
    }
}

/// # Safety
/// It [is ours](is_ours), and the arguments are those that the call of this number takes.
pub(super) unsafe fn call(number: usize, arguments: &Arguments) -> Result<usize, Errno> {
    let [first, second, third, fourth, fifth, sixth] = *arguments;
    // SAFETY: forwards this function's own contract, each to the raw-interface function of the same
    // call; `is_ours` has seen that the lists, times and words that are read are mapped.
    unsafe {
        match number {
            FUTEX_WAIT => raw::futex_wait(
                with_exposed_provenance_mut(first),
                second as u64,
                third as u64,
                fourth as u32,
                with_exposed_provenance(fifth),
                sixth as i32,
            ),
            FUTEX_WAKE => raw::futex_wake(
                with_exposed_provenance_mut(first),
                second as u64,
                third as i32,
                fourth as u32,
            ),
            FUTEX_REQUEUE => raw::futex_requeue(
                with_exposed_provenance(first),
                second as u32,
                third as i32,
                fourth as i32,
            ),
            _ => raw::futex_waitv(
                with_exposed_provenance(first),
                second as u32,
                third as u32,
                with_exposed_provenance(fourth),
                fifth as i32,
            ),
        }
    }
}
