//! The standard atomics, and what else a model replaces with them.

pub(crate) use core::hint::spin_loop;
pub(crate) use core::sync::atomic::{
    AtomicI64, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};

/// A sequentially consistent fence: one half of a store/load pair.
///
/// On x86-64 this is a locked no-op on the stack, like the kernel's `smp_mb`, instead of the
/// `mfence` that the compiler emits. Both are full barriers for ordinary memory, and the locked
/// form takes about a tenth of the time (2 ns against 16 ns on an EPYC). A wake with no waiters is
/// little more than this fence.
#[inline(always)]
pub(crate) fn full_fence() {
    // A locked instruction orders all earlier loads and stores before all later ones. For the
    // compiler, the asm block may touch memory, so it moves no accesses across the block.
    #[cfg(target_arch = "x86_64")]
    // SAFETY: or-ing zero into the word below the stack pointer changes nothing. That word is
    // mapped, since it lies in the red zone that the ABI gives every function.
    unsafe {
        core::arch::asm!("lock or dword ptr [rsp - 4], 0", options(nostack));
    }

    #[cfg(not(target_arch = "x86_64"))]
    fence(Ordering::SeqCst);
}

/// [`full_fence`] right after a read-modify-write.
///
/// On x86-64 the locked instruction is a full fence already, and only the compiler needs one. On
/// AArch64 it is none, whatever its ordering: the store of an exclusive pair may come after a later
/// load.
#[inline(always)]
pub(crate) fn full_fence_after_rmw() {
    #[cfg(target_arch = "x86_64")]
    core::sync::atomic::compiler_fence(Ordering::SeqCst);
    #[cfg(not(target_arch = "x86_64"))]
    full_fence();
}

/// `core`'s `UnsafeCell` with the checkers' interface: loom checks its accesses for races.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct UnsafeCell<T>(core::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(core::cell::UnsafeCell::new(value))
    }

    #[inline(always)]
    pub(crate) fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }
}

/// A `const fn`; in a model a plain one, since loom's atomics can be made only while a model runs.
macro_rules! const_fn {
    (
        $(#[$about:meta])*
        $visible:vis const fn $name:ident($($argument:ident: $kind:ty),*) -> $result:ty
        $body:block
    ) => {
        $(#[$about])*
        $visible const fn $name($($argument: $kind),*) -> $result $body
    };
}

/// An array whose elements are all made by the same constant expression.
macro_rules! array {
    ($element:expr; $count:expr) => {
        [const { $element }; $count]
    };
}

/// A static of the process; in a model, of one execution.
macro_rules! process_static {
    ($(#[$about:meta])* static $name:ident: $kind:ty = $first:expr;) => {
        $(#[$about])*
        static $name: $kind = $first;
    };
}

/// A `thread_local!` without a destructor; in a model, one for each thread of an execution. (The
/// checkers' own macros do not accept `const` blocks.)
macro_rules! thread_static {
    ($(#[$about:meta])* static $name:ident: $kind:ty = const $first:block;) => {
        std::thread_local! {
            $(#[$about])*
            static $name: $kind = const $first;
        }
    };
}

pub(crate) use {array, const_fn, process_static, thread_static};

/// The size of something that each execution of a model makes again, or the length of a loop that
/// it explores: smaller there.
pub(crate) const fn smaller_in_models(size: usize, _in_models: usize) -> usize {
    size
}
