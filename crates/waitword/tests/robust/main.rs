//! Robust mutexes as a program uses them: guards between threads and processes, and a storm of
//! SIGKILLs.

mod guards;
mod storm;
