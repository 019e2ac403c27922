"""What the words of each lock say, as text and as the holder's number.

Each function describes the state by its words as numbers; the files that define them are named.
`owner` turns a thread's number into text.
"""

from .threads import lwp_named as owner

TID = (1 << 30) - 1
DIED = 1 << 30
WAITERS = 1 << 31


def bit(word, number):
    return word >> number & 1 != 0


def joined(*parts):
    return ", ".join(part for part in parts if part)


def plural(count, one):
    return f"{count} {one}" if count == 1 else f"{count} {one}s"


def held_word(word):
    """A word in the kernel's format (lock/pi.rs)."""
    if not word & TID:
        return joined("unlocked", word & DIED and "its owner died")
    return joined(f"locked by {owner(word & TID)}", word & WAITERS and "threads wait")


def mutex(word, data):
    """lock/mutex/word.rs, and owner.rs for mutexes that keep an owner."""
    flavour = ("", "throughput", "wait-wake", "priority-inheriting")[data >> 30]
    if not bit(word, 3):
        return joined(
            "locked" if bit(word, 0) else "unlocked",
            bit(word, 1) and "threads wait",
            word >> 8 & 0xff and "a waiter is awake",
            flavour,
            bit(data, 29) and "process-shared",
        )
    inherits, recursive, checks, shared = (bit(word, number) for number in (4, 5, 6, 7))
    if recursive and checks:
        return "destroyed"
    if inherits:
        state = held_word(data)
    elif bit(word, 0):
        state = joined(f"locked by {owner(data & TID)}", bit(word, 1) and "threads wait")
    else:
        state = joined("unlocked", bit(word, 1) and "threads wait")
    return joined(
        state,
        word >> 16 and f"{(word >> 16) + 1} times",
        recursive and "recursive",
        checks and "error-checking",
        "priority-inheriting" if inherits else flavour,
        shared and "process-shared",
    )


def mutex_owner(word, data):
    """The number of the thread that holds it; None if it is free or keeps no owner."""
    if not bit(word, 3):
        return None
    if bit(word, 4) or bit(word, 0):
        return data & TID or None
    return None


def robust(word, depth, state, kind):
    """lock/robust/raw.rs and word.rs."""
    return joined(
        held_word(word),
        depth > 1 and f"{depth} times",
        (None, "inconsistent: an owner died", "not recoverable")[state] if state < 3 else "broken",
        (None, "recursive", "error-checking", None)[kind & 3],
        kind & 0x20 and "priority-inheriting",
    )


def condvar(mutex_word, sequence, traits):
    """lock/condvar/word.rs."""
    if traits & 1:
        count = mutex_word >> 32
        return joined(plural(count, "waiter") if count else "no waiters", "process-shared")
    if mutex_word & 1:
        return f"used with a priority-inheriting mutex, {plural(sequence, 'signal')} so far"
    if mutex_word:
        return f"threads wait, with the mutex at {mutex_word & ~3:#x}"
    return "no waiters"


def rwlock(word):
    """lock/rwlock/word.rs."""
    high = word >> 32
    if bit(word, 0):
        state = f"locked for writing by {owner(high)}" if high else "locked for writing"
    elif high:
        state = f"locked by {plural(high, 'reader')}"
    elif bit(word, 7):
        state = "biased: readers may hold it through slots"
    else:
        state = "unlocked"
    return joined(
        state,
        bit(word, 1) and not bit(word, 0) and "locked upgradably, or a bias is being revoked",
        bit(word, 2) and "an upgrade waits",
        bit(word, 3) and "readers wait",
        (bit(word, 4) or bit(word, 5)) and "writers wait",
        bit(word, 8) and "prefers writers",
        bit(word, 9) and "process-shared",
    )


def rwlock_owner(word):
    return word >> 32 or None if bit(word, 0) else None


def semaphore(word):
    """lock/tokens.rs."""
    waiters = word >> 32 & (1 << 30) - 1
    return joined(
        f"value {word & 0xffffffff}",
        waiters and plural(waiters, "waiter"),
        bit(word, 63) and "process-shared",
    )


def auto_event(word):
    """lock/auto_event.rs."""
    waiters = word >> 32 & (1 << 30) - 1
    return joined(
        "set" if word & 0xffffffff else "not set",
        waiters and plural(waiters, "waiter"),
        bit(word, 63) and "process-shared",
    )


def event(word):
    """lock/event.rs."""
    return joined(
        "set" if word & 1 else "not set",
        bit(word, 32) and "threads wait",
        bit(word, 63) and "process-shared",
    )


def latch(word):
    """lock/latch.rs."""
    count = word & DIED - 1
    return joined(
        f"count {count}" if count else "open",
        bit(word, 30) and "threads wait",
        bit(word, 31) and "process-shared",
    )


def once(word):
    """lock/once.rs."""
    state = ("not begun", "running", "done", "poisoned")[word & 3]
    return joined(state, bit(word, 2) and "threads wait")


def barrier(state, count):
    """lock/barrier/mod.rs."""
    return joined(
        f"{state >> 32} of {plural(count & WAITERS - 1, 'thread')} arrived",
        bit(count, 31) and "process-shared",
    )


def waitv(value, address, flags):
    """raw/futex2.rs: a word and the value that it is expected to hold."""
    size = 8 << (flags & 3)
    scope = "private" if flags & PRIVATE_FLAG else "process-shared"
    return f"{size}-bit {scope} word at {address:#x}, expected to be {value}"


PRIVATE_FLAG = 128
