//! The recording of a process: its directory, its files, the rings of its threads.
//!
//! A process may begin another recording, in another directory; its forked children begin
//! recordings of their own. What threads read is written before it is published, and stays mapped,
//! also when the recording has ended: what is left of it then are addresses without memory, 16 KiB,
//! and a page for each thread that was recorded.
//! One thread at a time sets something up ([`Busy`]).

use crate::files::{File, Names, time};
use crate::format::{Header, MAGIC, MOST_THREADS, PAGE, RING_BYTES, Ring, VERSION};
use crate::ring::Writer;
use crate::{stacks, switches, unwind};
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use core::time::Duration;

/// Waits that are shorter are not recorded, if the user does not say otherwise. In nanoseconds: the
/// CPU time that it takes to wake a thread, so shorter waits were spent awake.
pub const USUAL_THRESHOLD: u64 = 10_000;

/// What a process sets up once.
pub(crate) struct Recording {
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
    /// This kernel's pages are larger than those that the files are made of (an AArch64 kernel with
    /// pages of 16 or 64 KiB).
    Pages,
}

/// Begins a recording (`control::start`).
pub(crate) fn start(
    process: u32,
    directory: impl Iterator<Item = u8> + Clone,
    threshold: u64,
) -> Result<(), Refused> {
    // SAFETY: it has no preconditions.
    if unsafe { libc::sysconf(libc::_SC_PAGESIZE) } != PAGE as libc::c_long {
        return Err(Refused::Pages);
    }
    let _busy = Busy::begin(process).ok_or(Refused::Busy)?;
    end(process);
    THRESHOLD.store(threshold, Ordering::Relaxed);
    set_up(directory, process)?;
    ON.store(true, Ordering::Relaxed);
    Ok(())
}

/// Ends the recording. What was recorded is in its files; other threads may be in the middle of
/// writing their last record.
pub(crate) fn stop(process: u32) {
    // Not now: its memory stays as it is.
    match Busy::begin(process) {
        Some(_busy) => end(process),
        None => ON.store(false, Ordering::Relaxed),
    }
}

/// As [`stop`]. The caller has `BUSY`.
fn end(process: u32) {
    let was_on = ON.swap(false, Ordering::Relaxed);
    if was_on && PROCESS.load(Ordering::Acquire) == process {
        // SAFETY: null, or written before it was stored, which Acquire shows, and never unmapped.
        if let Some(recording) = unsafe { RECORDING.load(Ordering::Acquire).as_ref() } {
            recording.note_maps();
            recording.retire();
        }
    }
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
    fn fill(&mut self, directory: impl Iterator<Item = u8> + Clone) -> Result<(), Refused> {
        let (pid, realtime) = (std::process::id(), time(libc::CLOCK_REALTIME));
        self.names.fill(directory, pid, realtime).ok_or(Refused::Name)?;
        // SAFETY: nothing is replaced.
        let header = unsafe { self.names.map_rings(0, PAGE, None) }.ok_or(Refused::Files)?;
        self.header = header.cast();
        let fields = self.header();
        fields.version.store(VERSION, Ordering::Relaxed);
        fields.pid.store(pid, Ordering::Relaxed);
        fields.began.store(time(libc::CLOCK_MONOTONIC), Ordering::Relaxed);
        fields.began_realtime.store(realtime, Ordering::Relaxed);
        fields.threshold.store(threshold(), Ordering::Relaxed);
        // Release: a reader that finds the magic number finds the rest.
        fields.magic.store(u64::from_ne_bytes(MAGIC), Ordering::Release);
        self.note_maps();
        Ok(())
    }

    pub(crate) fn header(&self) -> &'static Header {
        // SAFETY: a page of zeros of a new file, mapped by `fill`, and never unmapped.
        unsafe { &*self.header }
    }

    pub(crate) fn names(&self) -> &Names {
        &self.names
    }

    /// A ring for the calling thread: that of an ended thread, or a new one. `None` if every ring
    /// is in use. A new one takes the place of `before`, the thread's ring in an earlier recording
    /// of this process, which it does not use any more.
    ///
    /// # Errors
    /// `Busy` if there may be one later.
    #[cold]
    pub(crate) fn take_ring(
        &self,
        process: u32,
        before: Option<NonNull<Ring>>,
    ) -> Result<Option<NonNull<Ring>>, Refused> {
        // Not `libc::gettid`, which the C library has since 2.30 only.
        // SAFETY: it takes no arguments, and cannot fail.
        let me = unsafe { libc::syscall(libc::SYS_gettid) } as u32;
        let _busy = Busy::begin(process).ok_or(Refused::Busy)?;
        if !ptr::eq(last(), self) {
            // The list of rings belongs to the next recording.
            return Err(Refused::Busy);
        }
        let ring = self.left_ring(LOOKS).or_else(|| self.new_ring(before));
        let ring = ring.or_else(|| self.left_ring(MOST_THREADS));
        if let Some(ring) = ring {
            // SAFETY: mapped, and never unmapped in this process.
            unsafe { ring.as_ref() }.begin(me);
        }
        Ok(ring)
    }

    fn new_ring(&self, before: Option<NonNull<Ring>>) -> Option<NonNull<Ring>> {
        let header = self.header();
        let mapped = header.rings.load(Ordering::Relaxed) as usize;
        let place = RINGS.get(mapped)?;
        let offset = PAGE + mapped * RING_BYTES;
        // SAFETY: the calling thread alone used it, and will not any more.
        let ring = unsafe { self.names.map_rings(offset, RING_BYTES, before.map(NonNull::cast)) };
        let ring = ring?.cast::<Ring>();
        // SAFETY: mapped just now, filled with zeros, and never unmapped in this process.
        unsafe { &*ring }.number.store(mapped as u32, Ordering::Relaxed);
        place.store(ring, Ordering::Relaxed);
        header.rings.store(mapped as u32 + 1, Ordering::Relaxed);
        NonNull::new(ring)
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
        let mut writer = unsafe { Writer::new(ended.as_ptr(), &self.names, self.header()) };
        writer.write_turns();
        writer.flush();
        Some(ended)
    }

    /// The files belong to the user from here on. A thread that is in the middle of writing goes on
    /// in memory of its own, so nothing is unmapped. [`Self::take_ring`] uses its addresses again.
    fn retire(&self) {
        self.names.close();
        let rings = RINGS.iter().map(|ring| ring.load(Ordering::Relaxed));
        for ring in rings.take_while(|ring| !ring.is_null()) {
            // SAFETY: a ring of this recording, which all that use it believe only as far as any
            // bytes can be believed.
            unsafe { forget_contents(ring.cast(), RING_BYTES) };
        }
        // SAFETY: its first page, of which the same is true.
        unsafe { forget_contents(self.header.cast_mut().cast(), PAGE) };
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
    set_up(parents.names.directory().iter().copied(), process).is_ok()
}

/// Makes the files of this process. The caller has `BUSY`.
fn set_up(directory: impl Iterator<Item = u8> + Clone, process: u32) -> Result<(), Refused> {
    // Those of a parent, or of an earlier recording.
    RINGS.iter().for_each(|ring| ring.store(ptr::null_mut(), Ordering::Relaxed));
    stacks::forget();
    match PROCESS.load(Ordering::Acquire) == process {
        // Threads may be in the middle of their last record of the recording before.
        true => {
            unwind::write_modules_again();
            switches::unmap(MOST_THREADS);
        }
        // No thread of this process has recorded anything yet.
        false => {
            unwind::forget();
            switches::forget();
        }
    }
    let place = map_memory(size_of::<Recording>()).ok_or(Refused::Files)?.cast::<Recording>();
    // SAFETY: new memory, large enough and aligned to a page, of zeros, which are a recording
    // without names. No other thread has it.
    let recording = unsafe { &mut *place.as_ptr() };
    if let Err(refused) = recording.fill(directory) {
        // SAFETY: mapped above, and known only here.
        unsafe { libc::munmap(place.as_ptr().cast(), size_of::<Recording>()) };
        return Err(refused);
    }
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

/// Makes this memory zeros of the process's own: no file's.
///
/// # Safety
/// Whole pages, mapped by this module, of which any bytes may be found at any time.
unsafe fn forget_contents(address: *mut u8, len: usize) {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
    // SAFETY: by this function's contract. If it fails, the memory stays the file's.
    unsafe { libc::mmap(address.cast(), len, access, kind, -1, 0) };
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
