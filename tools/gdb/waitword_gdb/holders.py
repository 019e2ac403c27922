"""Who holds what: what the words of a lock say, the kernel's lists of robust mutexes, and the slots
of an rwlock's readers.

A plain mutex keeps no owner, and an rwlock counts its readers. So not every holder is known.
"""

from . import memory, words
from .table import READERS_SLOT

# The robust list is in the thread's block, somewhere (`struct pthread` of glibc, 2304 bytes in
# 2.36): the head, the offset of a mutex's word from its link, and a mutex in transition.
BLOCK = 4096
WORD_FROM_LINK = -32 & (1 << 64) - 1
# The kernel follows as many links.
MOST_LINKS = 2048
# pthread_rwlock_t in the drop-in (crates/waitword-pthread/src/rwlock/object.rs): the writer.
WRITER = 16


def state(kind, address, is_drop_in=False):
    """What the object at an address says of itself, and its holder: a number, a function of
    `Threads` that finds the thread, or None."""
    if kind.endswith("-bit word"):
        size = int(kind.split("-")[0]) // 8
        return f"holds {memory.unsigned(address, size)}", None
    if kind == "mutex":
        word, data = memory.unsigned(address, 4), memory.unsigned(address + 4, 4)
        return words.mutex(word, data), words.mutex_owner(word, data)
    if kind in ("robust mutex", "priority-inheriting word"):
        word = memory.unsigned(address, 4)
        return words.held_word(word), word & words.TID or None
    if kind == "rwlock":
        word = memory.unsigned(address, 8)
        writer = words.rwlock_owner(word)
        if writer is None and word & 1 and is_drop_in:
            block = memory.pointer(address + WRITER)
            return words.rwlock(word), lambda threads: threads.by_pointer(block)
        return words.rwlock(word), writer
    if kind == "condvar":
        fields = (memory.unsigned(address + at, size) for at, size in ((0, 8), (8, 4), (12, 4)))
        return words.condvar(*fields), None
    if kind == "barrier":
        state_, count = memory.unsigned(address, 8), memory.unsigned(address + 8, 4)
        return words.barrier(state_, count), None
    if kind in ("latch", "once"):
        return getattr(words, kind)(memory.unsigned(address, 4)), None
    if kind == "event":
        return words.event(memory.unsigned(address, 8)), None
    if kind.startswith("semaphore"):
        return words.semaphore(memory.unsigned(address, 8)), None
    if kind == "event that resets itself":
        return words.auto_event(memory.unsigned(address, 8)), None
    return None, None


def robust_mutexes(thread):
    """The addresses of the robust mutexes that a thread holds, ours and glibc's."""
    if not thread.pointer:
        return []
    try:
        block = memory.read(thread.pointer, BLOCK)
    except memory.Unreadable:
        return []
    offset = WORD_FROM_LINK.to_bytes(8, "little")
    at = block.find(offset)
    while at >= 0:
        if at % memory.POINTER == 0 and at >= memory.POINTER:
            found = followed(thread.pointer + at - memory.POINTER)
            if found is not None:
                return found
        at = block.find(offset, at + 1)
    return []


def followed(head):
    """The mutexes of the list with this head; None if there is no list."""
    found = []
    try:
        link = memory.pointer(head)
        while link & ~1 != head:
            if len(found) == MOST_LINKS or not link:
                return None
            found.append((link & ~1) - 32)
            link = memory.pointer(link & ~1)
    except memory.Unreadable:
        return None
    return found


def slots(library):
    """The rwlocks that readers hold through slots: how many readers, by the lock's address."""
    about = library.subjects.get("slots of readers")
    if about is None:
        return {}
    lines = about["slots.lines"]
    data = memory.read(about.address + lines.offset, lines.size)
    readers = {}
    for at in range(0, len(data), 8):
        lock = memory.number(data[at:at + 8]) & READERS_SLOT
        if lock:
            readers[lock] = readers.get(lock, 0) + 1
    return readers


def lock_of_slot(library, address):
    """The rwlock of the reader whose slot a writer waits for, if the address is that of a slot."""
    about = library.subjects.get("slots of readers")
    if about is None:
        return None
    lines = about["slots.lines"]
    if not 0 <= address - about.address - lines.offset < lines.size:
        return None
    return memory.pointer(address) & READERS_SLOT
