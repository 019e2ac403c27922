#!/usr/bin/env bash
# Builds and installs waitword for C and C++: libwaitword.so, libwaitword.a, waitword.h,
# waitword.hpp, waitword.pc.
set -euo pipefail

usage() {
    cat <<'USAGE'
Usage: ./install.sh [--prefix DIR] [--destdir DIR] [--uninstall]

Builds the C libraries (cargo, release profile) and installs
    DIR/lib/libwaitword.so.VERSION, with the links libwaitword.so.MAJOR and libwaitword.so
    DIR/lib/libwaitword.a
    DIR/lib/pkgconfig/waitword.pc
    DIR/include/waitword.h
    DIR/include/waitword.hpp, and its parts in DIR/include/waitword/

  --prefix DIR    the installation prefix, an absolute path (default /usr/local)
  --destdir DIR   install below DIR instead of /, to build a package
  --uninstall     remove the files that an installation with the same --prefix and --destdir created
  --help          print this
USAGE
}

fail() {
    printf 'install.sh: %s\n' "$*" >&2
    exit 1
}

prefix=/usr/local
destdir=
action=install
while (($#)); do
    case $1 in
    --prefix | --destdir)
        (($# >= 2)) || fail "$1 needs a directory"
        printf -v "${1#--}" '%s' "$2"
        shift 2
        ;;
    --prefix=* | --destdir=*)
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
[[ -z $destdir || $destdir == /* ]] || destdir=$PWD/$destdir
prefix=${prefix%/}
lib=$destdir$prefix/lib
include=$destdir$prefix/include

if [[ $action == uninstall ]]; then
    shopt -s nullglob
    found=(
        "$lib"/libwaitword.so "$lib"/libwaitword.so.* "$lib"/libwaitword.a
        "$lib"/pkgconfig/waitword.pc "$include"/waitword.h "$include"/waitword.hpp
        "$include"/waitword/*.hpp
    )
    for file in "${found[@]}"; do
        [[ -e $file || -L $file ]] || continue
        rm -- "$file" || fail "cannot remove $file"
        printf 'removed %s\n' "$file"
    done
    # Unless it contains other files.
    [[ ! -d $include/waitword ]] || rmdir -- "$include/waitword" 2>/dev/null || true
    exit 0
fi

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
package=$root/crates/waitword-c
cargo=${CARGO:-cargo}
command -v "$cargo" >/dev/null || fail "cargo not found: install Rust first (https://rustup.rs)"

# The deepest existing directory must be writable. Checked before the build, not after it.
for directory in "$lib" "$include"; do
    while [[ ! -e $directory ]]; do directory=$(dirname -- "$directory"); done
    [[ -d $directory ]] || fail "$directory is not a directory"
    [[ -w $directory ]] || fail "no permission to write to $directory: use --prefix, or run as root"
done

target=${CARGO_TARGET_DIR:-$root/target}
"$cargo" build --release --locked --manifest-path "$package/Cargo.toml" --target-dir "$target" ||
    fail "the build failed"
built=$target/${CARGO_BUILD_TARGET:+$CARGO_BUILD_TARGET/}release
id=$("$cargo" pkgid --locked --manifest-path "$package/Cargo.toml")
version=${id##*[#@]}
major=${version%%.*}

install -d -- "$lib/pkgconfig" "$include"
install -m 0755 -- "$built/libwaitword.so" "$lib/libwaitword.so.$version"
ln -sf -- "libwaitword.so.$version" "$lib/libwaitword.so.$major"
ln -sf -- "libwaitword.so.$major" "$lib/libwaitword.so"
install -m 0644 -- "$built/libwaitword.a" "$lib/libwaitword.a"
install -m 0644 -- "$package/include/waitword.h" "$package/include/waitword.hpp" "$include"
install -d -- "$include/waitword"
install -m 0644 -- "$package"/include/waitword/*.hpp "$include/waitword"
template=$(<"$package/waitword.pc.in")
template=${template//@PREFIX@/"$prefix"}
printf '%s\n' "${template//@VERSION@/"$version"}" >"$lib/pkgconfig/waitword.pc"
chmod 0644 -- "$lib/pkgconfig/waitword.pc"

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
