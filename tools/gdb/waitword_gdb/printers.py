"""What the printers of C, pthread and Rust types have in common."""

import gdb
import gdb.printing


class State:
    """Prints a lock as one line: what it is, and its state in words."""

    def __init__(self, name, text):
        self.name = name
        self.text = text

    def to_string(self):
        return f"{self.name} ({self.text})" if self.text else self.name


class StateAndData(State):
    """Prints what a lock protects, too."""

    def __init__(self, name, text, data):
        super().__init__(name, text)
        self.data = data

    def children(self):
        yield from self.data


class Collection(gdb.printing.PrettyPrinter):
    """Printers by a function from the type's name; the function returns None for other types."""

    def __init__(self, name, name_of, find):
        super().__init__(name)
        self.name_of = name_of
        self.find = find

    def __call__(self, value):
        name = self.name_of(value.type)
        printer = self.find(name) if name else None
        if printer is None:
            return None
        try:
            return printer(value)
        except (gdb.error, gdb.MemoryError, KeyError, StopIteration):
            # Optimized out, or another version's type: gdb shows its bytes.
            return None


def register(name, name_of, find):
    gdb.printing.register_pretty_printer(None, Collection(name, name_of, find), replace=True)


def scalar(value):
    """The number inside wrappers: structures with one field that has a size."""
    kind = value.type.strip_typedefs()
    while kind.code in (gdb.TYPE_CODE_STRUCT, gdb.TYPE_CODE_UNION):
        fields = [field for field in kind.fields() if field.type.sizeof]
        value = value[fields[0]]
        kind = value.type.strip_typedefs()
    return int(value)
