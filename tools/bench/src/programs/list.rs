//! The list of programs, in the order in which they are run.
//!
//! Not listed: `perf bench futex wake-parallel`. It assumes that all its threads are asleep 200 ms
//! after their start, and waits forever for each one that falls asleep later, regardless of the
//! futex implementation. This was seen on a loaded machine, with as many late threads as perf had
//! warned of.

use super::{Program, databases, need, servers, tools, written};

/// All programs.
pub(crate) fn programs() -> &'static [Program] {
    PROGRAMS
}

const JAVA: &str = "default-jdk-headless";

static PROGRAMS: &[Program] = &[
    Program {
        name: "db_bench fillrandom, 8 threads",
        unit: "op/s",
        needs: &[need("db_bench", "rocksdb-tools")],
        prepare: tools::db_bench_fill,
    },
    Program {
        name: "db_bench readrandom, 8 threads, one cache shard",
        unit: "op/s",
        needs: &[need("db_bench", "rocksdb-tools")],
        prepare: tools::db_bench_read,
    },
    Program {
        name: "sysbench threads",
        unit: "event/s",
        needs: &[need("sysbench", "sysbench")],
        prepare: tools::sysbench_threads,
    },
    Program {
        name: "sysbench mutex",
        unit: "lock/s",
        needs: &[need("sysbench", "sysbench")],
        prepare: tools::sysbench_mutex,
    },
    Program {
        name: "x264, sliced threads",
        unit: "frame/s",
        needs: &[need("x264", "x264")],
        prepare: |place, size| tools::x264(place, size, &["--sliced-threads"]),
    },
    Program {
        name: "x264, frame threads",
        unit: "frame/s",
        needs: &[need("x264", "x264")],
        prepare: |place, size| tools::x264(place, size, &[]),
    },
    Program {
        name: "python queue.Queue",
        unit: "item/s",
        needs: &[need("python3", "python3")],
        prepare: written::python_queues,
    },
    Program {
        name: "java wait and notify",
        unit: "turn/s",
        needs: &[need("java", JAVA), need("javac", JAVA)],
        prepare: written::java_hand_off,
    },
    Program {
        name: "nginx, thread pool, under wrk",
        unit: "request/s",
        needs: &[need("nginx", "nginx-light"), need("wrk", "wrk")],
        prepare: servers::nginx,
    },
    Program {
        name: "perf bench futex hash",
        unit: "op/s",
        needs: &[need("perf", "linux-perf")],
        prepare: tools::perf_hash,
    },
    Program {
        name: "perf bench futex wake",
        unit: "thread/s",
        needs: &[need("perf", "linux-perf")],
        prepare: |place, size| tools::perf_futex(place, size, "wake"),
    },
    Program {
        name: "perf bench futex requeue",
        unit: "thread/s",
        needs: &[need("perf", "linux-perf")],
        prepare: |place, size| tools::perf_futex(place, size, "requeue"),
    },
    Program {
        name: "all locks of Rust's library",
        unit: "turn/s",
        needs: &[need("rustc", "rustc"), need("cc", "gcc")],
        prepare: written::rust_std,
    },
    Program {
        name: "all locks of C++20's library",
        unit: "turn/s",
        needs: &[need("g++", "g++")],
        prepare: written::cpp,
    },
    Program {
        name: "all locks of Python, pools, forks",
        unit: "turn/s",
        needs: &[need("python3", "python3")],
        prepare: written::python_threads,
    },
    Program {
        name: "all locks of Java",
        unit: "turn/s",
        needs: &[need("java", JAVA), need("javac", JAVA)],
        prepare: written::java_locks,
    },
    Program {
        name: "node, workers and thread pool",
        unit: "turn/s",
        needs: &[need("node", "nodejs")],
        prepare: written::node,
    },
    Program {
        name: "redis, I/O threads, append-only file",
        unit: "request/s",
        needs: &[
            need("redis-server", "redis-server"),
            need("redis-benchmark", "redis-tools"),
        ],
        prepare: servers::redis,
    },
    Program {
        name: "memcached, 4 threads",
        unit: "request/s",
        needs: &[need("memcached", "memcached")],
        prepare: servers::memcached,
    },
    Program {
        name: "MariaDB, 16 connections, reads and writes",
        unit: "transaction/s",
        needs: &[
            need("mariadbd", "mariadb-server"),
            need("mariadb-install-db", "mariadb-server"),
            need("mariadb", "mariadb-client"),
            need("sysbench", "sysbench"),
        ],
        prepare: databases::mariadb,
    },
    Program {
        name: "PostgreSQL, 8 connections, reads and writes",
        unit: "transaction/s",
        needs: &[
            need("postgres", "postgresql"),
            need("psql", "postgresql"),
            need("pgbench", "postgresql"),
            need("setpriv", "util-linux"),
        ],
        prepare: databases::postgres,
    },
    Program {
        name: "pigz, 4 threads",
        unit: "MB/s",
        needs: &[need("pigz", "pigz")],
        prepare: |place, size| tools::compressor(place, size, "pigz", &["-n", "-p", "4"]),
    },
    Program {
        name: "pbzip2, 4 threads",
        unit: "MB/s",
        needs: &[need("pbzip2", "pbzip2")],
        prepare: |place, size| tools::compressor(place, size, "pbzip2", &["-p4", "-b1"]),
    },
    Program {
        name: "xz, 4 threads",
        unit: "MB/s",
        needs: &[need("xz", "xz-utils")],
        prepare: |place, size| {
            tools::compressor(place, size, "xz", &["-0", "-T4", "--block-size=500KiB"])
        },
    },
    Program {
        name: "ffmpeg, x264 with filters, 4 threads",
        unit: "frame/s",
        needs: &[need("ffmpeg", "ffmpeg")],
        prepare: tools::ffmpeg,
    },
    Program {
        name: "stress-ng mutex",
        unit: "op/s",
        needs: &[need("stress-ng", "stress-ng")],
        prepare: |place, size| tools::stress(place, size, "mutex"),
    },
    Program {
        name: "stress-ng sem",
        unit: "op/s",
        needs: &[need("stress-ng", "stress-ng")],
        prepare: |place, size| tools::stress(place, size, "sem"),
    },
    Program {
        name: "stress-ng futex",
        unit: "op/s",
        needs: &[need("stress-ng", "stress-ng")],
        prepare: |place, size| tools::stress(place, size, "futex"),
    },
    Program {
        name: "recursive mutexes, holders yield",
        unit: "turn/s",
        needs: &[need("gcc", "gcc")],
        prepare: |place, size| written::holders(place, size, &["yield"], 20_000),
    },
    Program {
        name: "recursive mutexes, holders sleep",
        unit: "turn/s",
        needs: &[need("gcc", "gcc")],
        prepare: |place, size| written::holders(place, size, &["sleep"], 1_500),
    },
];
