"""waitword in gdb: printers of its types, and `info waitword`.

    memory       reads memory
    description  finds what the library says about its structures (crates/waitword/src/debugger.rs)
    table        the waiter table, read from memory
    threads      the threads of the process, what they call, and their stacks
    kernel       waits in the kernel's futex
    words        what the bits of each lock's words mean
    holders      who holds what
    printers     the printers' common part
    c_types, rust_types, pthread_types   the printers
    command      `info waitword`

Nothing here runs code in the process, so all of it works on core dumps too.
"""

from . import c_types, command, pthread_types, rust_types


def register():
    """May be called again: a later call replaces what an earlier one has registered."""
    c_types.register()
    pthread_types.register()
    rust_types.register()
    command.InfoWaitword()
