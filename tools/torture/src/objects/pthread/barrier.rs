//! Barriers, private and shared.

use super::object::{Object, zero};
use crate::actor::{Actor, Verdict};
use crate::context::Context;
use crate::objects::traits;
use crate::spot::Spot;
use libc::{PTHREAD_BARRIER_SERIAL_THREAD, pthread_barrier_t, pthread_barrierattr_t};
use std::mem::MaybeUninit;

/// See the module documentation.
pub(crate) struct Barrier {
    object: Object,
    shared: bool,
}

impl Barrier {
    /// A private one, at a place; it must be made.
    pub(crate) fn private(object: Object) -> Self {
        let shared = false;
        Self { object, shared }
    }
}

impl traits::Barrier for Barrier {
    const CAN_END_AT_ONCE: bool = true;

    fn new(context: &Context, name: &str, shared: bool) -> Self {
        let object = Object::new(context, name, shared);
        Self { object, shared }
    }

    fn spot(&self) -> Spot {
        self.object.spot
    }

    fn make(&self, members: usize) -> Verdict {
        self.object.fill(0xa5);
        let (at, members) = (self.object.at(), members as u32);
        if !self.shared {
            // SAFETY: unused memory for a barrier.
            let made = unsafe { libc::pthread_barrier_init(at, std::ptr::null(), members) };
            return zero("pthread_barrier_init", made);
        }
        let mut attributes = MaybeUninit::<pthread_barrierattr_t>::uninit();
        // SAFETY: unused memory for a barrier; attributes are initialised, used and destroyed.
        unsafe {
            libc::pthread_barrierattr_init(attributes.as_mut_ptr());
            let shared = libc::PTHREAD_PROCESS_SHARED;
            libc::pthread_barrierattr_setpshared(attributes.as_mut_ptr(), shared);
            let made = libc::pthread_barrier_init(at, attributes.as_ptr(), members);
            libc::pthread_barrierattr_destroy(attributes.as_mut_ptr());
            zero("pthread_barrier_init", made)
        }
    }

    fn wait(&self, actor: &mut Actor) -> Result<bool, String> {
        let barrier = self.object.at::<pthread_barrier_t>();
        // SAFETY: it was made for all members.
        let answer =
            self.object.wait(actor, false, || unsafe { libc::pthread_barrier_wait(barrier) });
        match answer {
            0 => Ok(false),
            PTHREAD_BARRIER_SERIAL_THREAD => Ok(true),
            number => Err(format!("a barrier returned {number}")),
        }
    }

    fn end(&self) -> Verdict {
        // SAFETY: all threads have passed it.
        zero("pthread_barrier_destroy", unsafe { libc::pthread_barrier_destroy(self.object.at()) })
    }
}
