//! The recording of a process: its directory, its files, the rings of its threads.
//!
//! A process may begin another recording, in another directory; its forked children begin
//! recordings of their own. What threads read is written before it is published, and stays mapped.
//! One thread at a time sets something up ([`Busy`]).

use crate::files::{File, Names, time};
use crate::format::{Header, MAGIC, MOST_THREADS, PAGE, RING_BYTES, Ring, VERSION};
use crate::ring::Writer;
use crate::{stacks, unwind};
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use core::time::Duration;

/// Waits that are shorter are not recorded, if the user does not say otherwise. In nanoseconds: the
/// CPU time that it takes to wake a thread, so shorter waits were spent awake.
pub const USUAL_THRESHOLD: u64 = 10_000;

/// What a process sets up once.
pub(crate) struct Recording {
    /// Where the files are: the directory of `start`, for forked children.
    directory: [u8; 4096],
    directory_len: usize,
    names: Names,
    header: *const Header,
}

/// The recording; null: none. It is written before it is stored here, and stays mapped: threads may
/// use one while another thread begins the next.
static RECORDING: AtomicPtr<Recording> = AtomicPtr::new(ptr::null_mut());

/// Whether waits are recorded.
static ON: AtomicBool = AtomicBool::new(false);
/// The number of the process that [`RECORDING`] belongs to; 0: none.
static PROCESS: AtomicU32 = AtomicU32::new(0);
/// The number of the process of which a thread sets something up; 0, or a parent's number: none.
static BUSY: AtomicU32 = AtomicU32::new(0);
/// The rings that are looked at before a new one is made: each look is a system call.
const LOOKS: usize = 8;
/// Where the next look is.
static NEXT_LOOK: AtomicU32 = AtomicU32::new(0);
static THRESHOLD: AtomicU64 = AtomicU64::new(USUAL_THRESHOLD);
/// The rings that are mapped; null from the first one that is not.
static RINGS: [AtomicPtr<Ring>; MOST_THREADS] =
    [const { AtomicPtr::new(ptr::null_mut()) }; MOST_THREADS];

/// Why a recording does not begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The directory's name is not absolute, or too long.
    Name,
    /// Its files cannot be made.
    Files,
    /// Another thread begins one.
    Busy,
}

/// Begins to record the waits of this process, into files in this directory. Waits that are shorter
/// than `threshold` (nanoseconds) are not recorded. A recording that the process has begun before
/// ends.
///
/// # Errors
/// See [`Refused`]. Nothing is recorded then.
pub fn start(process: u32, directory: &[u8], threshold: u64) -> Result<(), Refused> {
    let _busy = Busy::begin(process).ok_or(Refused::Busy)?;
    THRESHOLD.store(threshold, Ordering::Relaxed);
    set_up(directory, process)?;
    ON.store(true, Ordering::Relaxed);
    Ok(())
}

/// Whether waits are recorded.
#[inline]
pub fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// Shorter waits are not recorded, in nanoseconds.
pub(crate) fn threshold() -> u64 {
    THRESHOLD.load(Ordering::Relaxed)
}

/// The recording of the calling process, which a forked child begins here. `None` if there is none.
pub(crate) fn of_process(process: u32) -> Option<&'static Recording> {
    if PROCESS.load(Ordering::Acquire) != process && !begin_in_child(process) {
        return None;
    }
    // SAFETY: null, or written before it was stored, which Acquire shows, and never unmapped.
    unsafe { RECORDING.load(Ordering::Acquire).as_ref() }
}

/// The last recording that this process, or the one that it was forked from, has begun. To be
/// compared only.
#[inline]
pub(crate) fn last() -> *const Recording {
    // Relaxed: only compared. (A thread that finds the one before uses that once more.)
    RECORDING.load(Ordering::Relaxed)
}

impl Recording {
    pub(crate) fn header(&self) -> &'static Header {
        // SAFETY: mapped by `set_up`, and never unmapped.
        unsafe { &*self.header }
    }

    pub(crate) fn names(&self) -> &Names {
        &self.names
    }

    /// A ring for the calling thread: that of an ended thread, or a new one. `None` if every ring
    /// is in use.
    ///
    /// # Errors
    /// `Busy` if there may be one later.
    #[cold]
    pub(crate) fn take_ring(&self, process: u32) -> Result<Option<NonNull<Ring>>, Refused> {
        // SAFETY: it cannot fail.
        let me = unsafe { libc::gettid() } as u32;
        let _busy = Busy::begin(process).ok_or(Refused::Busy)?;
        if !ptr::eq(last(), self) {
            // The list of rings belongs to the next recording.
            return Err(Refused::Busy);
        }
        let ring = self.left_ring(LOOKS).or_else(|| self.new_ring());
        let ring = ring.or_else(|| self.left_ring(MOST_THREADS));
        if let Some(ring) = ring {
            // SAFETY: mapped, and never unmapped in this process.
            unsafe { ring.as_ref() }.begin(me);
        }
        Ok(ring)
    }

    fn new_ring(&self) -> Option<NonNull<Ring>> {
        let header = self.header();
        let mapped = header.rings.load(Ordering::Relaxed) as usize;
        let place = RINGS.get(mapped)?;
        let ring = self.names.map_rings(PAGE + mapped * RING_BYTES, RING_BYTES)?.cast::<Ring>();
        let ring = NonNull::new(ring)?;
        // SAFETY: mapped just now, filled with zeros, and never unmapped in this process.
        unsafe { ring.as_ref() }.number.store(mapped as u32, Ordering::Relaxed);
        place.store(ring.as_ptr(), Ordering::Relaxed);
        header.rings.store(mapped as u32 + 1, Ordering::Relaxed);
        Some(ring)
    }

    /// The ring of a thread that has ended, among this many. A thread that has ended with locks
    /// keeps its ring: it is what shows that they will not be released.
    fn left_ring(&self, looks: usize) -> Option<NonNull<Ring>> {
        let rings = self.header().rings.load(Ordering::Relaxed) as usize;
        let ended = (0..looks.min(rings)).find_map(|_| {
            // One after the other, from where the last search ended.
            let at = NEXT_LOOK.fetch_add(1, Ordering::Relaxed) as usize % rings;
            let ring = NonNull::new(RINGS.get(at)?.load(Ordering::Relaxed))?;
            // SAFETY: mapped, and never unmapped in this process.
            let head = unsafe { ring.as_ref() };
            let holds = head.held_count.load(Ordering::Relaxed) != 0;
            (!holds && !exists(head.thread.load(Ordering::Relaxed))).then_some(ring)
        })?;
        // SAFETY: a ring of this process, with its cells. Its thread has ended, so this one alone
        // writes it.
        unsafe { Writer::new(ended.as_ptr(), &self.names, self.header()) }.flush();
        Some(ended)
    }

    /// Appends the process's maps to their file, and the build IDs of the modules that are known.
    #[cold]
    pub(crate) fn note_maps(&self) {
        let Some(file) = self.names.open(File::Maps) else {
            return;
        };
        let (mut line, mut at) = (*b"# at 00000000000000000000 ns\n", 25);
        let mut time = time(libc::CLOCK_MONOTONIC);
        while time > 0 {
            at -= 1;
            line[at] = b'0' + (time % 10) as u8;
            time /= 10;
        }
        let _ = file.write_all([&line])
            && unwind::copy_to(file.number())
            && unwind::write_build_ids(file.number());
    }
}

/// In a forked child: begins a recording of its own. Returns whether there is one.
#[cold]
fn begin_in_child(process: u32) -> bool {
    let Some(_busy) = Busy::begin(process) else {
        return false;
    };
    if PROCESS.load(Ordering::Acquire) == process {
        return true;
    }
    // SAFETY: null, or the parent's, a copy of which is mapped in this process too.
    let Some(parents) = (unsafe { RECORDING.load(Ordering::Acquire).as_ref() }) else {
        return false;
    };
    set_up(&parents.directory[..parents.directory_len], process).is_ok()
}

/// Makes the files of this process. The caller has `BUSY`.
fn set_up(directory: &[u8], process: u32) -> Result<(), Refused> {
    // Those of a parent, or of an earlier recording.
    RINGS.iter().for_each(|ring| ring.store(ptr::null_mut(), Ordering::Relaxed));
    stacks::forget();
    unwind::forget();
    let realtime = time(libc::CLOCK_REALTIME);
    let pid = std::process::id();
    let names = Names::new(directory, pid, realtime).ok_or(Refused::Name)?;
    let mut kept = [0; 4096];
    kept.get_mut(..directory.len()).ok_or(Refused::Name)?.copy_from_slice(directory);
    let header: *mut Header = names.map_rings(0, PAGE).ok_or(Refused::Files)?.cast();
    // SAFETY: a page of zeros of a new file, which no other thread has.
    let fields = unsafe { &*header };
    fields.version.store(VERSION, Ordering::Relaxed);
    fields.pid.store(pid, Ordering::Relaxed);
    fields.began.store(time(libc::CLOCK_MONOTONIC), Ordering::Relaxed);
    fields.began_realtime.store(realtime, Ordering::Relaxed);
    fields.threshold.store(threshold(), Ordering::Relaxed);
    // Release: a reader that finds the magic number finds the rest.
    fields.magic.store(u64::from_ne_bytes(MAGIC), Ordering::Release);
    let recording = Recording { directory: kept, directory_len: directory.len(), names, header };
    recording.note_maps();
    let place = map_memory(size_of::<Recording>()).ok_or(Refused::Files)?.cast::<Recording>();
    // SAFETY: new memory, large enough and aligned to a page, which is never unmapped.
    unsafe { place.write(recording) };
    // Release: a thread that finds the recording finds what is written above; one that finds the
    // number finds the recording.
    RECORDING.store(place.as_ptr(), Ordering::Release);
    PROCESS.store(process, Ordering::Release);
    Ok(())
}

/// New memory, zeroed.
fn map_memory(len: usize) -> Option<NonNull<u8>> {
    // SAFETY: a new mapping at an address of the kernel's choice: it changes no memory in use.
    let address = unsafe {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        libc::mmap(ptr::null_mut(), len, access, kind, -1, 0)
    };
    if address == libc::MAP_FAILED { None } else { NonNull::new(address.cast()) }
}

/// Whether a thread of this process has this number.
fn exists(thread: u32) -> bool {
    // SAFETY: plain numbers; signal 0 is not delivered to any thread.
    unsafe { libc::syscall(libc::SYS_tgkill, std::process::id(), thread, 0) == 0 }
}

/// Held while a thread sets something up.
struct Busy;

impl Busy {
    /// `None` if another thread of this process has it for long, or the one that this handler has
    /// interrupted. (If a thread of the parent had it when this process was forked, it is free.)
    fn begin(process: u32) -> Option<Self> {
        /// Making a file takes long: up to 20 ms.
        const LOOKS: usize = 300;
        const SLEEPS_FROM: usize = 100;
        // Acquire, and Release below: what one holder writes is visible to the next one.
        let taken =
            |seen| BUSY.compare_exchange(seen, process, Ordering::Acquire, Ordering::Relaxed);
        let is_mine = (0..LOOKS).any(|look| {
            let seen = BUSY.load(Ordering::Relaxed);
            let is_mine = seen != process && taken(seen).is_ok();
            match look {
                _ if is_mine => {}
                ..SLEEPS_FROM => std::thread::yield_now(),
                _ => std::thread::sleep(Duration::from_micros(100)),
            }
            is_mine
        });
        is_mine.then_some(Self)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        BUSY.store(0, Ordering::Release);
    }
}
