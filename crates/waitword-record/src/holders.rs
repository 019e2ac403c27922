//! Which thread kept a lock for the longest part of a wait, and how it spent that time.
//!
//! Releases are noted while other threads wait, and so are the times at which a thread takes the
//! lock. A holder has kept the lock since it took it, since the release before its own, or since
//! the first of those threads came, whichever is latest.
//!
//! Of each lock the last release is remembered, with its time and thread ([`note_last`]): that
//! costs a few stores. What a holder did, and where, is remembered of [`KEPT`] releases ([`note`]).
//! To find that out takes longer than a short critical section, so the caller does it for each long
//! hold and for a sample of the short ones.
//!
//! Two locks whose addresses share a place overwrite each other's notes. A waiter then finds none.

use crate::switches::Spent;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

const PLACES: usize = 1024;
/// How many releases of a lock are remembered.
const KEPT: usize = 8;

/// A release, and what is known of the hold that it ended. 0 everywhere: none.
struct Release {
    time: AtomicU64,
    /// When the hold began; 0: unknown.
    since: AtomicU64,
    /// The thread that released the lock.
    thread: AtomicU32,
    /// The thread that the time is charged to: its stack's number in the high half, its own number
    /// in the low one.
    by: AtomicU64,
    /// See [`Shares`].
    shares: AtomicU64,
    /// The lock that the holder itself waited for; 0: none. With [`HANDED_OVER`].
    next: AtomicU64,
}

/// The bit of [`Release::next`] that says: to a thread that the lock was kept for. Locks have even
/// addresses.
const HANDED_OVER: u64 = 1;

/// How a holder spent its time, in thousandths; all 0: unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Shares {
    pub(crate) running: u16,
    pub(crate) preempted: u16,
    pub(crate) asleep: u16,
    /// The system call in which it slept, plus one; 0: unknown.
    pub(crate) call: u16,
}

impl Shares {
    pub(crate) fn of(spent: Spent) -> Self {
        let all = (spent.running + spent.preempted + spent.asleep).max(1);
        let share = |part: u64| (part * 1000 / all) as u16;
        Self {
            running: share(spent.running),
            preempted: share(spent.preempted),
            asleep: share(spent.asleep),
            call: 0,
        }
    }

    fn to_bits(self) -> u64 {
        let Self { running, preempted, asleep, call } = self;
        u64::from(running)
            | u64::from(preempted) << 16
            | u64::from(asleep) << 32
            | u64::from(call) << 48
    }

    fn from_bits(bits: u64) -> Self {
        let part = |shift: u32| (bits >> shift) as u16;
        Self { running: part(0), preempted: part(16), asleep: part(32), call: part(48) }
    }
}

/// 448 KiB in total.
struct Place {
    address: AtomicU64,
    /// The number of waiters, and since when there have been any.
    waiters: AtomicU32,
    wanted: AtomicU64,
    /// When it was last taken while other threads waited.
    taken_at: AtomicU64,
    /// The number of releases so far.
    count: AtomicU64,
    /// The last one: its time, and its thread with [`LAST_HANDED_OVER`].
    last_at: AtomicU64,
    last: AtomicU64,
    /// The number of those in `releases`.
    noted: AtomicU64,
    releases: [Release; KEPT],
}

/// The bit of [`Place::last`].
const LAST_HANDED_OVER: u64 = 1 << 32;

static ALL: [Place; PLACES] = [const {
    Place {
        address: AtomicU64::new(0),
        waiters: AtomicU32::new(0),
        wanted: AtomicU64::new(0),
        taken_at: AtomicU64::new(0),
        count: AtomicU64::new(0),
        last_at: AtomicU64::new(0),
        last: AtomicU64::new(0),
        noted: AtomicU64::new(0),
        releases: [const {
            Release {
                time: AtomicU64::new(0),
                since: AtomicU64::new(0),
                thread: AtomicU32::new(0),
                by: AtomicU64::new(0),
                shares: AtomicU64::new(0),
                next: AtomicU64::new(0),
            }
        }; KEPT],
    }
}; PLACES];

// All accesses are Relaxed: a mixture of two notes names the wrong thread at worst. The lock itself
// orders a release's note before the next holder's look.

fn place(address: u64) -> &'static Place {
    // Fibonacci hashing.
    let hash = address.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    &ALL[(hash >> (u64::BITS - PLACES.ilog2())) as usize]
}

impl Place {
    /// Whether this is the place of this lock, and threads wait for it.
    fn is_wanted(&self, address: u64) -> bool {
        self.address.load(Ordering::Relaxed) == address && self.waiters.load(Ordering::Relaxed) != 0
    }

    /// Makes this the place of this lock.
    fn take(&self, address: u64) {
        // A look first: most often it is, and other threads read it.
        if self.address.load(Ordering::Relaxed) != address
            && self.address.swap(address, Ordering::Relaxed) != address
        {
            self.releases.iter().for_each(|release| release.time.store(0, Ordering::Relaxed));
            self.waiters.store(0, Ordering::Relaxed);
            self.wanted.store(0, Ordering::Relaxed);
            self.last_at.store(0, Ordering::Relaxed);
            self.taken_at.store(0, Ordering::Relaxed);
        }
    }
}

/// A thread begins to wait for this lock. Returns how often it was released before.
pub(crate) fn wanted(address: u64, now: u64) -> u64 {
    let place = place(address);
    place.take(address);
    if place.waiters.fetch_add(1, Ordering::Relaxed) == 0 {
        place.wanted.store(now, Ordering::Relaxed);
    }
    place.count.load(Ordering::Relaxed)
}

/// A thread waits for this lock no longer.
pub(crate) fn had(address: u64) {
    let place = place(address);
    if place.address.load(Ordering::Relaxed) == address {
        // Not below 0: a waiter that was unwound has not been here, and the place may have been
        // another lock's.
        let less = |waiters: u32| Some(waiters.saturating_sub(1));
        let _ = place.waiters.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }
}

/// The caller has taken this lock, not to read: of several readers, the last one's time is not that
/// of the others. Notes the time, if other threads wait. (The caller may be left in the middle of
/// this call.)
#[inline]
pub(crate) fn taken(address: u64, now: impl FnOnce() -> u64) {
    let place = place(address);
    if place.is_wanted(address) {
        place.taken_at.store(now(), Ordering::Relaxed);
    }
}

/// Whether threads wait for this lock.
#[inline]
pub fn is_wanted(address: u64) -> bool {
    place(address).is_wanted(address)
}

/// Since when the caller has kept this lock while other threads waited for it; `None`: unknown.
#[inline]
pub(crate) fn kept_since(address: u64) -> Option<u64> {
    let place = place(address);
    let wanted = place.wanted.load(Ordering::Relaxed);
    let released = place.last_at.load(Ordering::Relaxed);
    let taken = place.taken_at.load(Ordering::Relaxed);
    // Without registered waiters, those that wait were moved here by a condition variable.
    place.is_wanted(address).then_some(wanted.max(released).max(taken))
}

/// The thread that the time of a holder is charged to: the holder, or the end of its chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct By {
    pub(crate) thread: u32,
    /// Its stack; 0: unknown.
    pub(crate) stack: u32,
    pub(crate) shares: Shares,
    /// The lock that it waited for most of the time; 0: none. Then the rest is said of the holder
    /// of that one.
    pub(crate) next: u64,
}

/// Notes that this thread is about to release the lock. Returns false if nothing has been done: the
/// place was another lock's.
///
/// The caller may be left in the middle of this call. Then the next note puts everything right.
#[inline]
pub(crate) fn note_last(address: u64, now: u64, thread: u32, hands_over: bool) -> bool {
    let place = place(address);
    if place.address.load(Ordering::Relaxed) != address {
        return false;
    }
    // Not in one step: the caller holds the lock. (Of two readers that release an rwlock, one may
    // not be counted.)
    place.count.store(place.count.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    let handed_over = if hands_over { LAST_HANDED_OVER } else { 0 };
    place.last.store(u64::from(thread) | handed_over, Ordering::Relaxed);
    place.last_at.store(now, Ordering::Relaxed);
    true
}

/// [`note_last`], and which thread the time since `since` (`None`: unknown) is charged to.
pub(crate) fn note(
    address: u64,
    since: Option<u64>,
    now: u64,
    thread: u32,
    by: By,
    hands_over: bool,
) {
    let place = place(address);
    place.take(address);
    let noted = place.noted.fetch_add(1, Ordering::Relaxed);
    let release = &place.releases[noted as usize % KEPT];
    // The place may have become this lock's a moment ago: then the release before is not known.
    let before = place.last_at.load(Ordering::Relaxed);
    release.since.store(since.unwrap_or(before), Ordering::Relaxed);
    release.thread.store(thread, Ordering::Relaxed);
    release.by.store(u64::from(by.stack) << 32 | u64::from(by.thread), Ordering::Relaxed);
    release.shares.store(by.shares.to_bits(), Ordering::Relaxed);
    let next = by.next & !HANDED_OVER | if hands_over { HANDED_OVER } else { 0 };
    release.next.store(next, Ordering::Relaxed);
    release.time.store(now, Ordering::Relaxed);
    note_last(address, now, thread, hands_over);
}

/// Who kept a lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Kept {
    /// The thread that the longest part is charged to; 0: unknown.
    pub(crate) longest: By,
    /// The thread that released it last, and when; 0: unknown.
    pub(crate) last: u32,
    pub(crate) last_at: u64,
    /// Whether the last release kept the lock for the waiter.
    pub(crate) handed_over: bool,
    /// How often other threads released it to others.
    pub(crate) passed: u16,
}

/// Who kept this lock between these times, for a thread that came when it had been released this
/// often (`u64::MAX`: unknown).
pub(crate) fn between(address: u64, began: u64, ended: u64, count: u64) -> Kept {
    let place = place(address);
    if place.address.load(Ordering::Relaxed) != address {
        return Kept::default();
    }
    let (mut kept, mut longest) = (Kept::default(), 0);
    for release in &place.releases {
        let load = |number: &AtomicU64| number.load(Ordering::Relaxed);
        let time = load(&release.time);
        if !(began..=ended).contains(&time) {
            continue;
        }
        let (by, next) = (load(&release.by), load(&release.next));
        let length = time.saturating_sub(load(&release.since).max(began));
        if kept.longest == By::default() || length > longest {
            longest = length;
            kept.longest = By {
                thread: by as u32,
                stack: (by >> 32) as u32,
                shares: Shares::from_bits(load(&release.shares)),
                next: next & !HANDED_OVER,
            };
        }
        if time >= kept.last_at {
            kept.last = release.thread.load(Ordering::Relaxed);
            (kept.last_at, kept.handed_over) = (time, next & HANDED_OVER != 0);
        }
    }
    let (last, last_at) =
        (place.last.load(Ordering::Relaxed), place.last_at.load(Ordering::Relaxed));
    if (began..=ended).contains(&last_at) {
        (kept.last, kept.last_at) = (last as u32, last_at);
        kept.handed_over = last & LAST_HANDED_OVER != 0;
        if kept.longest == By::default() {
            // Only short holds, of which none was a sample.
            kept.longest.thread = kept.last;
        }
    }
    // The last one was for this thread.
    let passed = place.count.load(Ordering::Relaxed).saturating_sub(count).saturating_sub(1);
    kept.passed = passed.min(u64::from(u16::MAX)) as u16;
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASLEEP: Shares = Shares { running: 100, preempted: 0, asleep: 900, call: 36 };
    const RUNNING: Shares = Shares { running: 1000, preempted: 0, asleep: 0, call: 0 };

    fn by(thread: u32, shares: Shares) -> By {
        By { thread, stack: 11 * thread, shares, next: 0 }
    }

    #[test]
    fn the_thread_that_kept_it_longest_and_the_last_one_are_found() {
        assert_eq!(between(0x7000, 0, 100, 0), Kept::default());
        let before = wanted(0x7000, 10);
        note(0x7000, None, 50, 1, by(1, RUNNING), false);
        note(0x7000, None, 200, 2, By { next: 0x8000, ..by(2, ASLEEP) }, false);
        // Charged to another thread than the one that releases it.
        note(0x7000, None, 210, 4, by(3, RUNNING), true);
        let found = |began, ended| between(0x7000, began, ended, before + 1);
        // From 100 to 200 the second had it.
        let longest = By { next: 0x8000, ..by(2, ASLEEP) };
        assert_eq!(
            found(100, 220),
            Kept { longest, last: 4, last_at: 210, handed_over: true, passed: 1 }
        );
        // The releases before and after the wait do not count.
        let kept = found(201, 220);
        assert_eq!((kept.longest, kept.last), (by(3, RUNNING), 4));
        assert_eq!(found(211, 220).longest, By::default());
        let kept = found(10, 60);
        assert_eq!((kept.longest, kept.last, kept.handed_over), (by(1, RUNNING), 1, false));
        assert_eq!(between(0x7040, 0, 1000, 0), Kept::default());
    }

    #[test]
    fn only_the_last_ones_are_remembered() {
        let before = wanted(0x9000, 1000);
        (0..20).for_each(|n| {
            note(0x9000, None, 1000 + 10 * n, n as u32, by(n as u32, RUNNING), false)
        });
        let kept = between(0x9000, 1000, 1500, before);
        assert_eq!((kept.last, kept.passed), (19, 19));
        assert!((12..20).contains(&kept.longest.thread), "{kept:?}");
    }

    #[test]
    fn of_short_holds_only_the_last_one_is_known() {
        let address = 0xd000;
        assert!(!note_last(address, 90, 1, false), "the place is not this lock's");
        wanted(address, 100);
        assert!(note_last(address, 110, 1, false) && note_last(address, 115, 2, true));
        assert_eq!(kept_since(address), Some(115));
        let longest = By { thread: 2, ..By::default() };
        let short = Kept { longest, last: 2, last_at: 115, handed_over: true, passed: 1 };
        assert_eq!(between(address, 100, 120, 0), short);
        // A sample, and a short one again.
        note(address, kept_since(address), 125, 3, by(3, RUNNING), false);
        assert!(note_last(address, 200, 4, false));
        let kept = between(address, 100, 220, 0);
        assert_eq!((kept.longest, kept.last, kept.handed_over), (by(3, RUNNING), 4, false));
        // The sample was before this wait.
        assert_eq!(between(address, 130, 220, 3).longest.thread, 4);
    }

    #[test]
    fn a_holder_has_kept_it_since_the_first_waiter_came_or_the_last_release() {
        assert_eq!(kept_since(0xb000), None);
        wanted(0xb000, 100);
        wanted(0xb000, 120);
        assert_eq!(kept_since(0xb000), Some(100));
        note(0xb000, None, 200, 1, by(1, RUNNING), false);
        had(0xb000);
        assert_eq!(kept_since(0xb000), Some(200));
        // No thread had it for a while.
        taken(0xb000, || 290);
        assert_eq!(kept_since(0xb000), Some(290));
        taken(0xb000 + 8, || 300);
        had(0xb000);
        // Nothing was wanted for a while.
        wanted(0xb000, 500);
        assert_eq!(kept_since(0xb000), Some(500));
        had(0xb000);
        assert_eq!(kept_since(0xb000), None);
        had(0xb000);
        wanted(0xb000, 600);
        assert_eq!(kept_since(0xb000), Some(600));
    }

    #[test]
    fn shares_come_back_from_their_bits() {
        let spent = Spent { running: 10, preempted: 20, asleep: 70, sleeps: 1 };
        let shares = Shares { running: 100, preempted: 200, asleep: 700, call: 0 };
        assert_eq!(Shares::of(spent), shares);
        let shares = Shares { call: 36, ..shares };
        assert_eq!(Shares::from_bits(shares.to_bits()), shares);
        assert_eq!(Shares::of(Spent::default()), Shares::default());
    }
}
