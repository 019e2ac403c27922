//! Linker options of the shared library.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Threads may be asleep inside the library: `dlclose` must not unmap the code.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    // All symbols are resolved at load time, so that no lock of the dynamic loader is taken inside
    // one of ours.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,now");
    // Its constructors run before those of all other libraries, which may start threads
    // (`src/real.rs`).
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,initfirst");
    // A thread may be unwound from a call of `__tls_get_addr`: GNU's linker writes an unwind table
    // for the stub that is called, lld does not.
    println!("cargo::rustc-cdylib-link-arg=-fuse-ld=bfd");
    // The exported `syscall` is the assembly itself (`src/syscall.rs`).
    println!("cargo::rustc-cdylib-link-arg=-Wl,--defsym=syscall=waitword_syscall");
}
