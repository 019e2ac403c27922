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

/// Waiting until an atomic holds another value: C++20's `std::atomic::wait`, `notify_one` and `notify_all`, for the
/// standard library's atomics of 8 to 64 bits, signed or not, `bool` and pointers.
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
/// # Against a raw [`Futex`]
///
/// | | `AtomicWait::wait(old)` | `Futex::private(&word).wait(old)` |
/// |---|---|---|
/// | returns | once another value was seen | when woken; at once if it differs; or for no reason |
/// | says | the value that was seen | how it ended |
/// | signal handlers | do not end it | may |
/// | masks, counts, requeue, other processes | no | yes |
///
/// Both stand on the same table: `notify_one` is `wake(1)` and wakes either kind of waiter.
///
/// A value that changes and changes back may be missed, as in C++: nobody but the waiter itself keeps the values in
/// between. All loads are sequentially consistent, C++'s default. Whoever changes the value must notify: a store
/// wakes nobody.
///
/// **Memory**: a notification does not touch the atomic, so a waiter that has seen the new value may free it at once.
/// **Signal handlers** may notify. **fork**: waiters of the parent do not exist in the child. Private to the process.
pub trait AtomicWait: sealed::Sealed {
    /// What the atomic holds.
    type Value: Copy;

    /// Waits until the atomic holds another value than `old`; which.
    ///
    /// Blocks, unless it does already.
    fn wait(&self, old: Self::Value) -> Self::Value;

    /// [`wait`](Self::wait) until `deadline` at the latest. `None`: it still held `old` then.
    ///
    /// Blocks.
    #[must_use]
    fn wait_until(&self, old: Self::Value, deadline: Deadline) -> Option<Self::Value>;

    /// [`wait`](Self::wait) for `timeout` at most.
    ///
    /// Blocks.
    #[must_use]
    fn wait_for(&self, old: Self::Value, timeout: Duration) -> Option<Self::Value> {
        self.wait_until(old, Deadline::after(timeout))
    }

    /// Wakes one of those who wait for another value, the one of the highest real-time priority that has waited
    /// longest. It looks, and waits on if the value is still the old one.
    ///
    /// Does not block. Async-signal-safe.
    fn notify_one(&self);

    /// Wakes all who wait for another value.
    ///
    /// Does not block. Async-signal-safe.
    fn notify_all(&self);
}

/// Waits until `look` says that the word holds another value than `old`, whose bits those of `old` are.
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

/// Whether the deadline has passed.
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

/// The same atomic, seen as a number without a sign.
macro_rules! word_of {
    ($atomic:ident, $word:ty) => {
        // SAFETY: `$word` has the size and alignment of the atomic (asserted below). The reference
        // is used for one call, while the atomic is borrowed, and all that others do there is
        // atomic, of the same size; a futex only loads the word.
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
    methods!(*mut T, PointerWord, |value: *mut T| value.addr()
        as PointerBits);
}
