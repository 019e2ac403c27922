//! Answers of the kernel's futex and of the library's.

/// An operation's answer: its count, index or 0, or the error number.
pub type Answer = Result<usize, i32>;

/// An [`Answer`] with the error's name, for a human reader.
pub fn show(answer: Answer) -> String {
    match answer {
        Ok(count) => format!("{count}"),
        Err(code) => error_name(code),
    }
}

fn error_name(code: i32) -> String {
    let name = match code {
        libc::EAGAIN => "EAGAIN",
        libc::EINVAL => "EINVAL",
        libc::EFAULT => "EFAULT",
        libc::EINTR => "EINTR",
        libc::ETIMEDOUT => "ETIMEDOUT",
        libc::ENOSYS => "ENOSYS",
        libc::ENOMEM => "ENOMEM",
        libc::EBUSY => "EBUSY",
        libc::EDEADLK => "EDEADLK",
        libc::EPERM => "EPERM",
        libc::EOVERFLOW => "EOVERFLOW",
        libc::ENOTRECOVERABLE => "ENOTRECOVERABLE",
        libc::ECANCELED => "ECANCELED",
        _ => return format!("errno {code}"),
    };
    name.to_owned()
}

/// The kernel's answer to a raw system call, without the library.
pub fn kernel(call: syscalls::Sysno, arguments: [usize; 6]) -> Answer {
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: only futex calls and prctl are made here, on words, times and entries that the caller
    // keeps alive, or on bad addresses, which the kernel refuses.
    unsafe { syscalls::syscall6(call, a, b, c, d, e, f) }.map_err(|error| error.into_raw())
}

/// Whether the running kernel has this futex2 call.
pub fn kernel_has(call: syscalls::Sysno) -> bool {
    // All arguments zero: a kernel that knows the call refuses it.
    kernel(call, [0; 6]) != Err(libc::ENOSYS)
}
