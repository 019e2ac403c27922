//! Filters of system calls (seccomp(2)): they make the kernel refuse calls that it supports.

use libc::{
    BPF_ABS, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W, SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO,
    sock_filter, sock_fprog,
};

/// Offsets in `struct seccomp_data`: the call's number, and the low halves of its first arguments.
pub(crate) const NUMBER: u32 = 0;
pub(crate) const FIRST: u32 = if cfg!(target_endian = "little") {
    16
} else {
    20
};
pub(crate) const SECOND: u32 = FIRST + 8;
pub(crate) const THIRD: u32 = FIRST + 16;

pub(crate) const ALLOW: sock_filter = step(BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);

pub(crate) const fn step(code: u32, k: u32, yes: u8, no: u8) -> sock_filter {
    sock_filter {
        code: code as u16,
        jt: yes,
        jf: no,
        k,
    }
}

pub(crate) const fn load(offset: u32) -> sock_filter {
    step(BPF_LD | BPF_W | BPF_ABS, offset, 0, 0)
}

/// Skips `skip` steps unless the loaded value is `value`.
pub(crate) const fn unless(value: u32, skip: u8) -> sock_filter {
    step(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skip)
}

pub(crate) const fn answer(error: i32) -> sock_filter {
    step(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error as u32, 0, 0)
}

/// From here on the calling thread, and the threads that it starts, make their calls through the
/// filter.
pub(crate) fn install(mut filter: Vec<sock_filter>) {
    let program = sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: sets a flag, and hands the kernel a program that it checks and copies.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        let set = libc::prctl(
            libc::PR_SET_SECCOMP,
            libc::SECCOMP_MODE_FILTER,
            &raw const program,
        );
        assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
    }
}
