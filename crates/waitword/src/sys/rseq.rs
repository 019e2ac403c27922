//! The C library's restartable sequences (glibc 2.35): the location of each thread's area, and the
//! number of bytes in use in it.
//!
//! Both are in variables of the C library, which an older version does not have. The references
//! here are weak, and the loader resolves them with all others of this library. A look-up by name
//! (`dlsym`) would take the lock that `dlopen` holds while it runs constructors. So it would hang
//! in a thread that a constructor waits for.

#![cfg_attr(loom, allow(dead_code, reason = "a model has no CPUs to know"))]

use core::ffi::c_uint;

// Hidden: each library has its own. The name includes the version, since a program may be linked
// with two.
core::arch::global_asm!(
    ".pushsection .data.rel.ro.waitword_rseq, \"aw\"",
    ".weak __rseq_offset",
    ".weak __rseq_size",
    ".globl waitword_rseq_0_1",
    ".hidden waitword_rseq_0_1",
    ".type waitword_rseq_0_1, @object",
    ".size waitword_rseq_0_1, {size}",
    ".p2align 3",
    "waitword_rseq_0_1:",
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
    #[link_name = "waitword_rseq_0_1"]
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
