//! Memory for one of the library's objects, which is made again for every round, at the same place.
//! Process-shared ones lie in memory that forked processes share.

use crate::context::Context;
use crate::memory::shared_memory;
use crate::spot::{Spot, Word};
use std::ptr::NonNull;
use waitword::Scope;

/// See the module documentation.
pub(crate) struct Object<T> {
    place: NonNull<T>,
    pub(crate) scope: Scope,
    pub(crate) spot: Spot,
}

// SAFETY: the library's objects are for all threads; they are made again only while no thread uses
// them.
unsafe impl<T: Sync> Sync for Object<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Send for Object<T> {}

impl<T> Object<T> {
    /// An object that begins with a word of `bits` bits, which the report shows.
    pub(crate) fn new(context: &Context, name: &str, bits: u32, scope: Scope, object: T) -> Self {
        let place = match scope {
            Scope::Private => NonNull::from(Box::leak(Box::new(object))),
            Scope::Shared => {
                let memory = shared_memory(size_of::<T>()).cast::<T>();
                let place = NonNull::new(memory).expect("memory is not at null");
                // SAFETY: a new mapping, large enough and page-aligned.
                unsafe { place.write(object) };
                place
            }
        };
        // SAFETY: never freed, and an atomic of this size, as the caller states.
        let word = unsafe { Word::at(place.as_ptr().cast(), bits) };
        let spot = context.name_word(&format!("{scope:?} {name}"), word, scope);
        Self { place, scope, spot }
    }

    /// A process-shared object that lies somewhere already.
    pub(crate) fn at(object: &'static T, spot: Spot) -> Self {
        Self { place: NonNull::from(object), scope: Scope::Shared, spot }
    }

    pub(crate) fn get(&self) -> &T {
        // SAFETY: never freed, and made again only while no thread uses it.
        unsafe { self.place.as_ref() }
    }

    /// Makes it again. No thread may be using it, and it must not lie in another object (`at`).
    pub(crate) fn renew(&self, object: T) {
        // SAFETY: as above.
        unsafe { self.place.write(object) };
    }
}
