//! Counts all system calls that one thread makes, without privileges.
//!
//! Linux can return every system call of a thread to it as a signal (*syscall user dispatch*, made
//! for emulators; Linux 5.11). Our handler counts the call, makes it, and returns its result as if
//! nothing had happened. This costs microseconds per call: count in one pass and measure the time
//! in another.
//!
//! Only on x86-64. On other architectures, and on kernels without the feature, [`count`] returns
//! `None` for the number.

#[cfg(not(target_arch = "x86_64"))]
/// Does `work`. The number of system calls that this thread made meanwhile is `None`, since it
/// cannot be determined on this architecture.
pub fn count<R>(work: impl FnOnce() -> R) -> (R, Option<u64>) {
    (work(), None)
}

#[cfg(target_arch = "x86_64")]
pub use x86_64::count;

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use core::arch::asm;
    use core::ffi::{c_int, c_void};
    use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::SeqCst};
    use std::sync::{Mutex, PoisonError};
    use syscalls::{Errno, Sysno, syscall4, syscall5};

    const PR_SET_SYSCALL_USER_DISPATCH: usize = 59;
    const OFF: usize = 0;
    const ON: usize = 1;
    const ALLOW: u8 = 0;
    const BLOCK: u8 = 1;
    /// The C library's return path from a handler is one short function.
    const RESTORER_BYTES: usize = 16;

    /// Read by the kernel at each system call of the thread whose calls are counted.
    static SELECTOR: AtomicU8 = AtomicU8::new(ALLOW);
    static COUNT: AtomicU64 = AtomicU64::new(0);
    /// Handler, selector and count are global to the process, so only one thread may count at a
    /// time.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

    /// Does `work`, and counts the system calls that this thread made meanwhile; `None` if the
    /// kernel cannot do that.
    pub fn count<R>(work: impl FnOnce() -> R) -> (R, Option<u64>) {
        let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(old) = install() else {
            return (work(), None);
        };
        let dispatching = restorer().and_then(|restorer| {
            let selector = SELECTOR.as_ptr() as usize;
            dispatch(ON, restorer, RESTORER_BYTES, selector)
        });
        COUNT.store(0, SeqCst);
        if dispatching.is_ok() {
            SELECTOR.store(BLOCK, SeqCst);
        }
        let result = work();
        SELECTOR.store(ALLOW, SeqCst);
        let counted = dispatching.is_ok().then(|| COUNT.load(SeqCst));
        let _ = dispatch(OFF, 0, 0, 0);
        // SAFETY: restores the previous action.
        unsafe { libc::sigaction(libc::SIGSYS, &old, core::ptr::null_mut()) };
        (result, counted)
    }

    fn dispatch(mode: usize, from: usize, length: usize, selector: usize) -> Result<usize, Errno> {
        // SAFETY: the selector is a static byte, or null when switching off. With the handler
        // installed, every call that is dispatched to us is still made.
        unsafe {
            syscall5(Sysno::prctl, PR_SET_SYSCALL_USER_DISPATCH, mode, from, length, selector)
        }
    }

    /// Installs the handler, and returns the previous action.
    fn install() -> Option<libc::sigaction> {
        let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) = counted_call;
        // SAFETY: plain data, filled in; the handler has the signature that SA_SIGINFO requires.
        unsafe {
            let mut action: libc::sigaction = core::mem::zeroed();
            let mut old: libc::sigaction = core::mem::zeroed();
            action.sa_sigaction = handler as usize;
            action.sa_flags = libc::SA_SIGINFO;
            libc::sigemptyset(&mut action.sa_mask);
            (libc::sigaction(libc::SIGSYS, &action, &mut old) == 0).then_some(old)
        }
    }

    /// The address that the handler returns to. It is the only place whose system call, the return
    /// from the signal, must not be dispatched. The C library chose the address, and the kernel
    /// reports it.
    fn restorer() -> Result<usize, Errno> {
        /// The kernel's `struct sigaction`.
        #[repr(C)]
        #[derive(Default)]
        struct KernelAction {
            handler: usize,
            flags: usize,
            restorer: usize,
            mask: u64,
        }
        let mut action = KernelAction::default();
        // SAFETY: the kernel writes one `struct sigaction` of its own layout, with a mask of 8
        // bytes.
        unsafe {
            syscall4(
                Sysno::rt_sigaction,
                libc::SIGSYS as usize,
                0,
                (&raw mut action) as usize,
                size_of::<u64>(),
            )?;
        }
        Ok(action.restorer)
    }

    /// Counts the interrupted system call and makes it. Touches only the statics, its own stack and
    /// the interrupted registers.
    extern "C" fn counted_call(_: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
        SELECTOR.store(ALLOW, SeqCst);
        COUNT.fetch_add(1, SeqCst);
        // SAFETY: the kernel passes the interrupted thread's context. Its registers are those of
        // the call: number in rax, arguments in rdi, rsi, rdx, r10, r8, r9, result to rax. Making
        // the call here is what the thread was about to do.
        unsafe {
            let registers = &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs;
            let argument = |register: c_int| registers[register as usize];
            let mut rax = argument(libc::REG_RAX);
            asm!(
                "syscall",
                inlateout("rax") rax,
                in("rdi") argument(libc::REG_RDI),
                in("rsi") argument(libc::REG_RSI),
                in("rdx") argument(libc::REG_RDX),
                in("r10") argument(libc::REG_R10),
                in("r8") argument(libc::REG_R8),
                in("r9") argument(libc::REG_R9),
                lateout("rcx") _,
                lateout("r11") _,
                options(nostack),
            );
            registers[libc::REG_RAX as usize] = rax;
        }
        SELECTOR.store(BLOCK, SeqCst);
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use syscalls::syscall0;
        use waitword_testkit::watch;

        fn getppid() -> usize {
            // SAFETY: the call only returns a number.
            unsafe { syscall0(Sysno::getppid) }.expect("getppid never fails")
        }

        #[test]
        fn each_call_is_counted_and_made() {
            let _guard = watch();
            let parent = getppid();
            let (sum, counted) = count(|| (0..5).map(|_| getppid()).sum::<usize>());
            assert_eq!(sum, 5 * parent);
            assert!(counted.is_none_or(|calls| calls == 5), "{counted:?}");
        }

        #[test]
        fn no_call_counts_as_none_and_counting_ends() {
            let _guard = watch();
            let ((), counted) = count(|| {
                std::hint::black_box(1 + 1);
            });
            assert!(counted.is_none_or(|calls| calls == 0), "{counted:?}");
            getppid();
            assert_eq!(SELECTOR.load(SeqCst), ALLOW);
        }
    }
}
