//! What a man page says and `--help` does not: exit statuses, environment variables, files.

/// A term and its meaning.
pub(super) type Entry = (&'static str, &'static str);

/// Errors of the subcommands that run no program.
const ERROR: Entry = ("2", "The arguments are wrong, or an error was reported.");
const DONE: Entry = ("0", "Success.");
const STOPPED: Entry = ("130", "It was stopped by Ctrl-C.");
/// The exit statuses of a command, by the name of its page.
pub(super) fn exit_status(page: &str) -> &'static [Entry] {
    match page.strip_prefix("waitword-").unwrap_or_default() {
        "run" => &[
            ("0-255", "The program's own: waitword becomes the program."),
            ("2", "The arguments are wrong."),
            ("126", "The program cannot be run with the drop-in; the reason was reported."),
            ("127", "The program was not found."),
        ],
        "profile" | "metrics" => &[
            ("0-255", "The program's own; 128 and the number of the signal that ended it."),
            ("2", "The arguments are wrong, or an error was reported: no such program, say."),
            STOPPED,
        ],
        // The command itself.
        "" => &[],
        "top" => &[DONE, ("1", "For a table: the program that it started failed."), ERROR, STOPPED],
        "compare" => &[
            DONE,
            ("1", "A variant is out: it failed, or its output was not the plain program's."),
            ERROR,
            STOPPED,
        ],
        "deadlock" => &[
            ("0", "Nothing was found, as far as the holders of locks are known."),
            ("1", "Threads wait for each other, or for a holder that will not release the lock."),
            ERROR,
        ],
        "bench" | "bench-any" => {
            &[DONE, ("1", "A contender failed to show that it does its work."), ERROR, STOPPED]
        }
        "bench-publish" => {
            &[DONE, ("1", "With --check: a text is not made of the reports."), ERROR]
        }
        "costs" => &[DONE, ("1", "With --check: a cost differs from the table."), ERROR],
        "torture" => &[
            DONE,
            ("1", "A check failed, a scenario hung, or an error was reported."),
            ("2", "The arguments are wrong."),
        ],
        "preload" | "doctor" | "completions" => {
            &[DONE, ("1", "An error was reported."), ("2", "The arguments are wrong.")]
        }
        _ => &[DONE, ERROR],
    }
}

/// What the drop-in reads in the programs that it serves.
const DROP_IN: [Entry; 7] = [
    (
        "WAITWORD",
        "off: everything stays with the C library and the kernel, in the program and its children.",
    ),
    ("WAITWORD_FUTEX", "off: raw futex calls stay in the kernel."),
    (
        "WAITWORD_MUTEX",
        "How threads wait for mutexes: adaptive (the default), throughput or wait-wake.",
    ),
    (
        "WAITWORD_SPIN_NS",
        "The longest time in nanoseconds that a waiting thread stays awake before it sleeps. \
         60000 by default; 0: it sleeps at once.",
    ),
    (
        "WAITWORD_SUMMARY",
        "1: the program prints a line of lock statistics to stderr at exit. A file name: it \
         appends the line to this file.",
    ),
    (
        "WAITWORD_RECORD",
        "An existing directory with an absolute name: the program records its waits there.",
    ),
    ("WAITWORD_RECORD_NS", "Shorter waits, in nanoseconds, are not recorded. 10000 by default."),
];

/// What decides where the drop-in is stored.
const PLACE: [Entry; 2] = [
    (
        "XDG_CACHE_HOME, HOME, TMPDIR",
        "Where the drop-in is stored if it is not installed: see FILES.",
    ),
    ("LD_PRELOAD", "The drop-in is put in front of the libraries that it names."),
];

const LIBRARY: [Entry; 1] =
    [("WAITWORD_BUCKETS", "The number of buckets that the waiter table begins with.")];

/// Whether the command runs programs with the drop-in.
fn runs_programs(page: &str) -> bool {
    let commands = ["", "-run", "-compare", "-profile", "-top", "-metrics"];
    page.strip_prefix("waitword").is_some_and(|command| commands.contains(&command))
}

/// The environment variables that a command and its programs heed.
pub(super) fn environment(page: &str) -> &'static [&'static [Entry]] {
    match page {
        "waitword-preload" => &[&DROP_IN, &PLACE],
        "waitword-bench" | "waitword-torture" => &[&PLACE, &LIBRARY],
        _ if runs_programs(page) => &[&DROP_IN, &PLACE, &LIBRARY],
        _ => &[],
    }
}

/// The files that a command uses, besides those that its options name.
pub(super) fn files(page: &str) -> &'static [&'static [Entry]] {
    const INSTALLED: &[Entry] = &[
        (
            "../lib/waitword/libwaitword_pthread-*.so",
            "The drop-in, beside the directory of the command, as in /usr/lib/waitword. If this \
             file is not there, or other users may write to it, the command stores its own copy \
             in the first of the following directories that serves.",
        ),
        ("$XDG_CACHE_HOME/waitword", "If the variable is set."),
        (
            "/var/cache/waitword",
            "For root: services become another user before they execute their program.",
        ),
        ("~/.cache/waitword", ""),
        ("$TMPDIR/waitword-UID", "/tmp if TMPDIR is not set."),
    ];
    match page {
        "waitword-preload" | "waitword-bench" | "waitword-torture" => &[INSTALLED],
        _ if runs_programs(page) => &[INSTALLED],
        _ => &[],
    }
}

/// Other pages on the same subject.
pub(super) fn beside(page: &str) -> &'static [&'static str] {
    match page.strip_prefix("waitword-").unwrap_or_default() {
        "run" => &["waitword-preload", "waitword-compare", "waitword-profile"],
        "preload" => &["waitword-run"],
        "compare" => &["waitword-run", "waitword-profile"],
        "profile" => &["waitword-explain", "waitword-report", "waitword-top", "waitword-deadlock"],
        "explain" => &["waitword-profile", "waitword-report"],
        "report" => &["waitword-profile", "waitword-explain", "waitword-bench"],
        "deadlock" | "top" => &["waitword-profile"],
        "metrics" => &["waitword-top", "waitword-profile"],
        "bench" => &["waitword-report"],
        _ => &[],
    }
}
