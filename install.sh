#!/usr/bin/env bash
# Builds and installs waitword for C and C++: the libraries, the headers, what pkg-config and CMake
# need to find them, and the manual pages.
set -euo pipefail
shopt -s nullglob

usage() {
    cat <<'USAGE'
Usage: ./install.sh [--prefix DIR] [--libdir DIR] [--destdir DIR] [--uninstall]

Builds the C libraries (cargo, release profile) and installs
    LIBDIR/libwaitword.so.VERSION, with the links libwaitword.so.MAJOR and libwaitword.so
    LIBDIR/libwaitword.a
    LIBDIR/pkgconfig/waitword.pc
    LIBDIR/cmake/waitword/waitword-config.cmake, waitword-config-version.cmake
    PREFIX/include/waitword.h
    PREFIX/include/waitword.hpp, and its parts in PREFIX/include/waitword/
    PREFIX/share/man/man3/ww_*.3, PREFIX/share/man/man7/waitword.7 (which needs python3)
    PREFIX/share/waitword/gdb/, and LIBDIR/libwaitword.so.VERSION-gdb.py, by which gdb finds it;
        if PREFIX is /usr, that is below /usr/share/gdb/auto-load, where gdb trusts it

  --prefix DIR    the installation prefix, an absolute path (default: $PREFIX, or /usr/local)
  --libdir DIR    the directory of the libraries, an absolute path (default: PREFIX/lib)
  --destdir DIR   install below DIR instead of /, to build a package (default: $DESTDIR)
  --uninstall     remove what an installation with the same options created
  --help          print this

$CARGO (default: cargo) builds the libraries, $CC (default: cc) links the shared one.
USAGE
}

fail() {
    printf 'install.sh: %s\n' "$*" >&2
    exit 1
}

prefix=${PREFIX:-/usr/local}
destdir=${DESTDIR:-}
libdir=
action=install
while (($#)); do
    case $1 in
    --prefix | --libdir | --destdir)
        (($# >= 2)) || fail "$1 needs a directory"
        printf -v "${1#--}" '%s' "$2"
        shift 2
        ;;
    --prefix=* | --libdir=* | --destdir=*)
        option=${1%%=*}
        printf -v "${option#--}" '%s' "${1#*=}"
        shift
        ;;
    --uninstall)
        action=uninstall
        shift
        ;;
    --help | -h)
        usage
        exit 0
        ;;
    *)
        usage >&2
        fail "unknown argument: $1"
        ;;
    esac
done

[[ $prefix == /* ]] || fail "--prefix must be an absolute path, not '$prefix'"
[[ -z $libdir || $libdir == /* ]] || fail "--libdir must be an absolute path, not '$libdir'"
[[ -z $destdir || $destdir == /* ]] || destdir=$PWD/$destdir
prefix=${prefix%/}
libdir=${libdir:-$prefix/lib}
libdir=${libdir%/}
lib=$destdir$libdir
include=$destdir$prefix/include
man=$destdir$prefix/share/man
gdb=$destdir$prefix/share/waitword/gdb
autoload=$lib
[[ $prefix != /usr ]] || autoload=$destdir/usr/share/gdb/auto-load$libdir

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
package=$root/crates/waitword-c
version=$(sed -n '/^\[workspace\.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' "$root/Cargo.toml")
[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+ ]] || fail "there is no version in $root/Cargo.toml"
IFS=. read -r major minor _ <<<"$version"
if command -v python3 >/dev/null; then
    mapfile -t pages < <("$root/scripts/man-pages" --list)
    ((${#pages[@]})) || fail "scripts/man-pages failed"
else
    pages=()
fi

if [[ $action == uninstall ]]; then
    found=(
        "$lib/libwaitword.so" "$lib/libwaitword.a"
        "$lib/pkgconfig/waitword.pc" "$lib/cmake/waitword/waitword-config.cmake"
        "$lib/cmake/waitword/waitword-config-version.cmake"
        "$include/waitword.h" "$include/waitword.hpp" "${pages[@]/#/"$man/"}"
        "$gdb/waitword-gdb.py" "$autoload"/libwaitword.so.*-gdb.py
    )
    for part in "$root"/tools/gdb/waitword_gdb/*.py; do
        found+=("$gdb/waitword_gdb/${part##*/}")
    done
    # Also the library of a version that this one has replaced.
    for file in "$lib"/libwaitword.so.*; do
        [[ ! $file =~ \.so(\.[0-9]+)+$ ]] || found+=("$file")
    done
    for part in "$package"/include/waitword/*.hpp; do
        found+=("$include/waitword/${part##*/}")
    done
    for file in "${found[@]}"; do
        [[ -e $file || -L $file ]] || continue
        rm -- "$file" || fail "cannot remove $file"
        printf 'removed %s\n' "$file"
    done
    # What Python has compiled for gdb.
    rm -rf -- "$gdb/waitword_gdb/__pycache__"
    # Unless they contain other files. The other directories may have been there before.
    for directory in "$include/waitword" "$lib/cmake/waitword" "$gdb/waitword_gdb" "$gdb" \
        "${gdb%/gdb}"; do
        [[ ! -d $directory ]] || rmdir -- "$directory" 2>/dev/null || true
    done
    exit 0
fi

cargo=${CARGO:-cargo}
command -v "$cargo" >/dev/null || fail "cargo not found: install Rust first (https://rustup.rs)"
# With options, as in CC="gcc -m64".
read -ra cc <<<"${CC:-cc}"
command -v "${cc[0]}" >/dev/null || fail "${cc[0]} not found: install a C compiler, or set CC"

# The deepest existing directory must be writable. Checked before the build, not after it.
for directory in "$lib" "$include" "$man"; do
    while [[ ! -e $directory ]]; do directory=$(dirname -- "$directory"); done
    [[ -d $directory ]] || fail "$directory is not a directory"
    [[ -w $directory ]] || fail "no permission to write to $directory: use --prefix, or run as root"
done

target=${CARGO_TARGET_DIR:-$root/target}
"$cargo" build --release --locked --manifest-path "$package/Cargo.toml" --target-dir "$target" ||
    fail "the build failed"
built=$target/${CARGO_BUILD_TARGET:+$CARGO_BUILD_TARGET/}release

scratch=$(mktemp -d)
trap 'rm -r -- "$scratch"' EXIT

# The shared library, linked from the archive. Cargo's own has no symbol versions, because rustc
# passes a version script without names to the linker. The linker takes from the archive what the
# public functions need (-u), and --gc-sections drops the rest. Threads may be asleep inside the
# library, so dlclose must not unload it (nodelete, as in crates/waitword-c/build.rs).
link=(-shared -o "$scratch/libwaitword.so" -Wl,-soname,"libwaitword.so.$major"
    -Wl,--version-script="$package/waitword.map" -Wl,--gc-sections -Wl,--build-id -Wl,--as-needed
    -Wl,-z,defs -Wl,-z,text -Wl,-z,relro -Wl,-z,now -Wl,-z,nodelete)
while read -r symbol; do
    link+=("-Wl,-u,$symbol")
done < <(sed -n 's/^ *\(ww_[a-z0-9_]*\);$/\1/p' "$package/waitword.map")
"${cc[@]}" "${link[@]}" "$built/libwaitword.a" -lgcc_s -lutil -lrt -lpthread -lm -ldl ||
    fail "linking the shared library failed${CARGO_BUILD_TARGET:+: set CC for $CARGO_BUILD_TARGET}"

# What has not changed is not written again (-C), so that build systems see no new library.
install -d -- "$lib/pkgconfig" "$lib/cmake/waitword" "$include/waitword"
install -C -m 0755 -- "$scratch/libwaitword.so" "$lib/libwaitword.so.$version"
ln -sf -- "libwaitword.so.$version" "$lib/libwaitword.so.$major"
ln -sf -- "libwaitword.so.$major" "$lib/libwaitword.so"
install -C -m 0644 -- "$built/libwaitword.a" "$lib/libwaitword.a"
install -C -m 0644 -- "$package/include/waitword.h" "$package/include/waitword.hpp" "$include"
install -C -m 0644 -- "$package"/include/waitword/*.hpp "$include/waitword"

install -d -- "$gdb/waitword_gdb" "$autoload"
install -C -m 0644 -- "$root"/tools/gdb/waitword_gdb/*.py "$gdb/waitword_gdb"
install -C -m 0644 -- "$root/tools/gdb/waitword-gdb.py" "$gdb"
# gdb looks for the name of the library's file, not of the links to it.
install -C -m 0644 -- "$root/tools/gdb/waitword-gdb.py" "$autoload/libwaitword.so.$version-gdb.py"

# fill_in TEMPLATE FILE: installs a template with its @NAMES@ replaced.
fill_in() {
    local text from_prefix=$libdir
    # Relative to the prefix if possible, so that the whole can be moved.
    # shellcheck disable=SC2016
    [[ $libdir != "$prefix"/* ]] || from_prefix='${prefix}'${libdir#"$prefix"}
    text=$(<"$1")
    text=${text//@PREFIX@/"$prefix"}
    text=${text//@LIBDIR@/"$from_prefix"}
    text=${text//@TO_INCLUDE@/"$(realpath -ms --relative-to="$libdir/" "$prefix/include")"}
    text=${text//@LIBRARY@/"libwaitword.so.$version"}
    text=${text//@SONAME@/"libwaitword.so.$major"}
    text=${text//@VERSION@/"$version"}
    text=${text//@MAJOR@/"$major"}
    text=${text//@MINOR@/"$minor"}
    printf '%s\n' "$text" >"$scratch/text"
    install -C -m 0644 -- "$scratch/text" "$2"
}
fill_in "$package/waitword.pc.in" "$lib/pkgconfig/waitword.pc"
for file in waitword-config.cmake waitword-config-version.cmake; do
    fill_in "$package/cmake/$file.in" "$lib/cmake/waitword/$file"
done

if ((${#pages[@]})); then
    "$root/scripts/man-pages" --out "$scratch/man"
    install -d -- "$man/man3" "$man/man7"
    install -C -m 0644 -- "$scratch"/man/man3/* "$man/man3"
    install -C -m 0644 -- "$scratch"/man/man7/* "$man/man7"
else
    printf 'there is no python3, which generates the manual pages: none are installed\n'
fi

printf 'installed waitword %s in %s\n' "$version" "$destdir${prefix:-/}"
[[ -z $destdir ]] || exit 0

# The loader finds libraries in its own directories once its cache is updated. Other directories
# need LD_LIBRARY_PATH.
ldconfig=$(command -v ldconfig || echo /sbin/ldconfig)
if "$ldconfig" -v -N -X 2>/dev/null | grep -q "^$lib:"; then
    "$ldconfig" || printf 'run ldconfig as root so that programs can find the library\n'
else
    printf 'to compile and run programs with it, set:\n'
    printf '    export PKG_CONFIG_PATH=%q LD_LIBRARY_PATH=%q\n' "$lib/pkgconfig" "$lib"
fi
