//! Invalid calls through both raw futex interfaces: the kernel's error, in the kernel's order, at
//! every width.
//!
//! Each row is called on the kernel (32 bits; futex2 rows only where the kernel has the call) and
//! on the library (futex(2) at 32 bits, futex2 at all widths), for private and for shared words.
//! Where the library's answer differs on purpose, the row says so.

mod classic;
mod counts;
mod futex2;
