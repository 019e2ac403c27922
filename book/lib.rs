//! The pages of the book as documentation tests: rustdoc compiles and runs their Rust blocks.
//!
//! `waitword-book check` fails if a page with Rust blocks is not in the list below.

/// Hands rustdoc these pages.
#[cfg(all(doctest, feature = "pages"))]
macro_rules! pages {
    ($($name:ident $file:literal)*) => {
        $(
            #[doc = include_str!($file)]
            mod $name {}
        )*
    };
}

#[cfg(all(doctest, feature = "pages"))]
pages! {
    two_commands "src/start/two-commands.md"
    requeue "src/understand/requeue.md"
    wake_op "src/understand/wake-op.md"
    private "src/understand/private.md"
    wide "src/understand/wide.md"
    throughput "src/understand/throughput.md"
    rust "src/use/rust.md"
    process_shared "src/use/process-shared.md"
    robust "src/use/robust.md"
    real_time "src/use/real-time.md"
    fork "src/use/fork.md"
    allocators "src/use/allocators.md"
    profile "src/observe/profile.md"
    port_rust "src/port/rust.md"
    port_futex "src/port/futex.md"
    errors "src/reference/errors.md"
    limits "src/reference/limits.md"
}
