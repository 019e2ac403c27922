//! Runs an operation in a forked child, one instruction at a time, and decodes each instruction
//! before it runs.
//!
//! Only the child's first thread is traced; its other threads run freely. Each step is a stop, and
//! the kernel counts each stop as a voluntary context switch. The switches that remain after
//! subtracting the steps are the operation's own sleeps.
//!
//! A child that hangs is ended by its own alarm; the tracer sees a status that is not a step's.

use super::child::{Child, Failure, MOST_STEPS, REFUSED};
use super::scene;
use super::seen::Seen;
use super::table::Costs;
use iced_x86::Code;

/// Forks a child that does `prepare` and then `operation`, and watches the operation.
pub(super) fn watch(prepare: fn(), operation: fn()) -> Result<Costs, Failure> {
    let child = Child::fork(|| {
        scene::set();
        prepare();
        // SAFETY: asks to be traced by the parent, which expects it.
        if unsafe { libc::ptrace(libc::PTRACE_TRACEME) } != 0 {
            return REFUSED;
        }
        breakpoint();
        operation();
        breakpoint();
        0
    })?;
    child.expect_trap()?;
    let before = child.registers();
    let switches = child.voluntary_switches();
    let mut seen = Seen::new(&before);
    let mut steps = 0;
    loop {
        let now = child.registers();
        let instruction = seen.instruction_at(&child, now.rip);
        if instruction.code() == Code::Int3 {
            break;
        }
        if steps == MOST_STEPS {
            return Err(Failure::Endless);
        }
        seen.add(&instruction, &now);
        child.step();
        child.expect_trap()?;
        steps += 1;
    }
    seen.costs.switches = child.voluntary_switches() - switches - steps;
    Ok(seen.costs())
}

/// Stops the calling thread, which is traced.
fn breakpoint() {
    // SAFETY: the tracer resumes the thread after the instruction. The compiler moves no memory
    // access across the asm block.
    unsafe { std::arch::asm!("int3", options(nostack)) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use scene::{AWAKE, IT};
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed, Ordering::SeqCst, fence};

    /// The costs of an operation; `None`, after printing a message, if nothing can be counted.
    fn costs(operation: fn()) -> Option<Costs> {
        let _guard = waitword_testkit::watch();
        if crate::cpus::allowed_cpus().len() < 2 {
            println!("skipped: one CPU");
            return None;
        }
        match watch(|| (), operation) {
            Ok(costs) => Some(costs),
            Err(Failure::Refused(why)) => {
                println!("skipped: {why}");
                None
            }
            Err(failure) => panic!("{failure}"),
        }
    }

    /// Atomic operations, system calls, switches, own lines, other lines.
    fn expect(operation: fn(), columns: [u64; 5]) {
        if let Some(costs) = costs(operation) {
            let seen = [costs.atomic, costs.calls, costs.switches, costs.own, costs.other];
            assert_eq!(seen, columns);
        }
    }

    #[test]
    fn plain_and_atomic_accesses_are_told_apart() {
        expect(|| (), [0, 0, 0, 0, 0]);
        expect(|| IT.word.store(IT.word.load(Relaxed), Relaxed), [0, 0, 0, 1, 0]);
        expect(|| _ = IT.word.fetch_add(1, Relaxed), [1, 0, 0, 1, 0]);
        expect(|| _ = IT.word.swap(1, Relaxed), [1, 0, 0, 1, 0]);
        expect(|| _ = IT.word.compare_exchange(7, 8, Relaxed, Relaxed), [1, 0, 0, 1, 0]);
        expect(|| fence(SeqCst), [1, 0, 0, 0, 0]);
    }

    #[test]
    fn each_line_is_counted_once_and_its_owner_known() {
        static ELSEWHERE: AtomicU32 = AtomicU32::new(0);
        let twice_on_one_line_and_once_elsewhere = || {
            IT.word.store(1, Relaxed);
            IT.word.store(2, Relaxed);
            IT.other_word.store(1, Relaxed);
            ELSEWHERE.store(1, Relaxed);
        };
        expect(twice_on_one_line_and_once_elsewhere, [0, 0, 0, 2, 1]);
    }

    #[test]
    fn a_system_call_is_counted_and_a_sleep_in_one_is_a_switch() {
        expect(|| _ = std::os::unix::process::parent_id(), [0, 1, 0, 0, 0]);
        let sleep = || {
            let time = libc::timespec { tv_sec: 0, tv_nsec: 1_000_000 };
            // SAFETY: a valid time; the remaining time is not requested.
            unsafe { libc::syscall(libc::SYS_nanosleep, &raw const time, 0_usize) };
        };
        expect(sleep, [0, 1, 1, 0, 0]);
    }

    #[test]
    fn a_repeated_instruction_is_one_instruction() {
        fn fill<const BYTES: usize>() {
            let mut bytes = [0_u8; BYTES];
            // SAFETY: writes zeros to exactly these bytes; the calling convention guarantees that
            // the direction flag is clear.
            unsafe {
                std::arch::asm!(
                    "rep stosb",
                    inout("rcx") BYTES => _,
                    inout("rdi") bytes.as_mut_ptr() => _,
                    in("al") 0_u8,
                    options(nostack),
                );
            }
            std::hint::black_box(bytes[0]);
        }
        let steps = |operation| costs(operation).map(|costs| costs.instructions);
        // The array's own zeros take instructions, too, but equally many for both.
        assert_eq!(steps(fill::<17>), steps(fill::<31>));
    }

    #[test]
    fn an_operation_that_does_not_end_or_dies_is_reported() {
        let _guard = waitword_testkit::watch();
        if costs(|| ()).is_none() {
            return;
        }
        let endless = || {
            while IT.word.load(Relaxed) == 0 {
                std::hint::spin_loop();
            }
        };
        assert_eq!(watch(|| (), endless), Err(Failure::Endless));
        // SAFETY: ends the child.
        let exits = || unsafe { libc::_exit(7) };
        assert_eq!(watch(|| (), exits), Err(Failure::Died(7 << 8)));
        assert_eq!(watch(exits, || ()), Err(Failure::Died(7 << 8)));
        // SAFETY: as above.
        let never_asleep = || unsafe { libc::_exit(AWAKE) };
        assert_eq!(watch(never_asleep, || ()), Err(Failure::Awake));
    }
}
