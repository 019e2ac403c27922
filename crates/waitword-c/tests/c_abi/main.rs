//! The C ABI from the outside: these tests use what `install.sh` installs as a C or C++ programmer
//! would.

mod bad_arguments;
mod constructors;
mod exports;
mod header_alone;
mod install;
mod installed;
mod pkg_config;
mod programs;
mod scratch;
mod watchdog;
