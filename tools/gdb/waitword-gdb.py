"""Teaches gdb waitword's types and the command `info waitword`.

    (gdb) source /path/to/waitword-gdb.py

gdb loads a copy of this file by itself if it is named after the library and lies beside it, or
below gdb's own auto-load directory (docs/gdb.md). The package `waitword_gdb` is looked for beside
this file, and in the directory `waitword/gdb` of each directory above it, or of its `share`.
"""

import os
import sys

import gdb


def package():
    """The directory that contains the package."""
    here = os.path.dirname(os.path.realpath(__file__))
    places = [here]
    above = here
    while above != os.path.dirname(above):
        above = os.path.dirname(above)
        places += [os.path.join(above, "waitword/gdb"), os.path.join(above, "share/waitword/gdb")]
    for place in places:
        if os.path.exists(os.path.join(place, "waitword_gdb", "__init__.py")):
            return place
    raise gdb.GdbError(f"waitword: no directory waitword_gdb for {__file__}: it was not installed")


if package() not in sys.path:
    sys.path.insert(0, package())

import waitword_gdb  # noqa: E402

waitword_gdb.register()
