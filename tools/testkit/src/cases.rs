//! Tables of calls, each made to the kernel and to the library, with the answer that both must
//! give.

use crate::answer::{Answer, kernel_has, show};
use crate::mapping::Mapping;
use crate::raw::To;
use std::cell::RefCell;
use std::fmt::Write as _;
use std::ptr::{with_exposed_provenance, with_exposed_provenance_mut};
use syscalls::Sysno;
use waitword::raw::Timespec;
use waitword::raw::{PRIVATE, SIZE_U32, Waitv};

/// A time argument.
#[derive(Clone, Copy, Debug)]
pub enum Time {
    /// A null pointer.
    None,
    /// Seconds and nanoseconds.
    At(i64, i64),
    /// At this address.
    Address(usize),
}

/// Long ago, on every clock.
pub const PAST: Time = Time::At(0, 1);

/// The value of each word before a call.
pub const VALUE: u64 = 7;

/// Words in memory, and how to make calls on them.
pub struct Calls {
    to: To,
    memory: Mapping,
    /// futex2's size number.
    pub size: u32,
    /// futex2's PRIVATE flag or 0.
    pub private: u32,
    /// A futex2 call that the kernel lacks was needed.
    lacking: RefCell<Option<Sysno>>,
}

const WORDS: usize = 8;
const APART: usize = 64;

impl Calls {
    fn new(to: To, size: u32, private: u32) -> Self {
        let memory = Mapping::anonymous(WORDS * APART);
        let lacking = RefCell::new(None);
        let calls = Self { to, memory, size, private, lacking };
        for word in 0..WORDS {
            calls.set(calls.word(word), VALUE);
        }
        calls
    }

    /// The width of a word.
    pub fn bits(&self) -> u32 {
        8 << self.size
    }

    /// The size of a word.
    pub fn bytes(&self) -> usize {
        1 << self.size
    }

    /// The greatest value of a word.
    pub fn all_bits(&self) -> u64 {
        u64::MAX >> (64 - self.bits())
    }

    /// The flags of a futex2 call.
    pub fn flags(&self) -> u32 {
        self.size | self.private
    }

    /// The address of a word.
    pub fn word(&self, number: usize) -> usize {
        self.memory.at::<u8>(number * APART).expose_provenance()
    }

    /// The bytes there, as many as a word has, as a number.
    pub fn get(&self, address: usize) -> u64 {
        let mut bytes = [0; 8];
        for (offset, byte) in bytes.iter_mut().enumerate().take(self.bytes()) {
            // SAFETY: inside the mapping, and no other thread uses it between calls.
            *byte = unsafe { with_exposed_provenance::<u8>(address + offset).read() };
        }
        u64::from_le_bytes(bytes)
    }

    /// Stores a word there.
    pub fn set(&self, address: usize, value: u64) {
        for (offset, byte) in value.to_le_bytes().iter().enumerate().take(self.bytes()) {
            // SAFETY: as above.
            unsafe { with_exposed_provenance_mut::<u8>(address + offset).write(*byte) };
        }
    }

    /// An entry of a list.
    pub fn entry(&self, uaddr: usize, val: u64) -> Waitv {
        Waitv { val, uaddr: uaddr as u64, flags: self.flags(), reserved: 0 }
    }

    /// futex(2) with a time. The PRIVATE flag is added.
    pub fn timed(&self, word: usize, op: i32, val: u32, time: Time, val3: u32) -> Answer {
        time.with(|time| self.futex(word, op, val, time, 0, val3))
    }

    /// futex(2). The PRIVATE flag is added.
    pub fn futex(
        &self,
        word: usize,
        op: i32,
        val: u32,
        time: usize,
        second: usize,
        val3: u32,
    ) -> Answer {
        let (op, val, val3) = (op | self.private as i32, val as usize, val3 as usize);
        self.call(Sysno::futex, [word, op as usize, val, time, second, val3])
    }

    /// futex2's `futex_wait`.
    pub fn wait(
        &self,
        word: usize,
        val: u64,
        mask: u64,
        flags: u32,
        time: Time,
        clock: i32,
    ) -> Answer {
        let (val, mask, flags) = (val as usize, mask as usize, flags as usize);
        time.with(|time| {
            let arguments = [word, val, mask, flags, time, clock as usize];
            self.call(Sysno::futex_wait, arguments)
        })
    }

    /// futex2's `futex_wake`.
    pub fn wake(&self, word: usize, mask: u64, count: i32, flags: u32) -> Answer {
        let (mask, count, flags) = (mask as usize, count as usize, flags as usize);
        self.call(Sysno::futex_wake, [word, mask, count, flags, 0, 0])
    }

    /// futex2's `futex_requeue`.
    pub fn requeue(&self, pair: &[Waitv], flags: u32, wake: i32, moved: i32) -> Answer {
        self.requeue_at(start(pair), flags, wake, moved)
    }

    /// The same with the list's address.
    pub fn requeue_at(&self, list: usize, flags: u32, wake: i32, moved: i32) -> Answer {
        let (flags, wake, moved) = (flags as usize, wake as usize, moved as usize);
        self.call(Sysno::futex_requeue, [list, flags, wake, moved, 0, 0])
    }

    /// futex2's `futex_waitv`. `count` may misstate the length of the list, which may be empty:
    /// null.
    pub fn waitv(&self, list: &[Waitv], count: u32, flags: u32, time: Time, clock: i32) -> Answer {
        self.waitv_at(start(list), count, flags, time, clock)
    }

    /// The same with the list's address.
    pub fn waitv_at(&self, list: usize, count: u32, flags: u32, time: Time, clock: i32) -> Answer {
        let (count, flags) = (count as usize, flags as usize);
        time.with(|time| {
            let arguments = [list, count, flags, time, clock as usize, 0];
            self.call(Sysno::futex_waitv, arguments)
        })
    }

    /// Whether these are the kernel's calls, not ours.
    pub fn are_the_kernel_s(&self) -> bool {
        matches!(self.to, To::Kernel)
    }

    fn call(&self, call: Sysno, arguments: [usize; 6]) -> Answer {
        if self.are_the_kernel_s() && !kernel_has(call) {
            *self.lacking.borrow_mut() = Some(call);
        }
        self.to.call(call, arguments)
    }
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
    if list.is_empty() { 0 } else { list.as_ptr().expose_provenance() }
}

/// A call, and the required answer.
pub struct Case {
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
pub fn case(name: &'static str, expected: Answer, call: fn(&Calls) -> Answer) -> Case {
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
    pub fn shared(mut self, expected: Answer) -> Self {
        self.shared = expected;
        self
    }

    /// The kernel's answer for a private word, which differs. The reason is given at the case.
    pub fn kernel_says(mut self, answer: Answer) -> Self {
        self.kernel = Some(answer);
        self
    }

    /// The answer at 8, 16 and 64 bits.
    pub fn at_other_widths(mut self, answer: Answer) -> Self {
        self.other_widths = Some(answer);
        self
    }

    /// Only where this holds.
    pub fn only(mut self, applies: fn(&Calls) -> bool) -> Self {
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

/// A table of calls on `Calls` of this name. Each row has a name, what modifies the case, the
/// answer, and the call.
#[macro_export]
macro_rules! cases {
    ($calls:ident: $(
        $name:literal $(.$modifier:ident($($argument:tt)*))* => $expected:expr, $call:expr;
    )*) => {
        vec![$(
            $crate::cases::case($name, $expected, |$calls| $call) $(.$modifier($($argument)*))*
        ),*]
    };
}

/// Makes each call, to ours at each of `sizes` and to the kernel at 32 bits; private and shared.
pub fn check(cases: Vec<Case>, sizes: &[u32]) {
    let mut wrong = String::new();
    for case in &cases {
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
    let world = if calls.private == 0 { "shared" } else { "private" };
    if let Some(call) = calls.lacking.take() {
        println!("not compared: this kernel has no {call} ({}, {world})", case.name);
        return;
    }
    // Shared words that only futex_waitv could wait for (`old_kernel.rs`).
    let is_refused = answer == Err(libc::ENOSYS) && calls.private == 0;
    if is_refused && !kernel_has(Sysno::futex_waitv) {
        println!("not compared: refused on this kernel ({}, {world})", case.name);
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
