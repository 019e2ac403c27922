//! What the shared library says of itself to the linker.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Threads may be asleep inside the library: `dlclose` must not take the code away.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    // All symbols are resolved when it is loaded: no lock of the dynamic loader inside one of ours.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,now");
}
