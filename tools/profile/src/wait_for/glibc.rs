//! The owners that glibc's objects contain.
//!
//! The layouts are those of x86-64, which are part of glibc's ABI: programs are compiled with them.
//!
//! | object | futex words | owner |
//! |---|---|---|
//! | mutex | 0 | 8, or the word itself if the mutex is robust or priority-inheriting; kind at 16 |
//! | rwlock | 8 (phase), 12 (writers), 0 (readers) | 24: the writer; the word at 0 counts readers |
//! | thread | its ID | the expected value is the thread's ID |
//!
//! A name on a stack can deceive: musl's functions have the same names. So a mutex counts only if
//! its other fields are those of a locked mutex.

use super::graph::{Holders, Source, Wait};
use crate::remote::Remote;
use std::collections::HashSet;
use waitword_record::format::Object;

const RECURSIVE: u32 = 1;
const ERROR_CHECKING: u32 = 2;
const ROBUST: u32 = 16;
const INHERITS: u32 = 32;
const PROTECTS: u32 = 64;
const PROCESS_SHARED: u32 = 128;
/// Of a mutex's kind; 256 and 512 are about elision.
const KNOWN: u32 = 3 | ROBUST | INHERITS | PROTECTS | PROCESS_SHARED | 256 | 512;
/// The thread in the word of a lock that the kernel keeps.
const TID: u32 = 0x3fff_ffff;
/// The greatest thread ID that a kernel gives.
const MOST_TID: u32 = 1 << 22;

/// The word of a normal mutex for which threads may wait.
const CONTENDED: u32 = 2;

const IN_WRITE_PHASE: u32 = 1;
const READERS_SHIFT: u32 = 3;

/// A futex call that waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct FutexWait {
    pub(super) address: u64,
    operation: i32,
    is_private: bool,
    expected: u32,
    /// Whether the call has a timeout.
    pub(super) has_deadline: bool,
}

impl FutexWait {
    /// From the arguments of futex(2).
    pub(super) fn of(args: [u64; 6]) -> Option<Self> {
        const LOCK_PI2: i32 = 13;
        let operation = args[1] as i32 & libc::FUTEX_CMD_MASK;
        let waits = [
            libc::FUTEX_WAIT,
            libc::FUTEX_WAIT_BITSET,
            libc::FUTEX_LOCK_PI,
            libc::FUTEX_WAIT_REQUEUE_PI,
            LOCK_PI2,
        ];
        waits.contains(&operation).then_some(Self {
            address: args[0],
            operation,
            is_private: args[1] as i32 & libc::FUTEX_PRIVATE_FLAG != 0,
            expected: args[2] as u32,
            has_deadline: args[3] != 0,
        })
    }

    fn is_kernel_lock(&self) -> bool {
        !matches!(
            self.operation,
            libc::FUTEX_WAIT | libc::FUTEX_WAIT_BITSET | libc::FUTEX_WAIT_REQUEUE_PI
        )
    }

    /// The wait for a priority-inheriting lock, of whatever library: its word is the owner.
    pub(super) fn owner_of_kernel_lock(&self, remote: &Remote) -> Option<Wait> {
        if !self.is_kernel_lock() {
            return None;
        }
        let owner = remote.word(self.address)? & TID;
        let holders = if owner == 0 {
            Holders::Unknown("it has just been released")
        } else {
            Holders::Threads(vec![owner])
        };
        Some(Wait {
            object: Object::Mutex,
            address: Some(self.address),
            since: None,
            holders,
            source: Source::Kernel,
            kind: Some("priority-inheriting"),
            has_deadline: self.has_deadline,
        })
    }
}

/// What a thread waits for that sleeps in a function of glibc's.
pub(super) fn wait(remote: &Remote, object: Object, call: &FutexWait) -> Wait {
    if let Some(wait) = call.owner_of_kernel_lock(remote) {
        return wait;
    }
    let known = match object {
        Object::Mutex => mutex(remote, call.address),
        // After its wait, the thread wants the mutex again.
        Object::Condvar if call.operation == libc::FUTEX_WAIT && call.expected == CONTENDED => {
            mutex(remote, call.address)
        }
        Object::Read | Object::Write => rwlock(remote, object, call),
        Object::Join => Some(wait_for(
            Object::Join,
            Some(call.address),
            Holders::Threads(vec![call.expected & TID]),
        )),
        _ => None,
    };
    known.unwrap_or_else(|| {
        let holders = if object.is_lock() {
            Holders::Unknown("its memory does not look like glibc's")
        } else {
            Holders::None
        };
        Wait { source: Source::Stack, ..wait_for(object, Some(call.address), holders) }
    })
}

/// Where no function is known: a call as only glibc makes it for a mutex, at an address that looks
/// like a locked mutex (in a program without symbols that contains its C library), or to wait for
/// the end of one of these threads (`pthread_join` leaves its frame to a function without a name).
pub(super) fn by_call(remote: &Remote, call: &FutexWait, threads: &HashSet<u32>) -> Option<Wait> {
    if call.is_kernel_lock() {
        return call.owner_of_kernel_lock(remote);
    }
    // The kernel wakes the word of an ended thread as one that processes may share.
    let is_join = call.operation == libc::FUTEX_WAIT_BITSET
        && !call.is_private
        && threads.contains(&call.expected);
    if is_join {
        return wait(remote, Object::Join, call).into();
    }
    // With a deadline, glibc calls FUTEX_WAIT_BITSET.
    let is_mutex_call = matches!(call.operation, libc::FUTEX_WAIT | libc::FUTEX_WAIT_BITSET)
        && call.expected == CONTENDED;
    if !is_mutex_call {
        return None;
    }
    let bytes: [u8; 40] = remote.read(call.address)?;
    let (kind, owner) = certain_owner_of_mutex(&bytes, threads)?;
    let holders = Holders::Threads(vec![owner]);
    Some(Wait { kind: Some(kind), ..wait_for(Object::Mutex, Some(call.address), holders) })
}

/// The kind and the owner, if these bytes can hardly be anything but a mutex that one of these
/// threads has locked. Other futexes wait for a 2 as well, and small numbers may follow them.
fn certain_owner_of_mutex(bytes: &[u8; 40], threads: &HashSet<u32>) -> Option<(&'static str, u32)> {
    let users = u32::from_le_bytes([bytes[12], bytes[13], bytes[14], bytes[15]]);
    match owner_of_mutex(bytes)? {
        (kind, Holders::Threads(owners)) if users > 0 => match owners.as_slice() {
            [owner] if threads.contains(owner) => Some((kind, *owner)),
            _ => None,
        },
        _ => None,
    }
}

fn wait_for(object: Object, address: Option<u64>, holders: Holders) -> Wait {
    Wait {
        object,
        address,
        since: None,
        holders,
        source: Source::Glibc,
        kind: None,
        has_deadline: false,
    }
}

fn mutex(remote: &Remote, address: u64) -> Option<Wait> {
    let bytes: [u8; 40] = remote.read(address)?;
    let (kind, holders) = owner_of_mutex(&bytes)?;
    Some(Wait { kind: Some(kind), ..wait_for(Object::Mutex, Some(address), holders) })
}

/// The kind and the owner of a locked mutex. `None` if this is none.
fn owner_of_mutex(bytes: &[u8; 40]) -> Option<(&'static str, Holders)> {
    let field =
        |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let (word, owner, users, kind) = (field(0), field(8), field(12), field(16));
    let is_in_word = kind & (ROBUST | INHERITS) != 0;
    let is_mutex = kind & !KNOWN == 0
        && owner <= MOST_TID
        && users < 1 << 20
        && (is_in_word || kind & PROTECTS != 0 || word <= CONTENDED);
    if !is_mutex {
        return None;
    }
    let name = match kind {
        _ if kind & PROCESS_SHARED != 0 => "process-shared",
        _ if kind & PROTECTS != 0 => "priority-protected",
        _ if kind & INHERITS != 0 => "priority-inheriting",
        _ if kind & 3 == RECURSIVE => "recursive",
        _ if kind & 3 == ERROR_CHECKING => "error-checking",
        _ => "normal",
    };
    let owner = if is_in_word { word & TID } else { owner };
    let holders = match owner {
        0 => Holders::Unknown("it has just been released, or taken"),
        owner => Holders::Threads(vec![owner]),
    };
    Some((name, holders))
}

fn rwlock(remote: &Remote, object: Object, call: &FutexWait) -> Option<Wait> {
    let address = address_of_rwlock(call.address, call.expected)?;
    let bytes: [u8; 28] = remote.read(address)?;
    let holders = holders_of_rwlock(&bytes)?;
    Some(wait_for(object, Some(address), holders))
}

/// The address of the rwlock that this futex belongs to, whose expected value was this.
fn address_of_rwlock(futex: u64, expected: u32) -> Option<u64> {
    /// The greatest value of the words for the phase and for writers.
    const MOST_OF_PHASE: u32 = 3;
    // An rwlock begins at a multiple of eight. If writers are preferred, readers wait for the word
    // that counts them, which is the first.
    let offset = match (futex.is_multiple_of(8), expected) {
        (true, ..=MOST_OF_PHASE) => 8,
        (true, _) => 0,
        (false, _) => 12,
    };
    futex.checked_sub(offset)
}

fn holders_of_rwlock(bytes: &[u8; 28]) -> Option<Holders> {
    let field =
        |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let (readers, writer) = (field(0), field(24));
    Some(match (readers & IN_WRITE_PHASE, writer) {
        (_, writer) if writer > MOST_TID => return None,
        (0, 0) if readers >> READERS_SHIFT > 0 => Holders::Readers(readers >> READERS_SHIFT),
        (_, 0) => Holders::Unknown("it has just been released, or taken"),
        (_, writer) => Holders::Threads(vec![writer]),
    })
}

/// Whether readers hold the rwlock now, as the words that change when one comes or goes.
pub(super) fn readers(remote: &Remote, address: u64) -> Option<u32> {
    let word = remote.word(address)?;
    (word & IN_WRITE_PHASE == 0 && word >> READERS_SHIFT > 0).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes<const N: usize>(fields: &[(usize, u32)]) -> [u8; N] {
        let mut bytes = [0; N];
        for (at, value) in fields {
            bytes[*at..*at + 4].copy_from_slice(&value.to_le_bytes());
        }
        bytes
    }

    #[test]
    fn a_mutex_has_its_owner_where_its_kind_says() {
        let held = |kind| bytes::<40>(&[(0, 2), (8, 77), (12, 1), (16, kind)]);
        let owner = Holders::Threads(vec![77]);
        assert_eq!(owner_of_mutex(&held(0)), Some(("normal", owner.clone())));
        assert_eq!(owner_of_mutex(&held(1)), Some(("recursive", owner.clone())));
        assert_eq!(owner_of_mutex(&held(0x200)), Some(("normal", owner.clone())));
        assert_eq!(owner_of_mutex(&held(128)), Some(("process-shared", owner.clone())));
        let robust = bytes(&[(0, 0x8000_0000 | 77), (8, 5), (12, 1), (16, 0x90)]);
        assert_eq!(owner_of_mutex(&robust), Some(("process-shared", owner)));
        // Other memory.
        assert_eq!(owner_of_mutex(&[0xff; 40]), None);
        assert_eq!(owner_of_mutex(&bytes(&[(0, 77), (16, 0)])), None);
        assert_eq!(owner_of_mutex(&held(1 << 16)), None);
    }

    #[test]
    fn other_futexes_that_wait_for_a_2_are_no_mutexes() {
        let threads = HashSet::from([77]);
        let mutex = bytes(&[(0, 2), (8, 77), (12, 1)]);
        assert_eq!(certain_owner_of_mutex(&mutex, &threads), Some(("normal", 77)));
        // A counter, followed by small numbers.
        for fields in [[(8, 0), (12, 0)], [(8, 1000), (12, 1)], [(8, 77), (12, 0)]] {
            let other = bytes(&[(0, 2), fields[0], fields[1]]);
            assert_eq!(certain_owner_of_mutex(&other, &threads), None, "{fields:?}");
        }
    }

    #[test]
    fn an_rwlock_is_found_from_each_of_its_futexes() {
        let all = [(0x1008, 0), (0x1008, 3), (0x100c, 1), (0x1000, 4 << 3 | 2), (0x1000, 9)];
        for (futex, expected) in all {
            assert_eq!(address_of_rwlock(futex, expected), Some(0x1000), "{futex:x} {expected}");
        }
        assert_eq!(address_of_rwlock(0, 0), None);
    }

    #[test]
    fn an_rwlock_knows_its_writer_and_how_many_readers_there_are() {
        let writer = Holders::Threads(vec![88]);
        assert_eq!(holders_of_rwlock(&bytes(&[(0, 3), (24, 88)])), Some(writer));
        assert_eq!(holders_of_rwlock(&bytes(&[(0, 2 << 3)])), Some(Holders::Readers(2)));
        assert!(matches!(holders_of_rwlock(&[0; 28]), Some(Holders::Unknown(_))));
        assert_eq!(holders_of_rwlock(&[0xff; 28]), None);
    }

    #[test]
    fn only_calls_that_wait_count() {
        let private = 128;
        let call = |operation: u64| FutexWait::of([64, operation | private, 2, 0, 0, 0]);
        assert!(call(libc::FUTEX_WAIT as u64).is_some_and(|it| !it.is_kernel_lock()));
        assert!(call(libc::FUTEX_LOCK_PI as u64).is_some_and(|it| it.is_kernel_lock()));
        assert!(call(libc::FUTEX_WAKE as u64).is_none());
        let wait = libc::FUTEX_WAIT as u64;
        assert!(!call(wait).unwrap().has_deadline);
        assert!(FutexWait::of([64, wait, 2, 0x7000, 0, 0]).unwrap().has_deadline);
    }
}
