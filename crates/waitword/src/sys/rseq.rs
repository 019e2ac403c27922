//! The C library's restartable sequences (glibc 2.35): the location of each thread's area, and the
//! number of bytes in use in it.
//!
//! Both are in variables of the C library, which an older version does not have. The references
//! here are weak, and the loader resolves them with all others of this library. A look-up by name
//! (`dlsym`) would take the lock that `dlopen` holds while it runs constructors. So it would hang
//! in a thread that a constructor waits for.

use core::ffi::c_uint;

/// The name of the variables' symbol. It is hidden: each library has its own. The name includes the
/// version, since a program may be linked with two. The unit tests are linked with the library too
/// (`thread_word.rs`).
#[cfg(not(test))]
macro_rules! variables {
    () => {
        "waitword_rseq_0_1"
    };
}
#[cfg(test)]
macro_rules! variables {
    () => {
        "waitword_rseq_of_unit_tests"
    };
}

core::arch::global_asm!(
    ".pushsection .data.rel.ro.waitword_rseq, \"aw\"",
    ".weak __rseq_offset",
    ".weak __rseq_size",
    concat!(".globl ", variables!()),
    concat!(".hidden ", variables!()),
    concat!(".type ", variables!(), ", @object"),
    concat!(".size ", variables!(), ", {size}"),
    ".p2align 3",
    concat!(variables!(), ":"),
    ".dc.a __rseq_offset",
    ".dc.a __rseq_size",
    ".popsection",
    size = const size_of::<Variables>(),
);

/// The addresses of the C library's variables; null if it has none.
#[repr(C)]
struct Variables {
    offset: *const isize,
    size: *const c_uint,
}

unsafe extern "C" {
    #[cfg_attr(not(test), link_name = "waitword_rseq_0_1")]
    #[cfg_attr(test, link_name = "waitword_rseq_of_unit_tests")]
    static VARIABLES: Variables;
}

/// How many bytes of its area each thread has registered; 0 if it has no area.
pub(crate) fn registered_size() -> u32 {
    // SAFETY: the two addresses above. Only the loader writes them, and it is done before any code
    // of this library runs.
    let size = unsafe { VARIABLES.size };
    // SAFETY: null, or glibc's `extern const unsigned int __rseq_size`, which glibc sets before it
    // runs any constructor.
    unsafe { size.as_ref() }.map_or(0, |size| *size)
}

/// The offset of the calling thread's area from its thread pointer; `None` if it has no area.
pub(crate) fn offset() -> Option<isize> {
    // Size 0: glibc was told not to register (`GLIBC_TUNABLES=glibc.pthread.rseq=0`).
    if registered_size() == 0 {
        return None;
    }
    // SAFETY: as in `registered_size`.
    let offset = unsafe { VARIABLES.offset };
    // SAFETY: null, or glibc's `extern const ptrdiff_t __rseq_offset`, which glibc sets before it
    // runs any constructor.
    unsafe { offset.as_ref() }.copied()
}
