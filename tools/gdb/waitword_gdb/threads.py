"""The threads of the process: their numbers, names and `pthread_self()`, and what they call."""

import contextlib
import re

import gdb

from . import memory

# How many frames are looked at for the lock function that a thread is in.
FRAMES = 48
# What the kernel leaves in the register of the result of a call that was interrupted: ERESTARTSYS
# to ERESTART_RESTARTBLOCK.
RESTARTS = range(-516, -511)


@contextlib.contextmanager
def selection():
    """Selects threads inside, and afterwards what was selected before."""
    thread, frame = gdb.selected_thread(), None
    with contextlib.suppress(gdb.error):
        frame = gdb.selected_frame()
    try:
        yield
    finally:
        if thread is not None and thread.is_valid():
            thread.switch()
        if frame is not None and frame.is_valid():
            frame.select()


class Thread:
    """A thread, at the moment at which the process was stopped."""

    def __init__(self, thread):
        self.thread = thread
        self.number = thread.num
        self.lwp = thread.ptid[1]
        self.name = thread.name
        self.pointer = 0
        # The number and the arguments of the system call that it is in.
        self.call = None
        if thread.is_running():
            return
        thread.switch()
        frame = gdb.newest_frame()
        self.pointer = pointer_of(thread, frame)
        self.call = call_of(frame)

    def __str__(self):
        name = f' "{self.name}"' if self.name else ""
        return f"Thread {self.number} (LWP {self.lwp}){name}"

    def functions(self):
        """The functions that it is in, from the innermost: their names and source files, of which
        either may be empty."""
        found = []
        with selection(), contextlib.suppress(gdb.error, gdb.MemoryError):
            self.thread.switch()
            frame = gdb.newest_frame()
            while frame is not None and len(found) < FRAMES:
                symtab = frame.find_sal().symtab
                found.append((frame.name() or "", symtab.filename if symtab else ""))
                frame = frame.older()
        return found


def register(frame, name):
    """The register as an unsigned number; None if this processor has none of that name."""
    try:
        return int(frame.read_register(name)) & ((1 << 64) - 1)
    except (ValueError, gdb.error):
        return None


def pointer_of(thread, frame):
    """`pthread_self()`: what the library records of its waiters; 0 if it cannot be known."""
    # On x86-64 it is the thread pointer. Elsewhere libthread_db knows it, if gdb can use that.
    pointer = register(frame, "fs_base")
    if pointer:
        return pointer
    with contextlib.suppress(gdb.error, AttributeError, NotImplementedError):
        return memory.number(bytes(thread.handle()))
    return 0


def call_of(frame):
    """The system call that a thread is in. Only x86-64: elsewhere the first argument is lost."""
    number, result, at = (register(frame, name) for name in ("orig_rax", "rax", "rip"))
    if number is None or number >= 1 << 63 or result is None:
        return None
    with contextlib.suppress(memory.Unreadable):
        if result - (1 << 64) in RESTARTS and memory.read(at - 2, 2) == b"\x0f\x05":
            arguments = ("rdi", "rsi", "rdx", "r10", "r8", "r9")
            return number, [register(frame, name) for name in arguments]
    return None


class Threads:
    """All of them."""

    def __init__(self):
        with selection():
            threads = sorted(gdb.selected_inferior().threads(), key=lambda thread: thread.num)
            self.all = [Thread(thread) for thread in threads]

    def by_pointer(self, pointer):
        found = (thread for thread in self.all if pointer and thread.pointer == pointer)
        return next(found, None)

    def by_lwp(self, lwp):
        return next((thread for thread in self.all if thread.lwp == lwp), None)

    def by_storage(self, address):
        """The thread whose thread-local storage contains the address: that lies below its pointer
        on x86-64."""
        below = [thread for thread in self.all if 0 <= thread.pointer - address < 1 << 20]
        return min(below, key=lambda thread: thread.pointer, default=None)


def lwp_named(lwp):
    """A thread by the number that is in a lock's word, in words."""
    for thread in gdb.selected_inferior().threads():
        if thread.ptid[1] == lwp:
            return f"thread {thread.num} (LWP {lwp})"
    return f"LWP {lwp}, which is not a thread of this process"


# What a lock function is for: by its name, of C's and pthread's functions; by its module, of the
# library's own, which its full name or its source file tells.
API = re.compile(
    r"^(?:ww|_*pthread)_(robust_mutex|mutex|cond|rwlock|sem|barrier|latch|auto_event|event|once"
    r"|futex|\w*join)|^_*(?:new_)?(sem)_\w*wait|^(mtx|cnd)_|^call_(once)$"
)
MODULE = re.compile(
    r"\bwaitword::lock::(\w+)|\bwaitword/src/lock/(\w+)|\bwaitword_pthread::(\w+)")
KINDS = {
    "cond": "condvar",
    "cnd": "condvar",
    "mtx": "mutex",
    "pi": "mutex",
    "sem": "semaphore",
    "robust": "robust mutex",
    "robust_mutex": "robust mutex",
    "auto_event": "event that resets itself",
    "futex": "word",
    "once_lock": "once",
    "lazy_lock": "once",
    **{kind: kind for kind in (
        "mutex", "condvar", "rwlock", "semaphore", "barrier", "latch", "event", "once")},
}


def kind_by_stack(functions):
    """What a thread waits for, by the innermost function that says it; None if none does."""
    for name, file in functions:
        found = API.search(name) or MODULE.search(name) or MODULE.search(file)
        if found:
            what = next(group for group in found.groups() if group)
            if what.endswith("join"):
                return "end of a thread"
            if what in KINDS:
                return KINDS[what]
    return None
