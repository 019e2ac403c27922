//! `pthread_once` and `call_once`.

use super::abi;
use super::object::Object;
use crate::context::Context;
use crate::objects::traits;
use crate::spot::Spot;
use libc::pthread_once_t;
use std::cell::Cell;

/// See the module documentation.
pub(crate) struct Once {
    control: Object,
    by_c11: bool,
}

thread_local! {
    /// For the routine, which has no argument: what it does in this thread.
    static ROUTINE: Cell<Option<*mut dyn FnMut()>> = const { Cell::new(None) };
}

/// May be left by unwinding, or end its thread: no frame has anything to drop.
unsafe extern "C-unwind" fn routine() {
    // Taken, because it may call another.
    if let Some(routine) = ROUTINE.take() {
        // SAFETY: it is borrowed by `call`, which has called this.
        unsafe { (*routine)() }
    }
}

impl traits::Once for Once {
    const CAN_END_THREAD: bool = true;

    fn new(context: &Context, index: usize) -> Self {
        Self {
            control: Object::new(context, &format!("once {index}"), false),
            by_c11: index % 4 == 3,
        }
    }

    fn spot(&self) -> Spot {
        self.control.spot
    }

    fn renew(&self) {
        self.control.fill(0);
    }

    fn call(&self, work: &mut dyn FnMut()) {
        let work: *mut (dyn FnMut() + '_) = work;
        // SAFETY: only the lifetime changes, and the pointer is used only during this call.
        let work = unsafe {
            std::mem::transmute::<*mut (dyn FnMut() + '_), *mut (dyn FnMut() + 'static)>(work)
        };
        ROUTINE.set(Some(work));
        let control = self.control.at::<pthread_once_t>();
        // SAFETY: a control that was zeroed, and the routine.
        unsafe {
            match self.by_c11 {
                true => abi::call_once(control, routine),
                false => {
                    abi::pthread_once(control, routine);
                }
            }
        }
        ROUTINE.set(None);
    }

    /// POSIX has no such question.
    fn is_done(&self) -> bool {
        true
    }
}
