"""Reads the memory of the process or of the core dump."""

import re

import gdb

POINTER = 8
# What Rust's mangling adds to a name.
RUST_HASH = re.compile(r"::h[0-9a-f]{16}$")


class Unreadable(Exception):
    """The memory is not there: not mapped, or not in the core dump."""


def read(address, size):
    """The bytes at an address."""
    try:
        return bytes(gdb.selected_inferior().read_memory(address, size))
    except (gdb.MemoryError, OverflowError) as error:
        raise Unreadable(f"{size} bytes at {address:#x} cannot be read: {error}") from None


def unsigned(address, size):
    """The number of `size` bytes at an address."""
    return number(read(address, size))


def number(data):
    """Bytes as a number. The processors that the library runs on are little-endian."""
    return int.from_bytes(data, "little")


def pointer(address):
    """The pointer at an address."""
    return unsigned(address, POINTER)


def symbol(address):
    """The symbol that contains the address, as `name` or `name+8`; None if there is none."""
    said = gdb.execute(f"info symbol {address:#x}", to_string=True)
    if said.startswith("No symbol"):
        return None
    found = re.match(r"(.*?)(?: \+ (\d+))?(?: in section .*)?$", said.splitlines()[0])
    name = RUST_HASH.sub("", found[1])
    return name + (f"+{found[2]}" if found[2] else "")


def named(address):
    """The address, with its symbol if it has one."""
    name = symbol(address)
    return f"{address:#x} <{name}>" if name else f"{address:#x}"
