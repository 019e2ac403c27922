/* What the programs in this folder share: their own clocks, a watchdog and the report.
 *
 * The truth must not come from what it is compared with. So each program measures its waits with
 * CLOCK_MONOTONIC around the calls, and what a holder did by the scheduler's own counts. README.md
 * describes the output.
 *
 * What stands between a named function and a call that waits is always inlined. So the caller of
 * pthread_mutex_lock is the named function, also for a stack without debug information. */
#ifndef TRUTH_H
#define TRUTH_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Shorter waits do not count. */
#ifndef THRESHOLD_NS
#define THRESHOLD_NS 10000
#endif
#define WATCHDOG_SECONDS 60
#define HUNG 70
#define US 1000LL
#define MS 1000000LL
#define SECOND 1000000000LL

/* A function that keeps its name and its frame: no inlining, and no clone with a suffix. */
#ifdef __clang__
#define NAMED __attribute__((noinline))
#else
#define NAMED __attribute__((noipa))
#endif
/* After the last call of a NAMED function: without it, the call could be a jump that drops the
 * frame. */
#define KEEP_FRAME() __asm__ volatile("")
#define INLINED static inline __attribute__((always_inline))

/* ---- Errors and the watchdog ---- */

static inline void check(int error, const char *what) {
    if (error != 0) {
        fprintf(stderr, "%s: %s\n", what, strerror(error));
        _exit(1);
    }
}

/* For calls that return -1 and set errno. */
static inline void check_call(long result, const char *what) {
    check(result < 0 ? errno : 0, what);
}

static const char *volatile current_step = "start";

static inline void step(const char *name) {
    current_step = name;
}

static inline void hung(int signal) {
    const char *name = current_step;
    (void)signal;
    if (write(STDERR_FILENO, "hung in step: ", 14) < 0 ||
        write(STDERR_FILENO, name, strlen(name)) < 0 || write(STDERR_FILENO, "\n", 1) < 0)
        _exit(HUNG);
    _exit(HUNG);
}

/* ---- Time ---- */

INLINED long long clock_ns(clockid_t clock) {
    struct timespec time;
    check_call(clock_gettime(clock, &time), "clock_gettime");
    return time.tv_sec * SECOND + time.tv_nsec;
}

INLINED long long now_ns(void) {
    return clock_ns(CLOCK_MONOTONIC);
}

static long long run_length, run_end;

INLINED int time_left(void) {
    return now_ns() < run_end;
}

/* For holders: some sections even if the machine is so busy that the time is over before. */
INLINED int goes_on(long sections_done) {
    return sections_done < 3 || time_left();
}

INLINED void sleep_ns(long long duration) {
    struct timespec time;
    time.tv_sec = duration / SECOND;
    time.tv_nsec = duration % SECOND;
    check_call(nanosleep(&time, NULL), "nanosleep");
}

/* Computes until this thread has used so much more CPU time. */
NAMED static void __attribute__((unused)) compute(long long cpu_time) {
    long long end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + cpu_time;
    while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end) {
        for (volatile int i = 0; i < 1000; i++) {
        }
    }
}

/* Call it first. The only argument multiplies the length of the run, 2 seconds. */
static inline void start_run(int count, char **arguments) {
    char *rest;
    double factor = 1;
    struct sigaction action;
    if (count > 1) {
        factor = strtod(arguments[1], &rest);
        if (count > 2 || *rest != '\0' || !(factor > 0 && factor <= 20)) {
            fprintf(stderr, "usage: %s [FACTOR]   (above 0, at most 20)\n", arguments[0]);
            exit(2);
        }
    }
    memset(&action, 0, sizeof action);
    action.sa_handler = hung;
    check_call(sigaction(SIGALRM, &action, NULL), "sigaction");
    alarm(WATCHDOG_SECONDS);
    run_length = (long long)(2 * SECOND * factor);
    run_end = now_ns() + run_length;
    step("run");
}

/* ---- Threads, processes and CPUs ---- */

static inline void start(pthread_t *thread, void *(*function)(void *), void *argument) {
    check(pthread_create(thread, NULL, function, argument), "pthread_create");
}

static inline void join(pthread_t thread) {
    check(pthread_join(thread, NULL), "pthread_join");
}

static inline long thread_id(void) {
    return syscall(SYS_gettid);
}

/* Binds the caller to one of the CPUs of this process: with two of them, 0 and 1 differ. */
static inline void bind_to_cpu(int number) {
    cpu_set_t all, one;
    int cpu = 0;
    check_call(sched_getaffinity(getpid(), sizeof all, &all), "sched_getaffinity");
    for (number %= CPU_COUNT(&all); !CPU_ISSET(cpu, &all) || number-- > 0; cpu++) {
    }
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    check_call(sched_setaffinity(0, sizeof one, &one), "sched_setaffinity");
}

/* Runs `work` in a process that ends with this one. Call it before you start threads. */
static inline pid_t start_child(void (*work)(void)) {
    pid_t parent = getpid(), child = fork();
    check_call(child, "fork");
    if (child == 0) {
        check_call(prctl(PR_SET_PDEATHSIG, SIGKILL), "prctl");
        if (getppid() == parent) work();
        _exit(0);
    }
    return child;
}

static inline void end_child(pid_t child) {
    check_call(kill(child, SIGKILL), "kill");
    check_call(waitpid(child, NULL, 0), "waitpid");
}

/* Returns once a thread sleeps. Its next sleep must be the one that you mean. */
static inline void wait_until_asleep(long thread) {
    char path[64], line[512], *state;
    snprintf(path, sizeof path, "/proc/self/task/%ld/stat", thread);
    for (;;) {
        FILE *file = fopen(path, "r");
        check_call(file == NULL ? -1 : 0, path);
        if (fgets(line, sizeof line, file) == NULL) line[0] = '\0';
        fclose(file);
        state = strrchr(line, ')');
        if (state != NULL && state[1] == ' ' && state[2] == 'S') return;
        sleep_ns(MS);
    }
}

/* ---- Waits ---- */

/* How long this thread was runnable without a CPU so far: the second number in schedstat. */
static inline long long run_delay(void) {
    static __thread int file = -1;
    char line[96];
    long long delay;
    ssize_t length;
    if (file < 0) file = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    length = pread(file, line, sizeof line - 1, 0);
    check_call(length, "/proc/thread-self/schedstat");
    line[length] = '\0';
    if (sscanf(line, "%*d %lld", &delay) != 1) check(EPROTO, "/proc/thread-self/schedstat");
    return delay;
}

/* A place in the program that waits, named after the function. A wait may be longer because its
 * thread had no CPU: when it was woken, or when it did not wait at all. A profiler may count that
 * time or not, so it is a line of its own. */
struct site {
    const char *name;
    long count;
    long long nanoseconds;
    long delayed;
    long long delay;
};
#define SITE(name) {name, 0, 0, 0, 0}

struct wait_begin {
    long long delay, wall;
};

/* So many calls in a row that did not wait. */
static __thread unsigned short_waits;
#define NEVER_WAITS 100

/* A thread that never waits reads its clock only. */
INLINED struct wait_begin begin_wait(void) {
    struct wait_begin begin;
    begin.delay = short_waits < NEVER_WAITS ? run_delay() : -1;
    begin.wall = now_ns();
    return begin;
}

INLINED void end_wait(struct site *site, struct wait_begin begin) {
    long long nanoseconds = now_ns() - begin.wall, delay;
    if (nanoseconds < THRESHOLD_NS) {
        short_waits++;
        return;
    }
    short_waits = 0;
    __atomic_fetch_add(&site->count, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&site->nanoseconds, nanoseconds, __ATOMIC_RELAXED);
    delay = begin.delay < 0 ? nanoseconds : run_delay() - begin.delay;
    __atomic_fetch_add(&site->delayed, delay >= THRESHOLD_NS, __ATOMIC_RELAXED);
    __atomic_fetch_add(&site->delay, delay, __ATOMIC_RELAXED);
}

/* A profiler may set something up at a thread's first lock. That is no wait. */
INLINED void warm_up(void) {
    static __thread int is_warm;
    static __thread pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
    if (is_warm) return;
    is_warm = 1;
    check(pthread_mutex_lock(&own), "the thread's own mutex");
    check(pthread_mutex_unlock(&own), "the thread's own mutex");
}

/* The value of a call whose time counts as a wait at the site. */
#define WAITED(site, call)                            \
    __extension__({                                   \
        warm_up();                                    \
        struct wait_begin waited_from = begin_wait(); \
        int waited_result = (call);                   \
        end_wait(site, waited_from);                  \
        waited_result;                                \
    })

INLINED void locked(struct site *site, pthread_mutex_t *mutex) {
    check(WAITED(site, pthread_mutex_lock(mutex)), site->name);
}

INLINED void unlocked(pthread_mutex_t *mutex) {
    check(pthread_mutex_unlock(mutex), "pthread_mutex_unlock");
}

static inline void print_site(const struct site *site) {
    printf("wait %s %ld %lld\n", site->name, site->count, site->nanoseconds);
    printf("delay %s %ld %lld\n", site->name, site->delayed, site->delay);
}

/* For waits that are not waits for a lock: "condvar", "semaphore", "join". */
static inline void print_idle_site(const char *kind, const struct site *site) {
    printf("answer %s_site %s\n", kind, site->name);
    printf("answer %s_waits %ld\n", kind, site->count);
    printf("answer %s_wait_ns %lld\n", kind, site->nanoseconds);
    printf("delay %s %ld %lld\n", site->name, site->delayed, site->delay);
}

/* ---- What a holder did in its sections ---- */

struct moment {
    long long wall, cpu, run_delay;
    long sleeps, preemptions;
};

struct section {
    long count;
    struct moment sum;
};

static inline struct moment moment(void) {
    struct moment here;
    struct rusage usage;
    long preemptions;
    /* The counts fit together only if the thread keeps its CPU while it reads them. */
    do {
        check_call(getrusage(RUSAGE_THREAD, &usage), "getrusage");
        preemptions = usage.ru_nivcsw;
        here.run_delay = run_delay();
        here.cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        here.wall = now_ns();
        check_call(getrusage(RUSAGE_THREAD, &usage), "getrusage");
    } while (preemptions != usage.ru_nivcsw);
    here.sleeps = usage.ru_nvcsw;
    here.preemptions = preemptions;
    return here;
}

/* Adds the time since `from`. Only one thread at a time may add to a section: its lock's holder. */
static inline void add_section(struct section *section, struct moment from) {
    struct moment here = moment();
    section->count++;
    section->sum.wall += here.wall - from.wall;
    section->sum.cpu += here.cpu - from.cpu;
    section->sum.run_delay += here.run_delay - from.run_delay;
    section->sum.sleeps += here.sleeps - from.sleeps;
    section->sum.preemptions += here.preemptions - from.preemptions;
}

/* Running, preempted and asleep are 100 % together: asleep is what the other two leave. */
static inline void print_section(const char *who, const struct section *section) {
    const struct moment *sum = &section->sum;
    double percent = sum->wall > 0 ? 100.0 / (double)sum->wall : 0;
    long long asleep = sum->wall - sum->cpu - sum->run_delay;
    printf("answer %s_sections %ld\n", who, section->count);
    printf("answer %s_section_ns %lld\n", who, sum->wall);
    printf("answer %s_running_percent %.1f\n", who, percent * (double)sum->cpu);
    printf("answer %s_preempted_percent %.1f\n", who, percent * (double)sum->run_delay);
    printf("answer %s_asleep_percent %.1f\n", who, asleep > 0 ? percent * (double)asleep : 0);
    printf("answer %s_sleeps %ld\n", who, sum->sleeps);
    printf("answer %s_preemptions %ld\n", who, sum->preemptions);
}

#endif
