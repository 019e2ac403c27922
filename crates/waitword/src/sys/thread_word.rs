//! One word of each thread, 0 at first, that is reached without a call.
//!
//! In a shared library a `thread_local!` is reached by a function of the dynamic loader (`__tls_get_addr`), since the library might be
//! loaded late and its variables lie anywhere. A fast reader needs its own at each lock and each unlock, which are 3 ns long
//! otherwise. Here the word lies at a distance from the thread pointer that is fixed when the library is loaded (the
//! "initial executable" model of the ELF ABI for thread-local storage); in a program itself it costs what any other one does.
//!
//! The price: a library with such a word, when it is loaded by `dlopen`, takes its thread-local storage, some 500 bytes, from what the C
//! library keeps for this (1.6 KB, `glibc.rtld.optional_static_tls`).
//!
//! On other machines than x86-64 it is a `thread_local!`.

/// The calling thread's.
#[inline(always)]
pub(crate) fn get() -> usize {
    word::get()
}

/// Sets it.
#[inline]
pub(crate) fn set(value: usize) {
    word::set(value);
}

#[cfg(all(target_arch = "x86_64", target_pointer_width = "64"))]
mod word {
    use core::arch::{asm, global_asm};

    // Hidden: each library has its own. The name has the version, since a program may be linked with two.
    global_asm!(
        ".pushsection .tbss.waitword_thread_word, \"awT\", @nobits",
        ".globl waitword_thread_word_0_1",
        ".hidden waitword_thread_word_0_1",
        ".type waitword_thread_word_0_1, @object",
        ".size waitword_thread_word_0_1, 8",
        ".p2align 3",
        "waitword_thread_word_0_1:",
        ".zero 8",
        ".popsection",
    );

    #[inline(always)]
    pub(super) fn get() -> usize {
        let value: usize;
        // SAFETY: loads the distance of the word from the thread pointer, and then the word.
        unsafe {
            asm!(
                "mov {value}, qword ptr [rip + waitword_thread_word_0_1@GOTTPOFF]",
                "mov {value}, qword ptr fs:[{value}]",
                value = out(reg) value,
                options(nostack, preserves_flags, readonly),
            );
        }
        value
    }

    #[inline]
    pub(super) fn set(value: usize) {
        // SAFETY: loads the distance of the word from the thread pointer, and writes the word, which is nobody else's.
        unsafe {
            asm!(
                "mov {distance}, qword ptr [rip + waitword_thread_word_0_1@GOTTPOFF]",
                "mov qword ptr fs:[{distance}], {value}",
                distance = out(reg) _,
                value = in(reg) value,
                options(nostack, preserves_flags),
            );
        }
    }
}

#[cfg(not(all(target_arch = "x86_64", target_pointer_width = "64")))]
mod word {
    use core::cell::Cell;

    thread_local! {
        // No destructor and a constant start: usable at any moment of a thread's life.
        static WORD: Cell<usize> = const { Cell::new(0) };
    }

    #[inline(always)]
    pub(super) fn get() -> usize {
        WORD.get()
    }

    #[inline]
    pub(super) fn set(value: usize) {
        WORD.set(value);
    }
}

#[cfg(test)]
mod tests {
    use super::{get, set};

    #[test]
    fn each_thread_has_its_own() {
        let threads = [1, 2, 3].map(|mine| {
            std::thread::spawn(move || {
                assert_eq!(get(), 0);
                set(mine);
                std::thread::yield_now();
                assert_eq!(get(), mine);
            })
        });
        for thread in threads {
            thread.join().unwrap();
        }
    }
}
