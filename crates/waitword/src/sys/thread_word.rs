//! Two words of each thread, initially 0, that are accessed without a call.
//!
//! In a shared library, access to a `thread_local!` calls a function of the dynamic loader
//! (`__tls_get_addr`), since the library might be loaded late and its variables could be anywhere.
//! A biased reader needs its own word at each lock and each unlock, which otherwise take 3 ns, and
//! so does a lock that records its owner. Here the words are at a distance from the thread pointer
//! that is fixed when the library is loaded (the initial-exec model of the ELF ABI for thread-local
//! storage). In the main program they cost as much as any other thread-local.
//!
//! The price: a library with such words that is loaded by `dlopen` takes its thread-local storage,
//! some 500 bytes, from a reserve of the C library (1.6 KB, `glibc.rtld.optional_static_tls`).
//!
//! On machines other than x86-64, and in a model, they are in a `thread_local!`.

/// One of the calling thread's words.
#[derive(Clone, Copy)]
pub(crate) struct ThreadWord<const OFFSET: usize>;

/// The place of its slots as a visible reader (`lock/rwlock/slot_table.rs`).
pub(crate) const PLACE: ThreadWord<0> = ThreadWord;
/// Its number (`sys/tid.rs`).
pub(crate) const NUMBER: ThreadWord<8> = ThreadWord;

#[cfg(all(target_arch = "x86_64", target_pointer_width = "64", not(loom)))]
mod word {
    use super::ThreadWord;
    use core::arch::{asm, global_asm};

    /// The name of the words' symbol. It is hidden: each library has its own. The name includes the
    /// version, since a program may be linked with two. The unit tests are linked with the library
    /// too, which the test kit uses.
    #[cfg(not(test))]
    macro_rules! words {
        () => {
            "waitword_thread_words_0_1"
        };
    }
    #[cfg(test)]
    macro_rules! words {
        () => {
            "waitword_thread_words_of_unit_tests"
        };
    }

    global_asm!(
        ".pushsection .tbss.waitword_thread_words, \"awT\", @nobits",
        concat!(".globl ", words!()),
        concat!(".hidden ", words!()),
        concat!(".type ", words!(), ", @object"),
        concat!(".size ", words!(), ", 16"),
        ".p2align 3",
        concat!(words!(), ":"),
        ".zero 16",
        ".popsection",
    );

    impl<const OFFSET: usize> ThreadWord<OFFSET> {
        #[inline(always)]
        pub(crate) fn get(self) -> u64 {
            const { assert!(OFFSET == 0 || OFFSET == 8) };
            let value: u64;
            // SAFETY: the loader has stored at GOTTPOFF how far the symbol above is from the thread
            // pointer, in every thread; OFFSET, which is checked above, selects one of the two
            // words there. Only the calling thread has its address, so no other thread writes it
            // meanwhile. A signal handler may, and either value is whole.
            unsafe {
                asm!(
                    concat!("mov {value}, qword ptr [rip + ", words!(), "@GOTTPOFF]"),
                    "mov {value}, qword ptr fs:[{value} + {offset}]",
                    value = out(reg) value,
                    offset = const OFFSET,
                    options(nostack, preserves_flags, readonly),
                );
            }
            value
        }

        #[inline]
        pub(crate) fn set(self, value: u64) {
            const { assert!(OFFSET == 0 || OFFSET == 8) };
            // SAFETY: as in `get`, the address is that of a word of the calling thread. No other
            // thread has its address, and there is no reference to it. The store is one
            // instruction, so a signal handler finds the word whole.
            unsafe {
                asm!(
                    concat!("mov {distance}, qword ptr [rip + ", words!(), "@GOTTPOFF]"),
                    "mov qword ptr fs:[{distance} + {offset}], {value}",
                    distance = out(reg) _,
                    value = in(reg) value,
                    offset = const OFFSET,
                    options(nostack, preserves_flags),
                );
            }
        }
    }
}

#[cfg(not(all(target_arch = "x86_64", target_pointer_width = "64", not(loom))))]
mod word {
    use super::ThreadWord;
    use crate::atomic::thread_static;
    use core::cell::Cell;

    thread_static! {
        // No destructor and a constant initial value: usable at any moment of a thread's life.
        static WORDS: [Cell<u64>; 2] = const { [Cell::new(0), Cell::new(0)] };
    }

    impl<const OFFSET: usize> ThreadWord<OFFSET> {
        #[inline(always)]
        pub(crate) fn get(self) -> u64 {
            WORDS.with(|words| words[OFFSET / 8].get())
        }

        #[inline]
        pub(crate) fn set(self, value: u64) {
            WORDS.with(|words| words[OFFSET / 8].set(value));
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::ThreadWord;

    #[test]
    fn each_thread_has_its_own() {
        const FIRST: ThreadWord<0> = ThreadWord;
        const SECOND: ThreadWord<8> = ThreadWord;
        let threads = [1, 2, 3].map(|mine| {
            std::thread::spawn(move || {
                assert_eq!((FIRST.get(), SECOND.get()), (0, 0));
                FIRST.set(mine);
                SECOND.set(10 * mine);
                std::thread::yield_now();
                assert_eq!((FIRST.get(), SECOND.get()), (mine, 10 * mine));
            })
        });
        for thread in threads {
            thread.join().unwrap();
        }
    }
}
