//! The entry of `syscall` and the way to the kernel, on x86-64.

use super::arguments::{FUTEX, FUTEX_REQUEUE, FUTEX_WAITV, FUTEX_WAKE};
use super::classic::PRIVATE;
use core::arch::global_asm;

global_asm!(
    ".p2align 4",
    ".type waitword_syscall, @function",
    ".globl waitword_syscall",
    "waitword_syscall:",
    ".cfi_startproc",
    // The kernel too uses only the low half of a number.
    "cmp edi, {futex}",
    "jne 1f",
    // An operation on shared words. Every `ret` between a system call and its caller may be
    // mispredicted, so this does not go through `serve`.
    "test edx, {private}",
    "je waitword_kernel",
    "jmp 2f",
    "1:",
    // 449, or 454 to 456. Of the registers without arguments, rax is the one that the way to the
    // kernel sets again.
    "lea eax, [rdi - {futex_waitv}]",
    "test eax, eax",
    "je 2f",
    "sub eax, {wake_less_waitv}",
    "cmp eax, {requeue_less_wake}",
    "ja waitword_kernel",
    "2:",
    // Have we been relocated?
    "mov rax, qword ptr [rip + __errno_location@GOTPCREL]",
    "test rax, rax",
    "je waitword_kernel",
    // A function of seven parameters takes the arguments in the same places.
    "jmp {serve}",
    ".cfi_endproc",
    ".size waitword_syscall, . - waitword_syscall",
    // glibc's `syscall`, instruction by instruction.
    ".p2align 4",
    ".type waitword_kernel, @function",
    ".globl waitword_kernel",
    "waitword_kernel:",
    ".cfi_startproc",
    "mov rax, rdi",
    "mov rdi, rsi",
    "mov rsi, rdx",
    "mov rdx, rcx",
    "mov r10, r8",
    "mov r8, r9",
    "mov r9, [rsp + 8]",
    "syscall",
    "cmp rax, -4095",
    "jae 2f",
    "ret",
    "2:",
    "mov rdi, rax",
    "mov rax, qword ptr [rip + __errno_location@GOTPCREL]",
    "test rax, rax",
    "je 3f",
    "jmp {failed}",
    "3:",
    "or rax, -1",
    "ret",
    ".cfi_endproc",
    ".size waitword_kernel, . - waitword_kernel",
    futex = const FUTEX,
    private = const PRIVATE,
    futex_waitv = const FUTEX_WAITV,
    wake_less_waitv = const FUTEX_WAKE - FUTEX_WAITV,
    requeue_less_wake = const FUTEX_REQUEUE - FUTEX_WAKE,
    serve = sym super::serve,
    failed = sym super::failed,
);
