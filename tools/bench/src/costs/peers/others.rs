//! The semaphore and the once of the C library and of the drop-in: their fast paths.

use super::rows::{Lock, Row};
use crate::costs::scene::{Apart, on_stage, put};
use crate::locks::glibc;
use crate::locks::pthread::Library;

/// The semaphore and the once of a library that has pthread's names.
pub(super) fn others<L: Library>(name: &str) -> Lock {
    type Both<L> = (Apart<glibc::Semaphore<L>>, Apart<glibc::Once<L>>);
    fn new<L: Library>() {
        put::<Both<L>>((Apart(glibc::Semaphore::new()), Apart(glibc::Once::done())));
        both::<L>().0.wait_and_post();
        both::<L>().1.ask();
    }
    #[inline(always)]
    fn both<L: Library>() -> &'static Both<L> {
        // SAFETY: `new` has put them there.
        unsafe { on_stage::<Both<L>>() }
    }
    #[rustfmt::skip]
    let rows: [Row; 2] = [
        ("semaphore: wait, it is there; post", || both::<L>().0.wait_and_post(), new::<L>),
        ("once, done", || both::<L>().1.ask(), new::<L>),
    ];
    Lock { name: name.to_owned(), rows: rows.into() }
}
