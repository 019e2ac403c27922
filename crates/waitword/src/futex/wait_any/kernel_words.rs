//! The shared words of a `wait_any`, as entries of `futex_waitv`.

use super::{Expecting, WAIT_ANY_MAX};
use crate::error::Error;
use crate::futex::scope::Scope;
use crate::shared::{self, Lane, NarrowWaiter};
use crate::sys;
use crate::sys::clock::Deadline;
use crate::sys::futex_raw::Waitv;
use crate::word::Size;
use arrayvec::ArrayVec;

/// The parker's own entry, among indexes of words.
pub(super) const PARKER: usize = usize::MAX;

/// The entries of one `futex_waitv` call.
pub(super) struct KernelWords {
    entries: ArrayVec<Waitv, WAIT_ANY_MAX>,
    /// For each entry, the index of its word.
    owners: ArrayVec<u8, WAIT_ANY_MAX>,
    /// The number of entries before those of words.
    first: usize,
    narrow: ArrayVec<Narrow, WAIT_ANY_MAX>,
    /// The index of a woken word, while that wake-up may still have to be forwarded.
    taken: Option<usize>,
}

/// An entry for an 8 or 16-bit word.
struct Narrow {
    entry: usize,
    expected: u64,
    waiter: NarrowWaiter,
}

impl KernelWords {
    /// Without words yet, but with `first` entries.
    pub(super) fn new(first: usize) -> Self {
        Self {
            entries: (0..first).map(|_| Waitv::default()).collect(),
            owners: (0..first).map(|_| 0).collect(),
            first,
            narrow: ArrayVec::new(),
            taken: None,
        }
    }

    /// Adds the shared words among `words`.
    pub(super) fn collect(&mut self, words: &[Expecting<'_>]) -> Result<(), Error> {
        for (index, expecting) in words.iter().enumerate() {
            if expecting.futex.scope == Scope::Shared {
                let word = expecting.futex.word;
                let pair = shared::halves(word, expecting.value);
                let entries = match word.size {
                    Size::U64 => &pair[..],
                    Size::U8 | Size::U16 | Size::U32 => &pair[..1],
                };
                for &entry in entries {
                    let added = self.entries.try_push(entry);
                    added.map_err(|_| Error::TooManyWords)?;
                    self.owners.push(index as u8);
                }
                if matches!(word.size, Size::U8 | Size::U16) {
                    self.narrow.push(Narrow {
                        entry: self.entries.len() - 1,
                        expected: expecting.value,
                        waiter: NarrowWaiter::new(Lane::of(word)),
                    });
                }
            }
        }
        Ok(())
    }

    /// Sleeps once, by `sleep`. Returns `None` if a neighbour of a narrow word has changed, or if a
    /// wake-up that may have been meant for a neighbour has not been forwarded yet; then try again.
    ///
    /// # Safety
    /// `words` are those that were collected. Until this returns, they are mapped, aligned, and
    /// accessed by atomic operations only.
    pub(super) unsafe fn sleep(
        &mut self,
        words: &[Expecting<'_>],
        deadline: Option<&Deadline>,
        sleep: impl FnOnce(&mut [Waitv], Option<&Deadline>) -> Result<usize, sys::Errno>,
    ) -> Option<Result<usize, Error>> {
        for narrow in &mut self.narrow {
            // SAFETY: the lane belongs to one of the collected words, which are mapped, by this
            // function's contract.
            let (around, value) = unsafe { narrow.waiter.look() };
            if value != narrow.expected {
                return Some(self.end_by(Error::Mismatch));
            }
            self.entries[narrow.entry].val = around.into();
            self.entries[narrow.entry].uaddr = narrow.waiter.address();
        }
        let until = self.until(deadline);
        match sleep(&mut self.entries, until.as_ref()) {
            // The wait does not end by this error, since a wake-up was taken.
            // SAFETY: this function's own contract.
            Ok(entry) => unsafe { self.take(entry) }.then(|| self.end_by(Error::Mismatch)),
            Err(sys::Errno::AGAIN) if !self.narrow.is_empty() => {
                // SAFETY: each word is mapped, aligned, and accessed by atomic operations only, by
                // this function's contract.
                let differs = words
                    .iter()
                    .filter(|word| word.futex.scope == Scope::Shared)
                    .any(|word| unsafe { word.futex.word.load() } != word.value);
                let error = if differs {
                    Error::Mismatch
                } else if self.taken.is_some() || deadline.is_some_and(Deadline::has_passed) {
                    // A deferred forward is due now: the neighbour's change confirms the wake-up.
                    Error::TimedOut
                } else {
                    return None;
                };
                Some(self.end_by(error))
            }
            Err(error) => Some(self.end_by(error.into())),
        }
    }

    /// Takes the wake-up of an entry. Returns whether the wait ends: it does not if forwarding is
    /// deferred.
    ///
    /// # Safety
    /// The collected words are mapped.
    unsafe fn take(&mut self, entry: usize) -> bool {
        self.taken = Some(match entry < self.first {
            true => self.taken.unwrap_or(PARKER),
            false => self.owners[entry].into(),
        });
        // SAFETY: the lane belongs to one of the collected words, which are mapped, by this
        // function's contract.
        let has_changed = |narrow: &Narrow| unsafe { narrow.waiter.has_changed() };
        let is_own = !self.narrow.iter().any(|narrow| narrow.entry == entry);
        let speaks = is_own || self.narrow.iter().any(has_changed);
        for narrow in &mut self.narrow {
            match speaks {
                true => narrow.waiter.forward(),
                false => narrow.waiter.forward_or_defer(),
            }
        }
        self.defers_until().is_none()
    }

    /// Until when forwarding is deferred, if it is.
    fn defers_until(&self) -> Option<Deadline> {
        let put_off = |narrow: &Narrow| narrow.waiter.defers_until();
        let each = self.narrow.iter().filter_map(put_off);
        each.max_by_key(Deadline::time_left)
    }

    /// Ends the wait: by the wake-up that was taken, or else by `error`.
    fn end_by(&mut self, error: Error) -> Result<usize, Error> {
        let index = self.taken.take().ok_or(error)?;
        for narrow in &mut self.narrow {
            if narrow.waiter.defers_until().is_some() {
                narrow.waiter.forward();
            }
        }
        Ok(index)
    }

    /// How long to sleep: not beyond the time of a deferred forward.
    fn until(&self, deadline: Option<&Deadline>) -> Option<Deadline> {
        let both = self.defers_until().into_iter().chain(deadline.copied());
        both.min_by_key(Deadline::time_left)
    }
}
