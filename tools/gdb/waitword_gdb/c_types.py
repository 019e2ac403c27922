"""Printers of the types of waitword.h. The classes of waitword.hpp contain these."""

from . import printers, words
from .printers import State


def numbers(value, field):
    """The elements of an array of numbers."""
    low, high = value[field].type.range()
    return [int(value[field][index]) for index in range(low, high + 1)]


def halves(numbers64):
    """64-bit numbers as 32-bit ones: a structure of those, seen as the header declares it."""
    return [half for word in numbers64 for half in (word & 0xffffffff, word >> 32)]


def mutex(value):
    return State("ww_mutex", words.mutex(*numbers(value, "words_")))


def cond(value):
    first, second = numbers(value, "words_")
    return State("ww_cond", words.condvar(first, second & 0xffffffff, second >> 32))


def robust_mutex(value):
    word, depth, state, _, kind = halves(numbers(value, "words_"))[:5]
    return State("ww_robust_mutex", words.robust(word, depth, state, kind))


def barrier(value):
    return State("ww_barrier", words.barrier(int(value["state_"]), numbers(value, "words_")[0]))


def waitv(value):
    fields = (int(value[name]) for name in ("val", "uaddr", "flags"))
    return State("ww_futex_waitv", words.waitv(*fields))


def one_word(name, describe):
    return lambda value: State(name, describe(int(value["word_"])))


PRINTERS = {
    "ww_mutex": mutex,
    "ww_cond": cond,
    "ww_robust_mutex": robust_mutex,
    "ww_rwlock": one_word("ww_rwlock", words.rwlock),
    "ww_sem": one_word("ww_sem", words.semaphore),
    "ww_barrier": barrier,
    "ww_latch": one_word("ww_latch", words.latch),
    "ww_event": one_word("ww_event", words.event),
    "ww_auto_event": one_word("ww_auto_event", words.auto_event),
    "ww_once_flag": one_word("ww_once", words.once),
    "ww_futex_waitv": waitv,
}


def register():
    printers.register("waitword", lambda kind: kind.strip_typedefs().tag, PRINTERS.get)
