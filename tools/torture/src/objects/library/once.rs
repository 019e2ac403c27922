//! `Once`, called in both of its ways.

use super::object::Object;
use crate::context::Context;
use crate::objects::traits;
use crate::spot::Spot;
use waitword::{OnceState, Scope};

/// See the module documentation.
pub(crate) struct Once {
    object: Object<waitword::Once>,
    by_force: bool,
}

impl traits::Once for Once {
    const CAN_END_THREAD: bool = false;

    fn new(context: &Context, index: usize) -> Self {
        let once = waitword::Once::new();
        Self {
            object: Object::new(context, "once", 32, Scope::Private, once),
            by_force: index % 2 == 1,
        }
    }

    fn spot(&self) -> Spot {
        self.object.spot
    }

    fn renew(&self) {
        self.object.renew(waitword::Once::new());
    }

    fn call(&self, routine: &mut dyn FnMut()) {
        match self.by_force {
            true => self.object.get().call_once_force(|_| routine()),
            false => self.object.get().execute(routine),
        }
    }

    fn is_done(&self) -> bool {
        self.object.get().state() == OnceState::Done
    }
}
