//! The thread's list: shared with glibc's own robust mutexes, without a head, with a foreign head.

use super::*;
use std::collections::BTreeSet;

/// glibc's own mutex, in memory that forked children share.
struct Glibc(*mut libc::pthread_mutex_t);

impl Glibc {
    fn new(inherits: bool) -> Self {
        let memory = Mapping::anonymous(4096).leak();
        // SAFETY: the mutex is initialised before it is used, and the memory is never unmapped.
        unsafe {
            let mut attributes = std::mem::zeroed();
            libc::pthread_mutexattr_init(&raw mut attributes);
            let robust = libc::PTHREAD_MUTEX_ROBUST;
            assert_eq!(libc::pthread_mutexattr_setrobust(&raw mut attributes, robust), 0);
            let shared = libc::PTHREAD_PROCESS_SHARED;
            assert_eq!(libc::pthread_mutexattr_setpshared(&raw mut attributes, shared), 0);
            if inherits {
                let inherit = libc::PTHREAD_PRIO_INHERIT;
                let set = libc::pthread_mutexattr_setprotocol(&raw mut attributes, inherit);
                assert_eq!(set, 0);
            }
            let mutex = memory.cast();
            assert_eq!(libc::pthread_mutex_init(mutex, &raw const attributes), 0);
            Self(mutex)
        }
    }

    fn lock(&self) -> i32 {
        // SAFETY: initialised.
        unsafe { libc::pthread_mutex_lock(self.0) }
    }

    fn unlock(&self) {
        // SAFETY: initialised.
        assert_eq!(unsafe { libc::pthread_mutex_unlock(self.0) }, 0);
    }
}

/// One of our mutexes or one of glibc's.
enum Either {
    Ours(&'static Shared),
    Glibc(Glibc),
}

impl Either {
    /// Four variants: ours or glibc's, with or without priority inheritance.
    fn new(number: usize) -> Self {
        let inherits = number / 2 % 2 == 1;
        if number % 2 == 0 {
            Self::Ours(Shared::new(RobustKind::Normal, PROTOCOLS[usize::from(inherits)]))
        } else {
            Self::Glibc(Glibc::new(inherits))
        }
    }

    /// Returns the POSIX error number.
    fn lock(&self) -> i32 {
        match self {
            Self::Ours(shared) => {
                shared.lock().map_or_else(RobustError::raw_os_error, RobustLocked::raw_os_error)
            }
            Self::Glibc(mutex) => mutex.lock(),
        }
    }

    fn unlock(&self) {
        match self {
            Self::Ours(shared) => unlock(&shared.mutex).unwrap(),
            Self::Glibc(mutex) => mutex.unlock(),
        }
    }

    /// The address that links point to.
    fn entry(&self) -> usize {
        32 + match self {
            Self::Ours(shared) => (&raw const shared.mutex).addr(),
            Self::Glibc(mutex) => mutex.0.addr(),
        }
    }

    fn inherits(&self) -> bool {
        match self {
            Self::Ours(shared) => shared.mutex.inherits(),
            // Bit 5 of its kind.
            // SAFETY: initialised.
            Self::Glibc(mutex) => unsafe { *mutex.0.cast::<u32>().add(4) & 0x20 != 0 },
        }
    }
}

/// The entries of the calling thread's list with their mark bits. Also checks that the back links
/// match.
fn walk() -> BTreeSet<(usize, bool)> {
    let head = crate::sys::robust::list_head().unwrap();
    let read = |address: usize| {
        // SAFETY: links of this thread's list.
        unsafe { *std::ptr::with_exposed_provenance::<usize>(address) }
    };
    assert_eq!(read(head + 16), 0, "an operation is still pending");
    let (mut entries, mut at) = (BTreeSet::new(), head);
    loop {
        let link = read(at);
        let next = link & !1;
        assert_eq!(read(next - 8), at, "the way back");
        if next == head {
            return entries;
        }
        assert!(entries.insert((next, link & 1 == 1)), "a ring");
        at = next;
    }
}

#[test]
fn ours_and_glibcs_share_one_list() {
    let _watchdog = watch();
    // Use a separate thread: the list of the test's own thread may hold another test's mutexes.
    let thread = std::thread::spawn(move || {
        let mutexes: Vec<_> = (0..12).map(Either::new).collect();
        let mut held = BTreeSet::new();
        let mut dice = 7u64;
        for _ in 0..5_000 {
            dice = dice.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let number = (dice >> 33) as usize % mutexes.len();
            if held.remove(&number) {
                mutexes[number].unlock();
            } else {
                assert_eq!(mutexes[number].lock(), 0);
                held.insert(number);
            }
            let expected: BTreeSet<_> = held
                .iter()
                .map(|&number| (mutexes[number].entry(), mutexes[number].inherits()))
                .collect();
            assert_eq!(walk(), expected);
        }
        for number in held {
            mutexes[number].unlock();
        }
        assert_eq!(walk(), BTreeSet::new());
    });
    thread.join().unwrap();
}

/// Both libraries report the mutexes that are held when the process dies, and neither reports the
/// others.
#[test]
fn a_death_with_a_mixed_list() {
    let _watchdog = watch();
    for seed in 1..40u64 {
        let mutexes: [Either; 8] = std::array::from_fn(Either::new);
        let held = Shared::new(RobustKind::Normal, RobustProtocol::None);
        let dies = fork(|| {
            let mut dice = seed;
            for _ in 0..30 {
                dice = dice.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                let number = (dice >> 33) as usize % mutexes.len();
                let bit = 1 << number;
                if held.stage[0].fetch_xor(bit, SeqCst) & bit == 0 {
                    assert_eq!(mutexes[number].lock(), 0);
                } else {
                    mutexes[number].unlock();
                }
            }
            die();
            false
        });
        assert_eq!(dies.ended(), KILLED);
        let held = held.stage[0].load(SeqCst);
        for (number, mutex) in mutexes.iter().enumerate() {
            let expected = if held & 1 << number == 0 { 0 } else { libc::EOWNERDEAD };
            assert_eq!(mutex.lock(), expected, "{number} of {held:#b}");
            mutex.unlock();
        }
        assert_eq!(walk(), BTreeSet::new());
    }
}

/// Sets the calling thread's head.
fn set_head(head: usize) {
    // SAFETY: null, or one that stays until the thread sets another.
    unsafe { crate::sys::robust::set_list_head(head, 24) }.unwrap();
}

#[test]
fn a_thread_without_a_head_gets_one() {
    let _watchdog = watch();
    let shared = Shared::new(RobustKind::Normal, RobustProtocol::None);
    let thread = std::thread::spawn(|| {
        set_head(0);
        assert!(shared.turn());
        assert_ne!(crate::sys::robust::list_head(), Ok(0));
        assert_eq!(walk().len(), 0);
        assert_eq!(shared.lock(), Ok(RobustLocked::Clean));
        assert_eq!(walk().len(), 1);
    });
    thread.join().unwrap();
    assert_eq!(shared.lock(), Ok(RobustLocked::OwnerDied));
    unlock(&shared.mutex).unwrap();
}

/// A child made by the bare system call: the kernel has forgotten the parent's head, and glibc does
/// not know.
#[test]
fn a_bare_clone_gets_one() {
    let _watchdog = watch();
    let shared = Shared::new(RobustKind::Normal, RobustProtocol::None);
    // The forking thread already has a known head and holds a mutex.
    let other = Shared::new(RobustKind::Normal, RobustProtocol::None);
    assert_eq!(other.lock(), Ok(RobustLocked::Clean));
    let child = Way::RawClone.fork(|| {
        let locked = shared.turn() && shared.lock() == Ok(RobustLocked::Clean);
        if locked {
            // SAFETY: ends the process. The C library's `getpid` might answer its parent's.
            unsafe {
                let me = libc::syscall(libc::SYS_getpid);
                libc::syscall(libc::SYS_kill, me, libc::SIGKILL);
            }
        }
        false
    });
    assert_eq!(child.ended(), KILLED);
    assert_eq!(shared.lock(), Ok(RobustLocked::OwnerDied));
    shared.mutex.mark_consistent().unwrap();
    unlock(&shared.mutex).unwrap();
    unlock(&other.mutex).unwrap();
    other.finish();
}

#[test]
fn a_strange_head_is_refused() {
    let _watchdog = watch();
    for (offset, way_back) in [(-28isize, true), (0, true), (-32, false)] {
        let shared = Shared::new(RobustKind::Normal, RobustProtocol::None);
        let thread = std::thread::spawn(move || {
            let glibcs = crate::sys::robust::list_head().unwrap();
            let strange: &mut [usize; 4] = Box::leak(Box::new([0; 4]));
            let head = (&raw mut strange[1]).expose_provenance();
            *strange = [if way_back { head } else { 0 }, head, offset as usize, 0];
            set_head(head);
            assert_eq!(shared.lock(), Err(RobustError::Unsupported));
            // SAFETY: never unmapped.
            let tried = unsafe { shared.mutex.try_lock() };
            assert_eq!(tried, Err(RobustError::Unsupported));
            assert_eq!(shared.mutex.holder(), 0);
            set_head(glibcs);
            assert!(shared.turn());
        });
        thread.join().unwrap();
    }
}

/// The kernel's limit, as documented.
#[test]
fn the_kernel_sees_to_2048() {
    let _watchdog = watch();
    const MANY: usize = 2100;
    let memory = Mapping::anonymous(MANY * size_of::<RawRobustMutex>()).leak();
    // SAFETY: zeros, which are mutexes, never unmapped.
    let mutexes: &'static [RawRobustMutex] =
        unsafe { std::slice::from_raw_parts(memory.cast(), MANY) };
    let dies = fork(|| {
        for mutex in mutexes {
            // SAFETY: never unmapped.
            let _ = unsafe { mutex.lock() };
        }
        die();
        false
    });
    assert_eq!(dies.ended(), KILLED);
    // The mutexes locked last.
    let seen_to = mutexes.iter().rev().take_while(|mutex| !mutex.is_locked()).count();
    assert_eq!(seen_to, 2048);
}
