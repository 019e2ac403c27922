//! Whether a thread sleeps in a futex call, has not been woken, and is fully queued.
//!
//! Two files together show this:
//!
//! * `/proc/.../syscall` gives the number of the system call that a thread sleeps in, once it is
//!   off its CPU. A thread that is seen asleep in `futex_waitv` there has queued on all its words.
//!   State `S` in `stat` does not show that: the kernel sets it before it queues.
//! * `/proc/.../stat` gives state `S` for a thread that has not been woken. The other file does not
//!   show that: a thread whose wake-up is on its way to another CPU still looks asleep there.

use crate::thread::thread_number;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::LazyLock;
use syscalls::Sysno;

/// Observes one thread.
pub struct SleepProbe {
    syscall: File,
    stat: File,
    status: File,
}

impl SleepProbe {
    /// For the calling thread.
    pub fn of_this_thread() -> Self {
        Self::in_folder(&format!("/proc/self/task/{}", thread_number()))
            .unwrap_or_else(|error| panic!("these tests read /proc, and cannot: {error}"))
    }

    fn in_folder(folder: &str) -> std::io::Result<Self> {
        let open = |file| File::open(format!("{folder}/{file}"));
        Ok(Self { syscall: open("syscall")?, stat: open("stat")?, status: open("status")? })
    }

    /// Whether the thread is queued and asleep in a futex call.
    pub fn in_futex_call(&self) -> bool {
        self.is_off_cpu_in_futex_call() && self.is_asleep()
    }

    /// How often the thread has gone to sleep, if it is asleep in a futex call. If the number is
    /// the same later, the thread has slept all the time.
    pub fn sleeps_in_futex_call(&self) -> Option<u64> {
        if !self.in_futex_call() {
            return None;
        }
        let mut text = [0; 4096];
        let text = std::str::from_utf8(read(&self.status, &mut text)).ok()?;
        let count = text.split_once("\nvoluntary_ctxt_switches:")?.1;
        count.lines().next()?.trim().parse().ok()
    }

    fn is_off_cpu_in_futex_call(&self) -> bool {
        let mut text = [0; 256];
        let Ok(text) = std::str::from_utf8(read(&self.syscall, &mut text)) else {
            return false;
        };
        // "number first second ...", the arguments in hexadecimal.
        let mut fields = text.split(' ');
        let number = fields.next().and_then(|number| number.parse::<i32>().ok());
        number.is_some_and(|number| {
            [Sysno::futex, Sysno::futex_waitv, Sysno::futex_wait]
                .iter()
                .any(|call| call.id() == number)
                && !is_the_sanitizers(number, fields.nth(1))
        })
    }

    fn is_asleep(&self) -> bool {
        let mut text = [0; 256];
        let text = read(&self.stat, &mut text);
        // "number (name) state ...", and the name may contain anything.
        let after_name = text.iter().rposition(|&byte| byte == b')');
        after_name.is_some_and(|end| text[end..].starts_with(b") S"))
    }
}

/// Whether a thread, of any process, is queued and asleep in a futex call.
pub fn sleeps(thread: u32) -> bool {
    SleepProbe::in_folder(&format!("/proc/{thread}")).is_ok_and(|probe| probe.in_futex_call())
}

/// Whether ThreadSanitizer waits, for a lock of its own: by FUTEX_WAIT_PRIVATE, which nothing that
/// is tested under it uses. A thread that does so has not reached its own wait yet.
fn is_the_sanitizers(number: i32, operation: Option<&str>) -> bool {
    static UNDER_IT: LazyLock<bool> =
        LazyLock::new(|| std::env::var_os("WAITWORD_TESTS_UNDER_THREAD_SANITIZER").is_some());
    let private_wait = format!("{:#x}", libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG);
    *UNDER_IT && number == Sysno::futex.id() && operation == Some(&private_wait)
}

fn read<'a>(file: &File, text: &'a mut [u8]) -> &'a [u8] {
    let length = file.read_at(text, 0).unwrap_or(0);
    &text[..length]
}
