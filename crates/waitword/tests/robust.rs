//! Robust mutexes as a program uses them: guards between threads and processes, and a storm of
//! SIGKILLs.

mod support;

#[path = "robust/guards.rs"]
mod guards;
#[path = "robust/storm.rs"]
mod storm;
