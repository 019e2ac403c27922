//! A value that is made once and then shared: std's `OnceLock`, built on this crate's [`Once`].
//!
//! # Invariants
//!
//! 1. The value is written at most once while the cell is shared: in the one run of the `Once` that
//!    ends DONE.
//! 2. It is borrowed only after DONE was seen. The end of the run is Release and that load is
//!    Acquire, so a reader sees the whole value.
//! 3. A forked child may find a value that another thread of the parent had half written. The
//!    `Once` is not DONE then, so nothing borrows that value, and the next write does not drop it.
//!    (That thread borrowed the cell, so no code of the child owns it.)
//!
//! There is no `Drop` here: `Option` drops the value if there is one. This lets the value borrow
//! from data that is dropped at the same time, as with std's `OnceLock`.

use super::once::Once;
use core::cell::{Cell, UnsafeCell};
use core::fmt;
use core::panic::{RefUnwindSafe, UnwindSafe};

/// A cell that is written once and can then be read by all threads: for a `static` or a field that
/// is initialised when it is first needed.
///
/// Threads that arrive while the value is being made wait for it. If the initialiser panics, the
/// cell stays empty and the next caller's initialiser runs; nothing is poisoned. For a value that
/// has its own initialiser, use [`LazyLock`](crate::LazyLock).
///
/// ```
/// use waitword::OnceLock;
///
/// static NAME: OnceLock<String> = OnceLock::new();
///
/// let threads = [(); 4].map(|()| {
///     std::thread::spawn(|| NAME.get_or_init(|| "waitword".to_owned()).len())
/// });
/// for thread in threads {
///     assert_eq!(thread.join().unwrap(), 8);
/// }
/// assert_eq!(NAME.get().unwrap(), "waitword");
/// assert_eq!(NAME.set("another".to_owned()), Err("another".to_owned()));
/// ```
///
/// * **Recursion**: an initialiser that asks the same cell for its value waits for itself and never
///   returns.
/// * **Signal handlers** may call [`get`](Self::get), and nothing else.
/// * **fork**: if another thread of the parent was making the value, the child's next caller makes
///   its own.
///
/// Source: `std::sync::OnceLock`, whose methods have the same names and meaning.
pub struct OnceLock<T> {
    once: Once,
    value: UnsafeCell<Option<T>>,
}

// SAFETY: a shared cell gives out `&T` in each thread, which `T: Sync` allows. One thread may put a
// value in and another may drop it, which `T: Send` allows.
unsafe impl<T: Send + Sync> Sync for OnceLock<T> {}

// The value is written as a whole or not at all, so a panic leaves nothing half done except what
// `T` itself exposes.
impl<T: RefUnwindSafe + UnwindSafe> RefUnwindSafe for OnceLock<T> {}

impl<T> OnceLock<T> {
    /// Creates an empty cell.
    #[inline]
    pub const fn new() -> Self {
        Self { once: Once::new(), value: UnsafeCell::new(None) }
    }

    /// The value, if there is one. Does not block.
    #[inline]
    pub fn get(&self) -> Option<&T> {
        // SAFETY: just seen to be done.
        self.once.is_done().then(|| unsafe { self.value() })
    }

    /// The value, if there is one. Does not block: no other thread has access to the cell.
    #[inline]
    pub fn get_mut(&mut self) -> Option<&mut T> {
        self.value.get_mut().as_mut()
    }

    /// Waits until another thread has put the value in, and returns it. Blocks.
    #[inline]
    pub fn wait(&self) -> &T {
        self.once.wait_force();
        // SAFETY: the wait ends when the `Once` is done.
        unsafe { self.value() }
    }

    /// Puts a value in. Blocks while another thread is making one.
    ///
    /// # Errors
    /// If there is a value already, returns the new one.
    #[inline]
    pub fn set(&self, value: T) -> Result<(), T> {
        if self.once.is_done() {
            return Err(value);
        }
        let value = Cell::new(Some(value));
        self.fill(&mut || {}, &value);
        value.into_inner().map_or(Ok(()), Err)
    }

    /// The value, which `make` makes if there is none. Blocks while another thread is making one.
    ///
    /// # Panics
    /// If `make` panics. The cell is then empty.
    #[inline]
    pub fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        if !self.once.is_done() {
            let (mut make, value) = (Some(make), Cell::new(None));
            let mut made = || {
                if let Some(make) = make.take() {
                    value.set(Some(make()));
                }
            };
            self.fill(&mut made, &value);
        }
        // SAFETY: done, just now or before.
        unsafe { self.value() }
    }

    /// Consumes the cell and returns its value.
    #[inline]
    pub fn into_inner(self) -> Option<T> {
        self.value.into_inner()
    }

    /// Takes the value out and leaves the cell empty.
    #[inline]
    pub fn take(&mut self) -> Option<T> {
        core::mem::take(self).into_inner()
    }

    /// Calls `make`, then moves the value in `made` into the cell, unless another thread's value is
    /// there first.
    #[cold]
    fn fill(&self, make: &mut dyn FnMut(), made: &Cell<Option<T>>) {
        self.once.produce(make, &mut || {
            // SAFETY: only the one run that ends DONE gets here, and nothing borrows the value
            // before that. The old value is not dropped: in a forked child it may be half written.
            unsafe { self.value.get().write(made.take()) };
        });
    }

    /// The value.
    ///
    /// # Safety
    /// The `Once` was seen to be done.
    #[inline]
    unsafe fn value(&self) -> &T {
        // SAFETY: written before DONE, and not written again while `self` is borrowed.
        let value = unsafe { &*self.value.get() };
        // SAFETY: a value was written: `make` has returned one, or `set` was given one.
        unsafe { value.as_ref().unwrap_unchecked() }
    }
}

impl<T> Default for OnceLock<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> From<T> for OnceLock<T> {
    fn from(value: T) -> Self {
        let cell = Self::new();
        let set = cell.set(value);
        debug_assert!(set.is_ok(), "no other thread has it");
        cell
    }
}

impl<T: Clone> Clone for OnceLock<T> {
    fn clone(&self) -> Self {
        self.get().cloned().map_or_else(Self::new, Self::from)
    }
}

impl<T: PartialEq> PartialEq for OnceLock<T> {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl<T: Eq> Eq for OnceLock<T> {}

impl<T: fmt::Debug> fmt::Debug for OnceLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cell = f.debug_tuple("OnceLock");
        match self.get() {
            Some(value) => cell.field(value),
            None => cell.field(&format_args!("<uninit>")),
        };
        cell.finish()
    }
}
