//! The list of programs, in the order in which they are run.
//!
//! Not listed: `perf bench futex wake-parallel`. It assumes that all its threads are asleep 200 ms
//! after their start, and waits forever for each one that falls asleep later, regardless of the
//! futex implementation. This was seen on a loaded machine, with as many late threads as perf had
//! warned of.

use super::need::need;
use super::program::Program;
use super::{databases, servers, tools, written};

/// All programs.
pub(crate) fn programs() -> &'static [Program] {
    PROGRAMS
}

const JAVA: &str = "default-jdk-headless";

macro_rules! programs {
    ($($name:literal, $unit:literal, [$($need:tt),*], $prepare:expr;)*) => {
        static PROGRAMS: &[Program] = &[$(Program {
            name: $name,
            unit: $unit,
            needs: &[$(need $need),*],
            prepare: $prepare,
        },)*];
    };
}

// The name, the unit, the commands and their packages, and how one run is made.
programs! {
    "db_bench fillrandom, 8 threads", "op/s", [("db_bench", "rocksdb-tools")],
        tools::db_bench_fill;
    "db_bench readrandom, 8 threads, one cache shard", "op/s", [("db_bench", "rocksdb-tools")],
        tools::db_bench_read;
    "sysbench threads", "event/s", [("sysbench", "sysbench")],
        tools::sysbench_threads;
    "sysbench mutex", "lock/s", [("sysbench", "sysbench")],
        tools::sysbench_mutex;
    "x264, sliced threads", "frame/s", [("x264", "x264")],
        |place, size| tools::x264(place, size, &["--sliced-threads"]);
    "x264, frame threads", "frame/s", [("x264", "x264")],
        |place, size| tools::x264(place, size, &[]);
    "python queue.Queue", "item/s", [("python3", "python3")],
        written::python_queues;
    "java wait and notify", "turn/s", [("java", JAVA), ("javac", JAVA)],
        written::java_hand_off;
    "nginx, thread pool, under wrk", "request/s", [("nginx", "nginx-light"), ("wrk", "wrk")],
        servers::nginx;
    "perf bench futex hash", "op/s", [("perf", "linux-perf")],
        tools::perf_hash;
    "perf bench futex wake", "thread/s", [("perf", "linux-perf")],
        |place, size| tools::perf_futex(place, size, "wake");
    "perf bench futex requeue", "thread/s", [("perf", "linux-perf")],
        |place, size| tools::perf_futex(place, size, "requeue");
    "all locks of Rust's library", "turn/s", [("rustc", "rustc"), ("cc", "gcc")],
        written::rust_std;
    "all locks of C++20's library", "turn/s", [("g++", "g++")],
        written::cpp;
    "all locks of Python, pools, forks", "turn/s", [("python3", "python3")],
        written::python_threads;
    "all locks of Java", "turn/s", [("java", JAVA), ("javac", JAVA)],
        written::java_locks;
    "node, workers and thread pool", "turn/s", [("node", "nodejs")],
        written::node;
    "redis, I/O threads, append-only file", "request/s",
        [("redis-server", "redis-server"),
         ("redis-benchmark", "redis-tools")],
        servers::redis;
    "memcached, 4 threads", "request/s", [("memcached", "memcached")],
        servers::memcached;
    "MariaDB, 16 connections, reads and writes", "transaction/s",
        [("mariadbd", "mariadb-server"),
         ("mariadb-install-db", "mariadb-server"),
         ("mariadb", "mariadb-client"),
         ("sysbench", "sysbench")],
        databases::mariadb;
    "PostgreSQL, 8 connections, reads and writes", "transaction/s",
        [("postgres", "postgresql"),
         ("psql", "postgresql"),
         ("pgbench", "postgresql"),
         ("setpriv", "util-linux")],
        databases::postgres;
    "pigz, 4 threads", "MB/s", [("pigz", "pigz")],
        |place, size| tools::compressor(place, size, "pigz", &["-n", "-p", "4"]);
    "pbzip2, 4 threads", "MB/s", [("pbzip2", "pbzip2")],
        |place, size| tools::compressor(place, size, "pbzip2", &["-p4", "-b1"]);
    "xz, 4 threads", "MB/s", [("xz", "xz-utils")],
        |place, size| tools::compressor(place, size, "xz", &["-0", "-T4", "--block-size=500KiB"]);
    "ffmpeg, x264 with filters, 4 threads", "frame/s", [("ffmpeg", "ffmpeg")],
        tools::ffmpeg;
    "stress-ng mutex", "op/s", [("stress-ng", "stress-ng")],
        |place, size| tools::stress(place, size, "mutex");
    "stress-ng sem", "op/s", [("stress-ng", "stress-ng")],
        |place, size| tools::stress(place, size, "sem");
    "stress-ng futex", "op/s", [("stress-ng", "stress-ng")],
        |place, size| tools::stress(place, size, "futex");
    "recursive mutexes, holders yield", "turn/s", [("gcc", "gcc")],
        |place, size| written::holders(place, size, &["yield"], 20_000);
    "recursive mutexes, holders sleep", "turn/s", [("gcc", "gcc")],
        |place, size| written::holders(place, size, &["sleep"], 1_500);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = programs().iter().map(|program| program.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), programs().len());
    }
}
