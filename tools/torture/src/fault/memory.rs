//! Memory limits: the library's own calls for memory fail, in a pattern that changes.
//!
//! A seccomp filter traps mmap, mremap and madvise where this program's own code calls them, which
//! it does without the C library. It does not trap them in the C library, which makes those of
//! malloc and of thread stacks. A handler of SIGSYS decides: it makes the call through the C
//! library, or answers ENOMEM. So the scenarios need not cope with failures that only the library
//! promises to cope with: if it gets no memory to sleep in, a wait continues by other means.
//!
//! On x86-64 only; elsewhere nothing is refused.

use super::flag::Flag;
use crate::context::Context;

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn install(_context: &'static Context) {}

#[cfg(not(target_arch = "x86_64"))]
pub(super) fn run(_context: &'static Context, _over: &Flag) {}

#[cfg(target_arch = "x86_64")]
pub(crate) use filter::install;

#[cfg(target_arch = "x86_64")]
pub(super) fn run(context: &'static Context, over: &Flag) {
    filter::run(context, over);
}

#[cfg(target_arch = "x86_64")]
mod filter {
    use super::Flag;
    use crate::board::Board;
    use crate::context::Context;
    use crate::count::Count;
    use crate::fault::choice::{noted_choices, pause};
    use crate::fault::kind::Fault;
    use crate::slice::DropIn;
    use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering::SeqCst};

    /// Which calls fail. Counted from the moment the pattern was set: calls `FROM..TO`, and every
    /// `EVERY`-th.
    static FROM: AtomicU64 = AtomicU64::new(0);
    static TO: AtomicU64 = AtomicU64::new(0);
    static EVERY: AtomicU64 = AtomicU64::new(0);
    static CALLS: AtomicU64 = AtomicU64::new(0);
    static BOARD: AtomicPtr<Board> = AtomicPtr::new(std::ptr::null_mut());

    pub(super) fn run(context: &'static Context, over: &Flag) {
        for number in 1.. {
            let mut dice = noted_choices(context, Fault::Memory, number);
            if !over.sleep(pause(&mut dice, 80)) {
                break;
            }
            set_pattern(&mut dice);
        }
    }

    fn set_pattern(dice: &mut fastrand::Rng) {
        let nth = dice.u64(0..12);
        let (from, to, every) = match dice.u32(0..6) {
            0 => (0, 0, 0),
            1 => (0, u64::MAX, 0),
            2 => (0, nth, 0),
            3 => (nth, nth + 1, 0),
            4 => (nth, u64::MAX, 0),
            _ => (0, 0, 1 + nth),
        };
        FROM.store(from, SeqCst);
        TO.store(to, SeqCst);
        EVERY.store(every, SeqCst);
        CALLS.store(0, SeqCst);
    }

    /// Must run before the scenario's first call of the library, on its main thread, before there
    /// are other threads.
    pub(crate) fn install(context: &'static Context) {
        let Some((start, end)) = code(context) else {
            return;
        };
        if !find_syscall() {
            return;
        }
        BOARD.store(std::ptr::from_ref(context.board).cast_mut(), SeqCst);
        set_pattern(&mut noted_choices(context, Fault::Memory, 0));
        // SAFETY: whole structures. The handler does only what is async-signal-safe, and returns to
        // a thread that has made a call.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = answer as *const () as usize;
            // The handler must also run while another handler runs, and while it runs itself.
            action.sa_flags = libc::SA_SIGINFO | libc::SA_NODEFER | libc::SA_RESTART;
            libc::sigaction(libc::SIGSYS, &raw const action, std::ptr::null_mut());
            let mut filter = filter(start, end);
            let program =
                libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
            let mode = libc::SECCOMP_MODE_FILTER;
            libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const program);
        }
    }

    /// The address range of the library's code: in this program, or in the drop-in.
    fn code(context: &Context) -> Option<(u64, u64)> {
        let here = match context.slice.drop_in {
            None => (install as *const ()).addr(),
            Some(DropIn::On) => (libc::pthread_cancel as *const ()).addr(),
            // Then the library is not used.
            Some(DropIn::Off) => return None,
        };
        let here = here as u64;
        let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
        let ranges = maps.lines().filter_map(|line| {
            let (start, end) = line.split_once(' ')?.0.split_once('-')?;
            let number = |text| u64::from_str_radix(text, 16).ok();
            Some((number(start)?, number(end)?))
        });
        let mut own = ranges.into_iter().filter(|(start, end)| (start..end).contains(&&here));
        // The filter compares the lower halves only if the upper ones are equal, so both ends must
        // share one upper half.
        own.next().filter(|(start, end)| start >> 32 == end >> 32)
    }

    /// Traps the calls if they are made from this range of code; allows all others.
    fn filter(start: u64, end: u64) -> [libc::sock_filter; 11] {
        let load = |offset| statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset);
        let give = |answer| statement(libc::BPF_RET | libc::BPF_K, answer);
        let jump = |test: u32, value: u32, yes: u8, no: u8| libc::sock_filter {
            code: (libc::BPF_JMP | test | libc::BPF_K) as u16,
            jt: yes,
            jf: no,
            k: value,
        };
        let (lower, upper) = (8, 12);
        [
            load(0),
            jump(libc::BPF_JEQ, libc::SYS_mmap as u32, 2, 0),
            jump(libc::BPF_JEQ, libc::SYS_mremap as u32, 1, 0),
            jump(libc::BPF_JEQ, libc::SYS_madvise as u32, 0, 5),
            load(upper),
            jump(libc::BPF_JEQ, (start >> 32) as u32, 0, 3),
            load(lower),
            // At or after `start`, and before `end`.
            jump(libc::BPF_JGE, start as u32, 0, 1),
            jump(libc::BPF_JGE, end as u32, 0, 1),
            give(libc::SECCOMP_RET_ALLOW),
            give(libc::SECCOMP_RET_TRAP),
        ]
    }

    fn statement(code: u32, value: u32) -> libc::sock_filter {
        libc::sock_filter { code: code as u16, jt: 0, jf: 0, k: value }
    }

    extern "C" fn answer(_signal: i32, _about: *mut libc::siginfo_t, state: *mut libc::c_void) {
        // SAFETY: the kernel's context of the interrupted thread, and the caller's own arguments.
        unsafe {
            let registers = &mut (*state.cast::<libc::ucontext_t>()).uc_mcontext.gregs;
            let of = |name: i32| registers[name as usize];
            let answer = if is_refused() {
                -i64::from(libc::ENOMEM)
            } else {
                let number = of(libc::REG_RAX);
                let (a, b, c) = (of(libc::REG_RDI), of(libc::REG_RSI), of(libc::REG_RDX));
                let (d, e, f) = (of(libc::REG_R10), of(libc::REG_R8), of(libc::REG_R9));
                let errno = libc::__errno_location();
                let before = *errno;
                let result = the_c_librarys_syscall()(number, a, b, c, d, e, f);
                let answer = if result == -1 { -i64::from(*errno) } else { result };
                *errno = before;
                answer
            };
            registers[libc::REG_RAX as usize] = answer;
        }
    }

    type Syscall = unsafe extern "C" fn(libc::c_long, ...) -> libc::c_long;

    /// The C library's function, which is not trapped. Found by name alone, it could be the
    /// drop-in's, which is trapped.
    static SYSCALL: AtomicPtr<libc::c_void> = AtomicPtr::new(std::ptr::null_mut());

    fn find_syscall() -> bool {
        // SAFETY: NUL-terminated names; the library is loaded and stays loaded.
        let found = unsafe {
            let library = libc::dlopen(c"libc.so.6".as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
            if library.is_null() {
                return false;
            }
            libc::dlsym(library, c"syscall".as_ptr())
        };
        SYSCALL.store(found, SeqCst);
        !found.is_null()
    }

    fn the_c_librarys_syscall() -> Syscall {
        // SAFETY: found before anything was trapped, and of this type.
        unsafe { std::mem::transmute::<*mut libc::c_void, Syscall>(SYSCALL.load(SeqCst)) }
    }

    fn is_refused() -> bool {
        let call = CALLS.fetch_add(1, SeqCst);
        let every = EVERY.load(SeqCst);
        let refused = (FROM.load(SeqCst)..TO.load(SeqCst)).contains(&call)
            || (every > 0 && call.is_multiple_of(every));
        if refused {
            // SAFETY: null, or a board that is never unmapped.
            if let Some(board) = unsafe { BOARD.load(SeqCst).as_ref() } {
                board.count(Count::Refusals, 1);
            }
        }
        refused
    }
}
