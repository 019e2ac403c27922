//! A value that is made when it is first used: std's `LazyLock`, built on [`OnceLock`].

use super::once_lock::OnceLock;
use crate::atomic::full_fence;
use core::cell::Cell;
use core::fmt;
use core::ops::{Deref, DerefMut};
use core::panic::{RefUnwindSafe, UnwindSafe};

/// A value that its initialiser makes when it is first used.
///
/// Threads that arrive while it is being made wait for it. If the initialiser panics, the value is
/// poisoned: that use and every later one panics.
///
/// ```
/// use waitword::LazyLock;
///
/// static SQUARES: LazyLock<Vec<u32>> = LazyLock::new(|| (0..10).map(|n| n * n).collect());
///
/// assert!(LazyLock::get(&SQUARES).is_none());
/// assert_eq!(SQUARES[7], 49);
/// ```
///
/// * **Recursion**: an initialiser that uses the value that it makes waits for itself and never
///   returns.
/// * **Signal handlers** must not use it.
/// * **fork**: if another thread of the parent was making the value, the child's copy is poisoned.
///   (The initialiser can run only once.)
///
/// Source: `std::sync::LazyLock`, whose functions have the same names and meaning.
pub struct LazyLock<T, F = fn() -> T> {
    cell: OnceLock<T>,
    /// The initialiser, until it is called.
    make: Cell<Option<F>>,
}

// SAFETY: the value is shared like that of a `OnceLock`. The initialiser is taken by the one thread
// that runs the cell's `Once`, which may not be the thread that put it in: `F: Send` allows that.
// Nothing else reaches it through a shared reference.
unsafe impl<T: Send + Sync, F: Send> Sync for LazyLock<T, F> {}

// The initialiser has been taken out when it runs, so a panic in it leaves nothing behind that can
// be seen.
impl<T: RefUnwindSafe + UnwindSafe, F: UnwindSafe> RefUnwindSafe for LazyLock<T, F> {}

impl<T, F: FnOnce() -> T> LazyLock<T, F> {
    /// Creates a value that `make` will make.
    #[inline]
    pub const fn new(make: F) -> Self {
        Self { cell: OnceLock::new(), make: Cell::new(Some(make)) }
    }

    /// The value, made now if it has not been made yet. Dereferencing does the same. Blocks while
    /// another thread is making it.
    ///
    /// # Panics
    /// If the initialiser panics, or has panicked.
    #[inline]
    pub fn force(this: &Self) -> &T {
        this.cell.get_or_init(|| {
            let make = this.make.take();
            // A child that is forked while the initialiser runs must not find it here: part of it
            // may have been consumed.
            full_fence();
            match make {
                Some(make) => make(),
                None => {
                    panic!("LazyLock: its initialiser has panicked, or ran as the process forked")
                }
            }
        })
    }

    /// The same, through an exclusive reference. Never blocks for another thread.
    ///
    /// # Panics
    /// As [`force`](Self::force).
    #[inline]
    pub fn force_mut(this: &mut Self) -> &mut T {
        Self::force(this);
        this.cell.get_mut().expect("just made")
    }
}

impl<T, F> LazyLock<T, F> {
    /// The value, if it has been made. Does not block.
    #[inline]
    pub fn get(this: &Self) -> Option<&T> {
        this.cell.get()
    }

    /// The value, if it has been made. Does not block.
    #[inline]
    pub fn get_mut(this: &mut Self) -> Option<&mut T> {
        this.cell.get_mut()
    }
}

impl<T, F: FnOnce() -> T> Deref for LazyLock<T, F> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        Self::force(self)
    }
}

impl<T, F: FnOnce() -> T> DerefMut for LazyLock<T, F> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        Self::force_mut(self)
    }
}

impl<T: Default> Default for LazyLock<T> {
    fn default() -> Self {
        Self::new(T::default)
    }
}

impl<T: fmt::Debug, F> fmt::Debug for LazyLock<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lazy = f.debug_tuple("LazyLock");
        match self.cell.get() {
            Some(value) => lazy.field(value),
            None => lazy.field(&format_args!("<uninit>")),
        };
        lazy.finish()
    }
}
