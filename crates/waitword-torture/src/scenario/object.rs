//! Objects of the library for the scenarios that torture them: each is made anew for every round at the same place.
//! Process-shared ones lie where forked processes see them, too.

use crate::context::Context;
use crate::process::shared_memory;
use crate::spot::{Spot, Word};
use std::ptr::NonNull;
use waitword::Scope;

/// See the module above.
pub(super) struct Object<T> {
    place: NonNull<T>,
    pub(super) scope: Scope,
    pub(super) spot: Spot,
}

// SAFETY: what the library offers is for all threads; it is made anew while nobody uses it.
unsafe impl<T: Sync> Sync for Object<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Send for Object<T> {}

impl<T> Object<T> {
    /// An object that begins with a word of so many bits, which the report shows.
    pub(super) fn new(context: &Context, name: &str, bits: u32, scope: Scope, object: T) -> Self {
        let place = match scope {
            Scope::Private => NonNull::from(Box::leak(Box::new(object))),
            Scope::Shared => {
                let memory = shared_memory(size_of::<T>()).cast::<T>();
                let place = NonNull::new(memory).expect("memory is not at null");
                // SAFETY: a new mapping, large enough, aligned to a page.
                unsafe { place.write(object) };
                place
            }
        };
        // SAFETY: there for ever, and an atomic of this size by the caller's word.
        let word = unsafe { Word::at(place.as_ptr().cast(), bits) };
        let spot = context.name_word(&format!("{scope:?} {name}"), word, scope);
        Self { place, scope, spot }
    }

    pub(super) fn get(&self) -> &T {
        // SAFETY: never freed, and made anew only while nobody uses it.
        unsafe { self.place.as_ref() }
    }

    /// Makes it anew. Nobody uses it.
    pub(super) fn renew(&self, object: T) {
        // SAFETY: as above.
        unsafe { self.place.write(object) };
    }
}
