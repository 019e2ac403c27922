//! Constructors that are `const`, except in a model: loom's atomics can be made only while a model
//! runs.

/// A `const fn`, or a plain one with `--cfg loom`.
macro_rules! const_fn {
    (
        $(#[$about:meta])*
        $visible:vis const fn $name:ident($($argument:ident: $kind:ty),*) -> $result:ty
        $body:block
    ) => {
        $(#[$about])*
        #[cfg(not(loom))]
        $visible const fn $name($($argument: $kind),*) -> $result $body

        $(#[$about])*
        #[cfg(loom)]
        $visible fn $name($($argument: $kind),*) -> $result $body
    };
}

pub(super) use const_fn;
