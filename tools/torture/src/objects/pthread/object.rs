//! Memory for one of the C library's objects. The report knows its first word and its bytes.

use crate::actor::{Actor, own_place};
use crate::context::Context;
use crate::memory::shared_memory;
use crate::spot::{Spot, Word};
use waitword::Scope;

/// No object is larger.
const BYTES: usize = 64;

/// See the module documentation.
#[repr(C, align(128))]
struct Memory([u8; BYTES]);

/// A place for an object. The place stays; the object in it is made and destroyed again and again.
#[derive(Clone, Copy)]
pub(crate) struct Object {
    pub(crate) spot: Spot,
    address: *mut u8,
}

// SAFETY: objects are for all threads; they are made and destroyed while no thread uses them.
unsafe impl Sync for Object {}
// SAFETY: as above.
unsafe impl Send for Object {}

impl Object {
    /// A zeroed place; if `shared`, in memory that forked processes share.
    pub(crate) fn new(context: &Context, name: &str, shared: bool) -> Self {
        let (scope, address): (_, *mut u8) = match shared {
            true => (Scope::Shared, shared_memory(BYTES)),
            false => {
                let memory = Box::into_raw(Box::new(Memory([0; BYTES])));
                (Scope::Private, memory.cast())
            }
        };
        // SAFETY: never freed. The first word of all these objects is changed by atomics, and the
        // torture only reads it.
        let word = unsafe { Word::at(address, 32) };
        let spot = context.name_word(name, word, scope);
        context.name_object(spot.number, address, BYTES);
        Self { spot, address }
    }

    /// A place that exists already, and that the report does not read.
    ///
    /// # Safety
    /// `address` is aligned memory for any object, as long as this is used.
    pub(crate) unsafe fn lies_at(address: *mut u8, spot: Spot) -> Self {
        Self { spot, address }
    }

    /// A pointer to the object.
    pub(crate) fn at<T>(&self) -> *mut T {
        const { assert!(size_of::<T>() <= BYTES) };
        self.address.cast()
    }

    /// Fills all bytes before an object is made there: what an initialiser does not set must not
    /// matter.
    pub(crate) fn fill(&self, byte: u8) {
        // SAFETY: it is not in use.
        unsafe { self.address.write_bytes(byte, BYTES) };
    }

    /// Records for the report that the calling thread holds the object.
    pub(crate) fn held(&self) {
        if let Some(place) = own_place() {
            place.hold(self.spot.number);
        }
    }

    /// Records that the calling thread releases it.
    pub(crate) fn given_back(&self) {
        if let Some(place) = own_place() {
            place.release(self.spot.number);
        }
    }

    /// Runs `what`, which may wait for the object.
    pub(crate) fn wait<R>(&self, actor: &Actor, until: bool, what: impl FnOnce() -> R) -> R {
        actor.wait_at(self.spot, until, what)
    }
}

/// Checks that a function has returned 0.
pub(crate) fn zero(what: &str, answer: i32) -> Result<(), String> {
    match answer {
        0 => Ok(()),
        number => Err(format!("{what}: {}", error_name(number))),
    }
}

/// An error number as text.
pub(crate) fn error_name(number: i32) -> String {
    std::io::Error::from_raw_os_error(number).to_string()
}
