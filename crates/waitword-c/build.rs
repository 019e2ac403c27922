//! Linker arguments for the shared library that cargo makes: its soname, and that it stays loaded.
//! It has no symbol versions, because rustc passes a version script of its own. `install.sh` links
//! the library that is installed, with the same arguments and `waitword.map`.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let major = env::var("CARGO_PKG_VERSION_MAJOR").expect("cargo sets it for build scripts");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libwaitword.so.{major}");
    // Threads may be asleep inside the library, and a waiter's memory outlives its last call, so
    // `dlclose` must not unload the code.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
