//! Events, which are set once and release all waiters: a flag under any mutex and condition
//! variable, nsync's note, absl's notification, and our event and latch.
//!
//! The C library has no event. C programs use a flag, a mutex and a broadcast, and so do Rust
//! programs with the standard library or parking_lot.

use super::traits::{BenchCondvar, BenchMutex};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// An event that threads wait for.
pub trait BenchEvent: Send + Sync + Sized + 'static {
    /// Its name in the report.
    fn name() -> String;
    /// Creates an event that is not set.
    fn new() -> Self;
    /// Waits until the event is set.
    fn wait(&self);
    /// Sets the event: all present and future waiters continue.
    fn set(&self);
}

/// A flag under a mutex, and a condition variable that is broadcast.
pub struct Flag<C: BenchCondvar> {
    mutex: C::Mutex,
    condvar: C,
    /// Relaxed: the mutex provides the ordering.
    is_set: AtomicBool,
}

impl<C: BenchCondvar> BenchEvent for Flag<C> {
    fn name() -> String {
        format!("{}, condvar", C::NAME)
    }

    fn new() -> Self {
        Self { mutex: C::Mutex::new(), condvar: C::new(), is_set: AtomicBool::new(false) }
    }

    #[inline(never)]
    fn wait(&self) {
        self.mutex.lock();
        while !self.is_set.load(Relaxed) {
            // SAFETY: locked above, and again each time this returns; both stay borrowed, so
            // neither moves.
            unsafe { self.condvar.wait(&self.mutex) };
        }
        // SAFETY: as above.
        unsafe { self.mutex.unlock() };
    }

    #[inline(never)]
    fn set(&self) {
        self.mutex.lock();
        self.is_set.store(true, Relaxed);
        // SAFETY: locked above; it stays borrowed, so it does not move.
        unsafe { self.mutex.unlock() };
        self.condvar.broadcast();
    }
}

/// Our event.
#[derive(Debug)]
pub struct Event(waitword::Event);

impl BenchEvent for Event {
    fn name() -> String {
        "waitword, event".to_owned()
    }

    fn new() -> Self {
        Self(waitword::Event::new())
    }

    #[inline(never)]
    fn wait(&self) {
        self.0.wait();
    }

    #[inline(never)]
    fn set(&self) {
        self.0.set();
    }
}

/// Our latch, with a count of one.
#[derive(Debug)]
pub struct Latch(waitword::Latch);

impl BenchEvent for Latch {
    fn name() -> String {
        "waitword, latch".to_owned()
    }

    fn new() -> Self {
        Self(waitword::Latch::new(1))
    }

    #[inline(never)]
    fn wait(&self) {
        self.0.wait();
    }

    #[inline(never)]
    fn set(&self) {
        let counted = self.0.count_down(1);
        debug_assert!(counted.is_ok());
    }
}

/// `nsync_note`.
#[cfg(has_nsync)]
pub use note::Note;

#[cfg(has_nsync)]
mod note {
    use super::BenchEvent;
    use core::ffi::{c_int, c_void};
    use core::ptr::{NonNull, null_mut};

    unsafe extern "C" {
        static nsync_time_no_deadline: libc::timespec;
        fn nsync_note_new(parent: *mut c_void, deadline: libc::timespec) -> *mut c_void;
        fn nsync_note_free(note: *mut c_void);
        fn nsync_note_notify(note: *mut c_void);
        fn nsync_note_wait(note: *mut c_void, deadline: libc::timespec) -> c_int;
    }

    /// `nsync_note`, without parent and deadline.
    #[derive(Debug)]
    pub struct Note(NonNull<c_void>);

    // SAFETY: a note is made to be used by many threads.
    unsafe impl Send for Note {}
    // SAFETY: as above.
    unsafe impl Sync for Note {}

    impl BenchEvent for Note {
        fn name() -> String {
            "nsync, note".to_owned()
        }

        fn new() -> Self {
            // SAFETY: no parent; the deadline is a constant of the library.
            let note = unsafe { nsync_note_new(null_mut(), nsync_time_no_deadline) };
            Self(NonNull::new(note).expect("memory for a note"))
        }

        #[inline]
        fn wait(&self) {
            // SAFETY: the note was made by `new`; the deadline is a constant of the library.
            let notified = unsafe { nsync_note_wait(self.0.as_ptr(), nsync_time_no_deadline) };
            debug_assert_ne!(notified, 0);
        }

        #[inline]
        fn set(&self) {
            // SAFETY: the note was made by `new`.
            unsafe { nsync_note_notify(self.0.as_ptr()) };
        }
    }

    impl Drop for Note {
        fn drop(&mut self) {
            // SAFETY: no other reference to it exists.
            unsafe { nsync_note_free(self.0.as_ptr()) };
        }
    }
}

/// `absl::Notification`.
#[cfg(has_absl)]
pub use notification::Notification;

#[cfg(has_absl)]
mod notification {
    use super::BenchEvent;
    use core::ffi::c_void;
    use core::ptr::NonNull;

    unsafe extern "C" {
        fn waitword_absl_notification_new() -> NonNull<c_void>;
        fn waitword_absl_notification_delete(notification: NonNull<c_void>);
        fn waitword_absl_notification_wait(notification: NonNull<c_void>);
        fn waitword_absl_notification_notify(notification: NonNull<c_void>);
    }

    /// `absl::Notification`.
    #[derive(Debug)]
    pub struct Notification(NonNull<c_void>);

    // SAFETY: a notification is made to be used by many threads.
    unsafe impl Send for Notification {}
    // SAFETY: as above.
    unsafe impl Sync for Notification {}

    impl BenchEvent for Notification {
        fn name() -> String {
            format!("{}, notification", crate::locks::absl::NAME)
        }

        fn new() -> Self {
            // SAFETY: it creates a new object; C++'s `new` never returns null.
            Self(unsafe { waitword_absl_notification_new() })
        }

        #[inline]
        fn wait(&self) {
            // SAFETY: made by `new`.
            unsafe { waitword_absl_notification_wait(self.0) }
        }

        #[inline]
        fn set(&self) {
            // SAFETY: made by `new`; set only once, as absl requires.
            unsafe { waitword_absl_notification_notify(self.0) }
        }
    }

    impl Drop for Notification {
        fn drop(&mut self) {
            // SAFETY: no other reference to it exists.
            unsafe { waitword_absl_notification_delete(self.0) };
        }
    }
}

/// Calls `$build`, a function generic over [`BenchEvent`], for every event except [`Flag`]; the
/// results are a `Vec`.
macro_rules! every_event {
    ($build:ident $arguments:tt) => {{
        use crate::locks::event;
        #[allow(unused_mut, reason = "where neither nsync nor absl was found")]
        let mut all = vec![
            $build::<event::Event> $arguments,
            $build::<event::Latch> $arguments,
        ];
        #[cfg(has_nsync)]
        all.push($build::<event::Note> $arguments);
        #[cfg(has_absl)]
        all.push($build::<event::Notification> $arguments);
        all
    }};
}
pub(crate) use every_event;
