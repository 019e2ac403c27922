//! Bad calls through both doors: the kernel's error, in the kernel's order, at every width.
//!
//! Each row is made to the kernel (32 bits; futex2 rows only where the kernel has the call) and to the
//! library (the classic door at 32 bits, futex2's at all widths), for private and for shared words. Where the
//! library's answer is meant to differ, the row says so.

mod support;

#[path = "door/classic.rs"]
mod classic;
#[path = "door/counts.rs"]
mod counts;
#[path = "door/futex2.rs"]
mod futex2;
