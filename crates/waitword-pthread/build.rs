//! What the shared library says of itself to the linker.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Threads may be asleep inside the library: `dlclose` must not take the code away.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    // All symbols are resolved when it is loaded: no lock of the dynamic loader inside one of ours.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,now");
    // Its constructors run before those of all other libraries, which may start threads (`src/real.rs`).
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,initfirst");
    // A thread may be unwound from a call of `__tls_get_addr`: GNU's linker writes an unwind table for
    // the stub that is called, lld does not.
    println!("cargo::rustc-cdylib-link-arg=-fuse-ld=bfd");
    // The exported `syscall` is the assembly itself (`src/syscall.rs`).
    println!("cargo::rustc-cdylib-link-arg=-Wl,--defsym=syscall=waitword_syscall");
}
