//! C++20's `wait` and `notify` for the standard atomics.

use crate::futex::Futex;
use crate::sys::clock::Deadline;
use crate::word::FutexWord;
use core::sync::atomic::{
    AtomicBool, AtomicI8, AtomicI16, AtomicI32, AtomicI64, AtomicIsize, AtomicPtr, AtomicU8,
    AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering,
};
use core::time::Duration;

mod sealed {
    pub trait Sealed {}
}

/// Waits until an atomic's value changes: C++20's `std::atomic::wait`, `notify_one` and
/// `notify_all` for the standard library's integer atomics of 8 to 64 bits, `AtomicBool` and
/// `AtomicPtr`.
///
/// ```
/// use std::sync::atomic::{AtomicI16, Ordering};
/// use waitword::AtomicWait;
///
/// static TEMPERATURE: AtomicI16 = AtomicI16::new(-3);
///
/// let waiter = std::thread::spawn(|| TEMPERATURE.wait(-3));
/// TEMPERATURE.store(4, Ordering::SeqCst);
/// TEMPERATURE.notify_all();
/// assert_eq!(waiter.join().unwrap(), 4);
/// ```
///
/// # Compared with a raw [`Futex`]
///
/// | | `AtomicWait::wait(old)` | `Futex::private(&word).wait(old)` |
/// |---|---|---|
/// | returns | once it has seen another value | when woken, at once if it differs, or spuriously |
/// | result | the value that was seen | how the wait ended |
/// | signal handlers | do not end it | may end it |
/// | masks, counts, requeue, other processes | no | yes |
///
/// Both use the same waiter table: `notify_one` is `wake(1)` and wakes either kind of waiter.
///
/// A value that changes and changes back may be missed, as in C++: no record is kept of the values
/// in between. All loads are sequentially consistent, which is C++'s default. A thread that changes
/// the value must notify; a store alone wakes no waiter.
///
/// **Memory**: a notification does not touch the atomic, so a waiter that has seen the new value
/// may free it at once. **Signal handlers** may notify. **fork**: waiters of the parent do not
/// exist in the child. Private to the process.
pub trait AtomicWait: sealed::Sealed {
    /// The type of the atomic's value.
    type Value: Copy;

    /// Waits until the atomic holds a value other than `old`, and returns that value.
    ///
    /// Blocks, unless the value differs already.
    fn wait(&self, old: Self::Value) -> Self::Value;

    /// [`wait`](Self::wait), but until `deadline` at the latest. Returns `None` if the atomic still
    /// held `old` then.
    ///
    /// Blocks.
    #[must_use]
    fn wait_until(&self, old: Self::Value, deadline: Deadline) -> Option<Self::Value>;

    /// [`wait`](Self::wait), but for at most `timeout`.
    ///
    /// Blocks.
    #[must_use]
    fn wait_for(&self, old: Self::Value, timeout: Duration) -> Option<Self::Value> {
        self.wait_until(old, Deadline::after(timeout))
    }

    /// Wakes one waiter: of those with the highest real-time priority, the one that has waited
    /// longest. The woken thread checks the value and goes on waiting if it is still the old one.
    ///
    /// Does not block. Async-signal-safe.
    fn notify_one(&self);

    /// Wakes all waiters.
    ///
    /// Does not block. Async-signal-safe.
    fn notify_all(&self);
}

/// Waits until `look` finds a new value. `old` holds the bits of the old one. Returns `None` if the
/// deadline passed and the value had not changed.
#[inline]
fn wait<W: FutexWord, V>(
    word: &W,
    old: W::Value,
    deadline: Option<Deadline>,
    look: impl Fn() -> Option<V>,
) -> Option<V> {
    loop {
        if let Some(value) = look() {
            return Some(value);
        }
        if sleep(word, old, deadline) {
            return look();
        }
    }
}

/// Sleeps while the word holds `old`. Returns whether the deadline has passed.
#[cold]
fn sleep<W: FutexWord>(word: &W, old: W::Value, deadline: Option<Deadline>) -> bool {
    let futex = Futex::private(word);
    let waited = match deadline {
        None => futex.wait(old),
        Some(deadline) => futex.wait_until(old, deadline),
    };
    waited == Err(crate::Error::TimedOut)
}

macro_rules! methods {
    ($value:ty, $word:ty, $bits:expr) => {
        type Value = $value;

        #[inline]
        fn wait(&self, old: $value) -> $value {
            let waited = wait(word_of!(self, $word), $bits(old), None, || {
                let value = self.load(Ordering::SeqCst);
                (value != old).then_some(value)
            });
            waited.expect("without a deadline it does not give up")
        }

        #[inline]
        fn wait_until(&self, old: $value, deadline: Deadline) -> Option<$value> {
            wait(word_of!(self, $word), $bits(old), Some(deadline), || {
                let value = self.load(Ordering::SeqCst);
                (value != old).then_some(value)
            })
        }

        #[inline]
        fn notify_one(&self) {
            let woken = Futex::private(word_of!(self, $word)).wake(1);
            debug_assert!(woken.is_ok());
        }

        #[inline]
        fn notify_all(&self) {
            let woken = Futex::private(word_of!(self, $word)).wake(usize::MAX);
            debug_assert!(woken.is_ok());
        }
    };
}

/// The same atomic, seen as an unsigned integer.
macro_rules! word_of {
    ($atomic:ident, $word:ty) => {
        // SAFETY: `$word` has the size and alignment of the atomic (asserted below). The reference
        // is used for one call, while the atomic is borrowed. All other accesses there are atomic
        // and of the same size, and a futex only loads the word.
        unsafe { <$word>::from_ptr($atomic.as_ptr().cast()) }
    };
}

macro_rules! atomics {
    ($($atomic:ty, $value:ty, $word:ty, $bits:ty;)*) => {$(
        impl sealed::Sealed for $atomic {}
        impl AtomicWait for $atomic {
            methods!($value, $word, |value| value as $bits);
        }
        const _: () = assert!(size_of::<$atomic>() == size_of::<$word>());
        const _: () = assert!(align_of::<$atomic>() == align_of::<$word>());
    )*};
}

atomics! {
    AtomicU8, u8, AtomicU8, u8;
    AtomicU16, u16, AtomicU16, u16;
    AtomicU32, u32, AtomicU32, u32;
    AtomicU64, u64, AtomicU64, u64;
    AtomicI8, i8, AtomicU8, u8;
    AtomicI16, i16, AtomicU16, u16;
    AtomicI32, i32, AtomicU32, u32;
    AtomicI64, i64, AtomicU64, u64;
    AtomicBool, bool, AtomicU8, u8;
}

#[cfg(target_pointer_width = "64")]
type PointerWord = AtomicU64;
#[cfg(target_pointer_width = "32")]
type PointerWord = AtomicU32;
type PointerBits = <PointerWord as FutexWord>::Value;

atomics! {
    AtomicUsize, usize, PointerWord, PointerBits;
    AtomicIsize, isize, PointerWord, PointerBits;
}

const _: () = assert!(size_of::<AtomicPtr<()>>() == size_of::<PointerWord>());
const _: () = assert!(align_of::<AtomicPtr<()>>() == align_of::<PointerWord>());

impl<T> sealed::Sealed for AtomicPtr<T> {}
impl<T> AtomicWait for AtomicPtr<T> {
    methods!(*mut T, PointerWord, |value: *mut T| value.addr() as PointerBits);
}
