//! The entry of `syscall` and the way to the kernel, on AArch64.

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
    "cmp w0, {futex}",
    "b.ne 1f",
    // An operation on shared words.
    "tbz w2, {private_bit}, waitword_kernel",
    "b 2f",
    "1:",
    // 449, or 454 to 456. The way to the kernel sets w8 again.
    "sub w8, w0, {futex_waitv}",
    "cbz w8, 2f",
    "sub w8, w8, {wake_less_waitv}",
    "cmp w8, {requeue_less_wake}",
    "b.hi waitword_kernel",
    "2:",
    // Have we been relocated?
    "adrp x8, :got:__errno_location",
    "ldr x8, [x8, :got_lo12:__errno_location]",
    "cbz x8, waitword_kernel",
    // A function of seven parameters takes the arguments in the same places.
    "b {serve}",
    ".cfi_endproc",
    ".size waitword_syscall, . - waitword_syscall",
    // glibc's `syscall`, instruction by instruction.
    ".p2align 4",
    ".type waitword_kernel, @function",
    ".globl waitword_kernel",
    "waitword_kernel:",
    ".cfi_startproc",
    "uxtw x8, w0",
    "mov x0, x1",
    "mov x1, x2",
    "mov x2, x3",
    "mov x3, x4",
    "mov x4, x5",
    "mov x5, x6",
    "mov x6, x7",
    "svc 0",
    "cmn x0, 4095",
    "b.cs 2f",
    "ret",
    "2:",
    "adrp x8, :got:__errno_location",
    "ldr x8, [x8, :got_lo12:__errno_location]",
    "cbz x8, 3f",
    "b {failed}",
    "3:",
    "mov x0, -1",
    "ret",
    ".cfi_endproc",
    ".size waitword_kernel, . - waitword_kernel",
    futex = const FUTEX,
    private_bit = const PRIVATE.trailing_zeros(),
    futex_waitv = const FUTEX_WAITV,
    wake_less_waitv = const FUTEX_WAKE - FUTEX_WAITV,
    requeue_less_wake = const FUTEX_REQUEUE - FUTEX_WAKE,
    serve = sym super::serve,
    failed = sym super::failed,
);
