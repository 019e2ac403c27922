//! Tables of calls, each made to the kernel and to the library, with the answer that both must
//! give.

use super::memory::Mapping;
use super::{Answer, kernel, kernel_has, show};
use std::cell::RefCell;
use std::fmt::Write as _;
use std::ptr::{with_exposed_provenance, with_exposed_provenance_mut};
use syscalls::Sysno;
use waitword::raw::Timespec;
use waitword::raw::{self, Errno, PRIVATE, SIZE_U32, Waitv};

/// The target of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum To {
    Kernel,
    Ours,
}

/// A time argument.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Time {
    None,
    /// Seconds and nanoseconds.
    At(i64, i64),
    /// At this address.
    Address(usize),
}

/// Long ago, on every clock.
pub(crate) const PAST: Time = Time::At(0, 1);

/// The value of each word before a call.
pub(crate) const VALUE: u64 = 7;

/// Words in memory, and how to make calls on them.
pub(crate) struct Calls {
    to: To,
    memory: Mapping,
    /// futex2's size number, and its PRIVATE flag or 0.
    pub(crate) size: u32,
    pub(crate) private: u32,
    /// A futex2 call that the kernel lacks was needed.
    lacking: RefCell<Option<Sysno>>,
}

const WORDS: usize = 8;
const APART: usize = 64;

impl Calls {
    fn new(to: To, size: u32, private: u32) -> Self {
        let memory = Mapping::anonymous(WORDS * APART);
        let lacking = RefCell::new(None);
        let calls = Self {
            to,
            memory,
            size,
            private,
            lacking,
        };
        for word in 0..WORDS {
            calls.set(calls.word(word), VALUE);
        }
        calls
    }

    pub(crate) fn bits(&self) -> u32 {
        8 << self.size
    }

    pub(crate) fn bytes(&self) -> usize {
        1 << self.size
    }

    pub(crate) fn all_bits(&self) -> u64 {
        u64::MAX >> (64 - self.bits())
    }

    /// The flags of a futex2 call.
    pub(crate) fn flags(&self) -> u32 {
        self.size | self.private
    }

    /// The address of a word.
    pub(crate) fn word(&self, number: usize) -> usize {
        self.memory.at::<u8>(number * APART).expose_provenance()
    }

    /// The bytes there, as many as a word has, as a number.
    pub(crate) fn get(&self, address: usize) -> u64 {
        let mut bytes = [0; 8];
        for (offset, byte) in bytes.iter_mut().enumerate().take(self.bytes()) {
            // SAFETY: inside the mapping, and no other thread uses it between calls.
            *byte = unsafe { with_exposed_provenance::<u8>(address + offset).read() };
        }
        u64::from_le_bytes(bytes)
    }

    pub(crate) fn set(&self, address: usize, value: u64) {
        for (offset, byte) in value.to_le_bytes().iter().enumerate().take(self.bytes()) {
            // SAFETY: as above.
            unsafe { with_exposed_provenance_mut::<u8>(address + offset).write(*byte) };
        }
    }

    /// An entry of a list.
    pub(crate) fn entry(&self, uaddr: usize, val: u64) -> Waitv {
        Waitv {
            val,
            uaddr: uaddr as u64,
            flags: self.flags(),
            reserved: 0,
        }
    }

    /// futex(2) with a time. The PRIVATE flag is added.
    pub(crate) fn timed(&self, word: usize, op: i32, val: u32, time: Time, val3: u32) -> Answer {
        time.with(|time| self.futex(word, op, val, time, 0, val3))
    }

    /// futex(2). The PRIVATE flag is added.
    pub(crate) fn futex(
        &self,
        word: usize,
        op: i32,
        val: u32,
        time: usize,
        second: usize,
        val3: u32,
    ) -> Answer {
        let op = op | self.private as i32;
        match self.to {
            To::Kernel => kernel(
                Sysno::futex,
                [word, op as usize, val as usize, time, second, val3 as usize],
            ),
            // SAFETY: mapped words, or bad addresses that the library recognises by their value.
            To::Ours => ours(unsafe {
                let (word, second) = (
                    with_exposed_provenance_mut(word),
                    with_exposed_provenance_mut(second),
                );
                raw::futex(word, op, val, time, second, val3)
            }),
        }
    }

    /// futex2's `futex_wait`.
    pub(crate) fn wait(
        &self,
        word: usize,
        val: u64,
        mask: u64,
        flags: u32,
        time: Time,
        clock: i32,
    ) -> Answer {
        time.with(|time| match self.to {
            To::Kernel => self.kernel(
                Sysno::futex_wait,
                [
                    word,
                    val as usize,
                    mask as usize,
                    flags as usize,
                    time,
                    clock as usize,
                ],
            ),
            // SAFETY: as above.
            To::Ours => ours(unsafe {
                let (word, time) = (
                    with_exposed_provenance_mut(word),
                    with_exposed_provenance(time),
                );
                raw::futex_wait(word, val, mask, flags, time, clock)
            }),
        })
    }

    /// futex2's `futex_wake`.
    pub(crate) fn wake(&self, word: usize, mask: u64, count: i32, flags: u32) -> Answer {
        match self.to {
            To::Kernel => self.kernel(
                Sysno::futex_wake,
                [word, mask as usize, count as usize, flags as usize, 0, 0],
            ),
            // SAFETY: as above.
            To::Ours => ours(unsafe {
                raw::futex_wake(with_exposed_provenance_mut(word), mask, count, flags)
            }),
        }
    }

    /// futex2's `futex_requeue`.
    pub(crate) fn requeue(&self, pair: &[Waitv], flags: u32, wake: i32, moved: i32) -> Answer {
        self.requeue_at(start(pair), flags, wake, moved)
    }

    /// The same with the list's address.
    pub(crate) fn requeue_at(&self, list: usize, flags: u32, wake: i32, moved: i32) -> Answer {
        match self.to {
            To::Kernel => self.kernel(
                Sysno::futex_requeue,
                [list, flags as usize, wake as usize, moved as usize, 0, 0],
            ),
            // SAFETY: as above; null or two entries.
            To::Ours => ours(unsafe {
                raw::futex_requeue(with_exposed_provenance(list), flags, wake, moved)
            }),
        }
    }

    /// futex2's `futex_waitv`. `count` may misstate the length of the list, which may be empty:
    /// null.
    pub(crate) fn waitv(
        &self,
        list: &[Waitv],
        count: u32,
        flags: u32,
        time: Time,
        clock: i32,
    ) -> Answer {
        self.waitv_at(start(list), count, flags, time, clock)
    }

    /// The same with the list's address.
    pub(crate) fn waitv_at(
        &self,
        list: usize,
        count: u32,
        flags: u32,
        time: Time,
        clock: i32,
    ) -> Answer {
        time.with(|time| match self.to {
            To::Kernel => self.kernel(
                Sysno::futex_waitv,
                [
                    list,
                    count as usize,
                    flags as usize,
                    time,
                    clock as usize,
                    0,
                ],
            ),
            // SAFETY: as above; a wrong count is one that is refused.
            To::Ours => ours(unsafe {
                let (list, time) = (with_exposed_provenance(list), with_exposed_provenance(time));
                raw::futex_waitv(list, count, flags, time, clock)
            }),
        })
    }

    /// Whether these are the kernel's calls, not ours.
    #[allow(dead_code, reason = "each test program uses some of it")]
    pub(crate) fn are_the_kernel_s(&self) -> bool {
        matches!(self.to, To::Kernel)
    }

    fn kernel(&self, call: Sysno, arguments: [usize; 6]) -> Answer {
        if !kernel_has(call) {
            *self.lacking.borrow_mut() = Some(call);
        }
        kernel(call, arguments)
    }
}

fn ours(result: Result<usize, Errno>) -> Answer {
    result.map_err(Errno::raw_os_error)
}

impl Time {
    /// Calls with the address of the time.
    fn with<R>(self, call: impl FnOnce(usize) -> R) -> R {
        match self {
            Time::None => call(0),
            Time::Address(address) => call(address),
            Time::At(tv_sec, tv_nsec) => {
                let time = Timespec { tv_sec, tv_nsec };
                call((&raw const time).expose_provenance())
            }
        }
    }
}

/// The address of a list; null if it is empty.
fn start(list: &[Waitv]) -> usize {
    if list.is_empty() {
        0
    } else {
        list.as_ptr().expose_provenance()
    }
}

/// A call, and the required answer.
pub(crate) struct Case {
    name: &'static str,
    call: fn(&Calls) -> Answer,
    private: Answer,
    shared: Answer,
    /// The kernel's answer where ours differs on purpose.
    kernel: Option<Answer>,
    /// The answer for words of other widths than 32 bits, where the kernel's does not apply.
    other_widths: Option<Answer>,
    applies: fn(&Calls) -> bool,
}

/// A call with one answer for all.
pub(crate) fn case(name: &'static str, expected: Answer, call: fn(&Calls) -> Answer) -> Case {
    Case {
        name,
        call,
        private: expected,
        shared: expected,
        kernel: None,
        other_widths: None,
        applies: |_| true,
    }
}

impl Case {
    /// The answer for a shared word.
    pub(crate) fn shared(mut self, expected: Answer) -> Self {
        self.shared = expected;
        self
    }

    /// The kernel's answer for a private word, which differs. The reason is given at the case.
    pub(crate) fn kernel_says(mut self, answer: Answer) -> Self {
        self.kernel = Some(answer);
        self
    }

    /// The answer at 8, 16 and 64 bits.
    pub(crate) fn at_other_widths(mut self, answer: Answer) -> Self {
        self.other_widths = Some(answer);
        self
    }

    /// Only where this holds.
    pub(crate) fn only(mut self, applies: fn(&Calls) -> bool) -> Self {
        self.applies = applies;
        self
    }

    fn ours(&self, private: bool, size: u32) -> Answer {
        match self.other_widths {
            Some(answer) if size != SIZE_U32 => answer,
            _ if private => self.private,
            _ => self.shared,
        }
    }
}

/// Makes each call, to ours at each of `sizes` and to the kernel at 32 bits; private and shared.
pub(crate) fn check(cases: &[Case], sizes: &[u32]) {
    let mut wrong = String::new();
    for case in cases {
        for &size in sizes {
            for private in [PRIVATE, 0] {
                let ours = Calls::new(To::Ours, size, private);
                if !(case.applies)(&ours) {
                    continue;
                }
                let expected = case.ours(private != 0, size);
                compare(&mut wrong, case, &ours, expected);
                if size == SIZE_U32 {
                    let kernel = Calls::new(To::Kernel, size, private);
                    if !(case.applies)(&kernel) {
                        continue;
                    }
                    let expected = case.kernel.filter(|_| private != 0).unwrap_or(expected);
                    compare(&mut wrong, case, &kernel, expected);
                }
            }
        }
    }
    assert!(wrong.is_empty(), "wrong answers:\n{wrong}");
}

fn compare(wrong: &mut String, case: &Case, calls: &Calls, expected: Answer) {
    // What a case itself asserts does not hold for a call that the kernel lacks.
    let call = std::panic::AssertUnwindSafe(|| (case.call)(calls));
    let answer = std::panic::catch_unwind(call).unwrap_or_else(|panic| {
        if calls.lacking.borrow().is_none() {
            std::panic::resume_unwind(panic);
        }
        Err(libc::ENOSYS)
    });
    let world = if calls.private == 0 {
        "shared"
    } else {
        "private"
    };
    if let Some(call) = calls.lacking.take() {
        println!(
            "not compared: this kernel has no {call} ({}, {world})",
            case.name
        );
        return;
    }
    // Shared words that only futex_waitv could wait for (`old_kernel.rs`).
    let is_refused = answer == Err(libc::ENOSYS) && calls.private == 0;
    if is_refused && !kernel_has(Sysno::futex_waitv) {
        println!(
            "not compared: refused on this kernel ({}, {world})",
            case.name
        );
        return;
    }
    if answer != expected {
        let _ = writeln!(
            wrong,
            "  {:?}, {} bits, {world}: {}: {} instead of {}",
            calls.to,
            calls.bits(),
            case.name,
            show(answer),
            show(expected)
        );
    }
}
