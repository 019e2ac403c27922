//! Process-shared words: waits and wakes between processes that map one file at different
//! addresses.
//!
//! Other processes are forked. What they do is short and allocates nothing. Their answer is their
//! exit status (`child.rs` of the test kit).

mod between_processes;
mod neighbours;
mod passing;
mod two_words;
mod wait_any;
mod wide;

use rustix::fd::OwnedFd;
use waitword::Error;
use waitword_testkit::{Answer, Atomic, Child, Mapping, fork, memory_file};

const LENGTH: usize = 4096;

/// Whether this kernel cannot wait for shared words of this size, alone or among others: before
/// Linux 5.16, it cannot for 64 bits. `old_kernel.rs` shows that such a wait is refused.
fn cannot_wait<A: Atomic>() -> bool {
    A::BITS == 64 && !waitword::probe::futex_waitv().is_there()
}

/// Whether this kernel cannot wait for several words some of which are shared.
fn cannot_wait_for_many() -> bool {
    !waitword::probe::futex_waitv().is_there()
}

/// A file in memory, and this process's mapping of it.
struct SharedFile {
    file: OwnedFd,
    here: Mapping,
}

impl SharedFile {
    fn new() -> Self {
        let file = memory_file(LENGTH);
        let here = Mapping::of_file(&file, LENGTH);
        Self { file, here }
    }

    /// The word `offset` bytes in.
    fn word<A: Atomic>(&self, offset: usize) -> &A {
        self.get(offset)
    }

    /// The atomics `offset` bytes in.
    fn get<T: Sync>(&self, offset: usize) -> &T {
        // SAFETY: the tests ask for atomics and structures of them, and use each place with one
        // type only.
        unsafe { self.here.get(offset) }
    }

    /// Forks a process that maps the file again, at another address, and runs `body` with that
    /// mapping.
    fn other_process(&self, body: impl FnOnce(&Elsewhere) -> Answer) -> Child {
        fork(|| {
            let there = Elsewhere(Mapping::of_file(&self.file, LENGTH));
            // Our mapping exists here too, because it was copied.
            assert_ne!(there.0.at::<u8>(0), self.here.at::<u8>(0));
            exit_status(body(&there))
        })
    }
}

/// The file as another process sees it.
struct Elsewhere(Mapping);

impl Elsewhere {
    fn word<A: Atomic>(&self, offset: usize) -> &A {
        self.get(offset)
    }

    fn get<T: Sync>(&self, offset: usize) -> &T {
        // SAFETY: as above.
        unsafe { self.0.get(offset) }
    }
}

/// Error numbers begin here among exit statuses.
const ERRORS: i32 = 100;

fn exit_status(answer: Answer) -> i32 {
    match answer {
        Ok(count) => count as i32,
        Err(code) => ERRORS + code,
    }
}

/// The answer of a process.
fn answer_of(child: Child) -> Answer {
    match child.join() {
        status if status >= ERRORS => Err(status - ERRORS),
        status => Ok(status as usize),
    }
}

/// A wait's result, as the answer of a process.
fn waited(result: Result<(), Error>) -> Answer {
    counted(result.map(|()| 0))
}

/// A count, as the answer of a process.
fn counted(result: Result<usize, Error>) -> Answer {
    result.map_err(Error::raw_os_error)
}
