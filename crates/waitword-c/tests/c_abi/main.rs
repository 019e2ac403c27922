//! The C ABI from the outside: what `install.sh` installs is used as a C or C++ programmer would use it.

mod bad_arguments;
mod constructors;
mod header_alone;
mod install;
mod installed;
mod pkg_config;
mod programs;
mod scratch;
mod watchdog;
