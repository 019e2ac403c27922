"""What each copy of the library in the process says about its structures.

A copy has a section `.waitword_debug`: `crates/waitword/src/debugger.rs` has its format. There is
one copy in libwaitword.so, one in the drop-in, and one in each program or library that is linked
with libwaitword.a or with the Rust crate.
"""

import os
import re

import gdb

from . import memory

FORMAT = 1
# Kept in step with Cargo.toml by tools/gdb/tests.
VERSION = "0.1.0"
SECTION = ".waitword_debug"
HEAD = 64
FIELD = 32
MAGIC = b"waitword"


class NotUsable(Exception):
    """There is nothing to show, for a reason that the user should know."""


class Field:
    """A field: where it lies in its structure. Of a constant, the offset is the value."""

    def __init__(self, offset, size):
        self.offset = offset
        self.size = size

    def of(self, address, data=None):
        """Its value in the structure at an address, or in a copy of the structure's bytes."""
        if data is not None:
            return memory.number(data[self.offset:self.offset + self.size])
        return memory.unsigned(address + self.offset, self.size)


class Subject:
    """A structure that the library describes: its address, and fields by name."""

    def __init__(self, version, address, fields):
        self.version = version
        self.address = address
        self.fields = fields

    def __getitem__(self, name):
        try:
            return self.fields[name]
        except KeyError:
            raise NotUsable(
                f"waitword {self.version} does not describe '{name}', which this script needs: "
                f"the script is of version {VERSION}"
            ) from None

    def constants(self, group):
        """The constants of a group: names by value."""
        begin = group + ": "
        return {
            field.offset: name[len(begin):]
            for name, field in self.fields.items()
            if name.startswith(begin)
        }


class Library:
    """One copy of the library."""

    def __init__(self, file, version):
        self.file = file
        self.version = version
        self.subjects = {}

    def __str__(self):
        return f"waitword {self.version} in {os.path.basename(self.file)}"

    @property
    def is_drop_in(self):
        return "waitword_pthread" in os.path.basename(self.file)


def text(data):
    return data.split(b"\0")[0].decode("utf-8", "replace")


def sections():
    """The sections of that name: file, begin and end."""
    said = gdb.execute("info files", to_string=True)
    program = gdb.current_progspace().filename or "the program"
    pattern = rf"^\s*(0x[0-9a-f]+) - (0x[0-9a-f]+) is {re.escape(SECTION)}(?: in (.*))?$"
    for begin, end, file in re.findall(pattern, said, re.MULTILINE):
        yield file or program, int(begin, 16), int(end, 16)


def read(file, begin, end):
    """The copies that the section of a file describes: one of each version."""
    data = memory.read(begin, end - begin)
    copies = {}
    at = data.find(MAGIC)
    while 0 <= at <= len(data) - HEAD - memory.POINTER:
        layout, count = (memory.number(data[at + 8 + 4 * n:at + 12 + 4 * n]) for n in (0, 1))
        version, subject = text(data[at + 16:at + 32]), text(data[at + 32:at + 64])
        if layout != FORMAT:
            raise NotUsable(
                f"{file} has waitword {version}, whose description has format {layout}; "
                f"this script, of waitword {VERSION}, knows format {FORMAT}"
            )
        address = memory.number(data[at + HEAD:at + HEAD + memory.POINTER])
        first = at + HEAD + memory.POINTER
        fields = {}
        for field in range(first, first + count * FIELD, FIELD):
            place = (memory.number(data[field + n:field + n + 4]) for n in (24, 28))
            fields[text(data[field:field + 24])] = Field(*place)
        library = copies.setdefault(version, Library(file, version))
        library.subjects[subject] = Subject(version, address, fields)
        at = data.find(MAGIC, first + count * FIELD)
    return list(copies.values())


def libraries():
    """All copies of the library in the process. Raises NotUsable, with the reason, if none."""
    if not gdb.selected_inferior().threads():
        raise NotUsable("there is no process and no core dump: start the program, attach to it, or"
                        " load a core dump (`core-file`)")
    found, reasons = [], []
    for file, begin, end in sections():
        try:
            copies = read(file, begin, end)
        except memory.Unreadable as error:
            reasons.append(f"{file}: {error}")
            continue
        if not copies:
            reasons.append(f"{file}: the section {SECTION} does not contain what it should: the"
                           " file is not the one that the process has loaded")
        found += copies
    if found:
        return found
    if reasons:
        raise NotUsable("waitword's description of itself is not readable: " + "; ".join(reasons))
    loaded = [file for file in files() if "waitword" in os.path.basename(file)]
    if loaded:
        raise NotUsable(
            f"{loaded[0]} has no section {SECTION}: it is older than this script, was stripped of"
            " its section headers, or gdb does not find the file"
        )
    raise NotUsable(f"waitword is not in this process: no file in it has a section {SECTION}")


def files():
    """The files of the process: the program and its libraries, also those that gdb cannot read."""
    known = [file.filename for file in gdb.objfiles() if file.filename]
    for line in gdb.execute("info sharedlibrary", to_string=True).splitlines():
        known += re.findall(r"(/\S.*)$", line)
    return known
