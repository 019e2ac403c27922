//! Threads made by `pthread_create` itself, which may be cancelled or may exit. Their frames have
//! nothing to drop. What belongs to them is kept by the thread that joins them.

use super::abi;
use super::object::zero;
use crate::actor::{Actor, Verdict};
use crate::context::Context;
use crate::crew::STACK;
use libc::{c_void, pthread_t};
use std::mem::MaybeUninit;

/// What a thread does.
pub(crate) type Work<T> = fn(&mut Actor, &'static T) -> Verdict;

struct Task<T: 'static> {
    context: &'static Context,
    role: &'static str,
    seed: u64,
    work: Work<T>,
    on: &'static T,
    actor: Option<Actor>,
    verdict: Verdict,
}

/// A thread that has not been joined.
pub(crate) struct Bare<T: 'static> {
    pub(crate) thread: pthread_t,
    task: *mut Task<T>,
}

// SAFETY: the task belongs to its thread until that is joined, and then to the thread that joined
// it.
unsafe impl<T: Sync> Send for Bare<T> {}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Itself,
    Cancelled,
}

unsafe extern "C-unwind" fn run<T: 'static>(task: *mut c_void) -> *mut c_void {
    // SAFETY: boxed by `start` for this thread alone, until it is joined.
    let task = unsafe { &mut *task.cast::<Task<T>>() };
    let actor = task.actor.insert(Actor::new(task.context, task.role, task.seed));
    task.verdict = (task.work)(actor, task.on);
    if let Err(complaint) = &task.verdict {
        task.context.complain(&format!("{}: {complaint}", task.role));
    }
    std::ptr::null_mut()
}

/// Starts a thread with a small stack.
///
/// # Safety
/// `start` may be called with `argument`, in a thread that must be joined unless it is `detached`.
pub(crate) unsafe fn create(
    detached: bool,
    start: abi::Start,
    argument: *mut c_void,
) -> Result<pthread_t, String> {
    let mut thread = MaybeUninit::uninit();
    let mut attributes = MaybeUninit::uninit();
    // SAFETY: attributes are initialised, used and destroyed; the caller's promise.
    unsafe {
        libc::pthread_attr_init(attributes.as_mut_ptr());
        libc::pthread_attr_setstacksize(attributes.as_mut_ptr(), STACK);
        if detached {
            let detached = libc::PTHREAD_CREATE_DETACHED;
            libc::pthread_attr_setdetachstate(attributes.as_mut_ptr(), detached);
        }
        let (at, attributes_at) = (thread.as_mut_ptr(), attributes.as_ptr());
        let made = abi::pthread_create(at, attributes_at, start, argument);
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        zero("pthread_create", made)?;
        Ok(thread.assume_init())
    }
}

impl<T: Sync + 'static> Bare<T> {
    /// Starts a thread.
    pub(crate) fn start(
        context: &'static Context,
        role: &'static str,
        seed: u64,
        work: Work<T>,
        on: &'static T,
    ) -> Result<Self, String> {
        let task = Box::into_raw(Box::new(Task {
            context,
            role,
            seed,
            work,
            on,
            actor: None,
            verdict: Ok(()),
        }));
        // SAFETY: the task is the thread's until it is joined.
        let thread = unsafe { create(false, run::<T>, task.cast()) }?;
        Ok(Self { thread, task })
    }

    pub(crate) fn cancel(&self) -> Verdict {
        // SAFETY: a thread that was not joined yet.
        zero("pthread_cancel", unsafe { abi::pthread_cancel(self.thread) })
    }

    /// Waits for the thread to end.
    pub(crate) fn join(self) -> Result<Ended, String> {
        let mut value = std::ptr::null_mut();
        // SAFETY: joined once; after that the task is ours.
        let task = unsafe {
            zero("pthread_join", libc::pthread_join(self.thread, &raw mut value))?;
            Box::from_raw(self.task)
        };
        task.verdict?;
        match value {
            abi::CANCELED => Ok(Ended::Cancelled),
            _ => Ok(Ended::Itself),
        }
    }
}
