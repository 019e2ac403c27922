/* Shared by all programs of the conformance suite: named cases, checks, and threads that can be
 * seen to sleep.
 *
 *     program            runs every case in a process of its own (CONFORMANCE_JOBS at once), with a
 *                        time limit (CONFORMANCE_PATIENCE times as long as usual)
 *     program CASE       runs one
 *     program --list     lists their names
 *
 * Output, one line each:
 *
 *     ok CASE                     all checks held
 *     answer CASE.WHAT VALUE      something that POSIX leaves open, to be the same on every
 *                                 implementation that calls itself a drop-in
 *     skip CASE WHY               not possible here
 *     FAIL CASE WHY               a check did not hold, a signal ended the case, or it hung (then
 *                                 its threads are shown on stderr)
 *
 * Cases are written from POSIX and the man pages, and hold on glibc alone.
 */
#ifndef WAITWORD_CONFORMANCE_H
#define WAITWORD_CONFORMANCE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- Cases ---- */

struct conformance_case {
    const char *name;
    void (*run)(void);
    /* The time limit. */
    int seconds;
    /* Runs only when another case starts it as a process of its own. */
    int is_part;
    struct conformance_case *next;
};

static struct conformance_case *conformance_first, **conformance_end = &conformance_first;
static struct conformance_case *conformance_current;
/* The argument that `run_part` has passed to this process. */
static const char *part_argument;

static inline void conformance_register(struct conformance_case *one) {
    *conformance_end = one;
    conformance_end = &one->next;
}

#define CONFORMANCE_CASE(name, seconds, is_part)                                              \
    static void name(void);                                                                   \
    static struct conformance_case name##_case = {#name, name, seconds, is_part, NULL};      \
    __attribute__((constructor)) static void name##_register(void) {                         \
        conformance_register(&name##_case);                                                   \
    }                                                                                         \
    static void name(void)

/* CASE(name) { checks } */
#define CASE(name) CONFORMANCE_CASE(name, 20, 0)
#define LONG_CASE(name, seconds) CONFORMANCE_CASE(name, seconds, 0)
/* Code that another process runs for a case. */
#define PART(name) CONFORMANCE_CASE(name, 20, 1)

/* ---- Reports of a case ---- */

__attribute__((format(printf, 2, 3), unused)) static void say(const char *what, const char *format,
                                                              ...) {
    char line[600], text[400];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    int length = snprintf(line, sizeof line, "%s %s%s\n", what, conformance_current->name, text);
    /* One write, so that lines of concurrent processes do not mix. */
    if (write(STDOUT_FILENO, line, (size_t)length) != length) _exit(3);
}

/* Printing is a cancellation point: a thread with a pending request would be cancelled there
 * instead of reporting the failure. */
#define FAIL(...)                                         \
    do {                                                  \
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL); \
        say("FAIL", " " __VA_ARGS__);                       \
        _exit(1);                                         \
    } while (0)

#define SKIP(...)                   \
    do {                            \
        say("skip", " " __VA_ARGS__); \
        _exit(0);                   \
    } while (0)

#define ANSWER(what, format, ...) say("answer", "." what " " format, __VA_ARGS__)

/* glibc has it since 2.32. */
extern const char *strerrorname_np(int error) __THROW __attribute__((weak));

static inline const char *error_name(long error) {
    static __thread char number[24];
    const char *name = strerrorname_np != NULL && error > 0 && error < 4096
                           ? strerrorname_np((int)error)
                           : NULL;
    if (name != NULL) return name;
    snprintf(number, sizeof number, "%ld", error);
    return number;
}

#define CHECK(condition)                                                  \
    do {                                                                  \
        if (!(condition)) FAIL("line %d: not so: %s", __LINE__, #condition); \
    } while (0)

/* Checks the result of a function: an error number, or a count. */
#define EQ(expression, wanted)                                                             \
    do {                                                                                   \
        long eq_got = (long)(expression), eq_wanted = (long)(wanted);                      \
        if (eq_got != eq_wanted)                                                           \
            FAIL("line %d: %s gave %s, not %s", __LINE__, #expression, error_name(eq_got), \
                 error_name(eq_wanted));                                                   \
    } while (0)

#define OK(expression) EQ(expression, 0)

/* Checks that a function returns -1 and sets errno. */
#define EQ_ERRNO(expression, wanted)                                                            \
    do {                                                                                        \
        errno = 0;                                                                              \
        if ((expression) != -1 || errno != (wanted))                                            \
            FAIL("line %d: %s left errno %s, not %s", __LINE__, #expression, error_name(errno), \
                 error_name(wanted));                                                           \
    } while (0)

/* ---- Time ---- */

static inline void pause_ms(long milliseconds) {
    struct timespec left = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    while (nanosleep(&left, &left) == -1 && errno == EINTR) {
    }
}

static inline struct timespec after_ms(clockid_t clock, long milliseconds) {
    struct timespec time;
    clock_gettime(clock, &time);
    long nanoseconds = time.tv_nsec + milliseconds % 1000 * 1000000;
    time.tv_sec += milliseconds / 1000 + nanoseconds / 1000000000;
    time.tv_nsec = nanoseconds % 1000000000;
    if (time.tv_nsec < 0) {
        time.tv_nsec += 1000000000;
        time.tv_sec -= 1;
    }
    return time;
}

/* Long after any time limit. */
#define FAR_AWAY 600000

static inline int is_past(clockid_t clock, struct timespec time) {
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec > time.tv_sec || (now.tv_sec == time.tv_sec && now.tv_nsec >= time.tv_nsec);
}

/* ---- Small atomics, the same in C and C++ ---- */

#define GET(variable) __atomic_load_n(&(variable), __ATOMIC_SEQ_CST)
#define SET(variable, value) __atomic_store_n(&(variable), (value), __ATOMIC_SEQ_CST)
#define ADD(variable, value) __atomic_add_fetch(&(variable), (value), __ATOMIC_SEQ_CST)

/* Waits for something that is certain to happen. */
#define UNTIL(condition) \
    while (!(condition)) pause_ms(1)

/* ---- Threads ---- */

struct thread {
    pthread_t handle;
    pid_t id;
    void *(*run)(void *);
    void *argument;
};

__attribute__((unused)) static void *thread_main(void *pointer) {
    struct thread *self = (struct thread *)pointer;
    SET(self->id, (pid_t)syscall(SYS_gettid));
    return self->run(self->argument);
}

static inline void start(struct thread *thread, void *(*run)(void *), void *argument) {
    thread->id = 0;
    thread->run = run;
    thread->argument = argument;
    OK(pthread_create(&thread->handle, NULL, thread_main, thread));
}

static inline void *join(struct thread *thread) {
    void *result = NULL;
    OK(pthread_join(thread->handle, &result));
    return result;
}

/* The state letter of `/proc/PROCESS/task/THREAD/stat`: R, S, D ...; 0 if the thread is gone. */
static inline char thread_state(pid_t process, pid_t thread) {
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%d/task/%d/stat", process, thread);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    if (length <= 0) return 0;
    text[length] = 0;
    const char *end = strrchr(text, ')');
    return end != NULL && end[1] == ' ' ? end[2] : 0;
}

/* Waits until a thread has slept for some milliseconds without interruption: it has reached the
 * wait that the case expects. */
static inline void until_asleep_in(pid_t process, pid_t thread) {
    for (int asleep = 0; asleep < 6;) {
        char state = thread_state(process, thread);
        if (state == 0) return;
        asleep = state == 'S' ? asleep + 1 : 0;
        pause_ms(1);
    }
}

static inline void until_asleep(struct thread *thread) {
    UNTIL(GET(thread->id) != 0);
    until_asleep_in(getpid(), GET(thread->id));
}

/* Whether a thread is still running after `milliseconds`: a call that must not return has not. */
static inline int still_waits(struct thread *thread, int milliseconds) {
    struct timespec until = after_ms(CLOCK_REALTIME, milliseconds);
    void *result;
    return pthread_timedjoin_np(thread->handle, &result, &until) == ETIMEDOUT;
}

/* ---- Processes ---- */

/* Memory that forked processes share. */
static inline void *shared_memory(size_t size) {
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    return memory;
}

/* How a child ended: its exit status, or minus the signal's number. */
static inline int end_of(pid_t child) {
    int status;
    while (waitpid(child, &status, 0) != child) {
        if (errno != EINTR) FAIL("waitpid: %s", error_name(errno));
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* A child of fork that runs `body` and exits with 0. */
#define CHILD(variable, body)     \
    pid_t variable = fork();      \
    CHECK(variable >= 0);         \
    if (variable == 0) {          \
        body;                     \
        _exit(0);                 \
    }

/* Starts this program again to run a PART: without the drop-in if `plain` (and if there is one).
 * The part can read `argument`. */
static inline pid_t run_part(const char *part, const char *argument, int plain) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child != 0) return child;
    if (plain) unsetenv("LD_PRELOAD");
    execl("/proc/self/exe", "part", part, argument, (char *)NULL);
    FAIL("exec: %s", error_name(errno));
}

/* A file in memory that parts map too. Their argument is the file's descriptor. */
static inline void *memory_file(size_t size, char argument[16]) {
    int file = memfd_create("conformance", 0);
    CHECK(file >= 0);
    OK(ftruncate(file, (off_t)size));
    snprintf(argument, 16, "%d", file);
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    CHECK(memory != MAP_FAILED);
    return memory;
}

static inline void *map_memory_file(size_t size) {
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, atoi(part_argument), 0);
    CHECK(memory != MAP_FAILED);
    return memory;
}

/* ---- Real-time threads ---- */

/* Whether this user may create real-time threads. */
static inline int may_be_real_time(void) {
    struct sched_param before, wanted = {.sched_priority = 1};
    int policy;
    OK(pthread_getschedparam(pthread_self(), &policy, &before));
    if (pthread_setschedparam(pthread_self(), SCHED_FIFO, &wanted) != 0) return 0;
    OK(pthread_setschedparam(pthread_self(), policy, &before));
    return 1;
}

static inline void be_real_time(int priority) {
    struct sched_param wanted = {.sched_priority = priority};
    OK(pthread_setschedparam(pthread_self(), SCHED_FIFO, &wanted));
}

static inline void only_on_cpu(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    OK(sched_setaffinity(0, sizeof set, &set));
}

/* ---- The runner ---- */

/* Shows where each thread of a hung process is. */
static inline void show_threads(pid_t process, const char *name) {
    char path[64], line[700];
    snprintf(path, sizeof path, "/proc/%d/task", process);
    DIR *tasks = opendir(path);
    if (tasks == NULL) return;
    fprintf(stderr, "%s hangs; its threads:\n", name);
    for (struct dirent *task; (task = readdir(tasks)) != NULL;) {
        if (task->d_name[0] == '.') continue;
        static const char *const files[] = {"stat", "wchan", "syscall"};
        for (size_t each = 0; each < sizeof files / sizeof *files; each++) {
            snprintf(path, sizeof path, "/proc/%d/task/%.16s/%s", process, task->d_name,
                     files[each]);
            FILE *file = fopen(path, "re");
            if (file == NULL) continue;
            if (fgets(line, sizeof line, file) == NULL) line[0] = 0;
            fclose(file);
            fprintf(stderr, "  %s %s: %s%s", task->d_name, files[each], line,
                    strchr(line, '\n') ? "" : "\n");
        }
    }
    closedir(tasks);
}

struct conformance_run {
    struct conformance_case *one;
    pid_t process;
    struct timespec limit;
};

static inline int conformance_seconds(const struct conformance_case *one) {
    const char *patience = getenv("CONFORMANCE_PATIENCE");
    return one->seconds * (patience != NULL && atoi(patience) > 0 ? atoi(patience) : 1);
}

static inline int conformance_run_one(struct conformance_case *one) {
    conformance_current = one;
    one->run();
    if (!one->is_part) say("ok", "%s", "");
    return 0;
}

static inline struct conformance_run conformance_start(struct conformance_case *one) {
    struct conformance_run run = {one, fork(),
                                  after_ms(CLOCK_MONOTONIC, conformance_seconds(one) * 1000L)};
    if (run.process == 0) {
        /* A process group of its own, so that anything it leaves behind can be ended. */
        setpgid(0, 0);
        execl("/proc/self/exe", "case", one->name, (char *)NULL);
        _exit(4);
    }
    setpgid(run.process, run.process);
    return run;
}

/* Whether the run has ended; reports it if it failed. */
static inline int conformance_has_ended(struct conformance_run *run, int *failed) {
    int status;
    conformance_current = run->one;
    pid_t ended = waitpid(run->process, &status, WNOHANG);
    if (ended == 0 && !is_past(CLOCK_MONOTONIC, run->limit)) return 0;
    if (ended == 0) {
        say("FAIL", " hangs");
        show_threads(run->process, run->one->name);
        kill(-run->process, SIGKILL);
        waitpid(run->process, &status, 0);
        *failed = 1;
        return 1;
    }
    kill(-run->process, SIGKILL);
    if (WIFSIGNALED(status)) say("FAIL", " ended by signal %d", WTERMSIG(status));
    *failed |= status != 0;
    return 1;
}

int main(int count, char **arguments) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (count >= 2 && strcmp(arguments[1], "--list") == 0) {
        for (struct conformance_case *one = conformance_first; one != NULL; one = one->next)
            if (!one->is_part) puts(one->name);
        return 0;
    }
    if (count >= 2) {
        part_argument = count >= 3 ? arguments[2] : NULL;
        for (struct conformance_case *one = conformance_first; one != NULL; one = one->next) {
            if (strcmp(one->name, arguments[1]) != 0) continue;
            alarm((unsigned)conformance_seconds(one) + 10);
            return conformance_run_one(one);
        }
        fprintf(stderr, "no case is called %s; --list names them\n", arguments[1]);
        return 2;
    }
    enum { MOST = 64 };
    const char *jobs = getenv("CONFORMANCE_JOBS");
    int at_once = jobs != NULL ? atoi(jobs) : 6, running = 0, failed = 0;
    if (at_once < 1 || at_once > MOST) at_once = 1;
    struct conformance_run runs[MOST];
    struct conformance_case *next = conformance_first;
    while (running > 0 || next != NULL) {
        while (next != NULL && running < at_once) {
            if (!next->is_part) runs[running++] = conformance_start(next);
            next = next->next;
        }
        for (int each = 0; each < running;) {
            if (conformance_has_ended(&runs[each], &failed)) {
                runs[each] = runs[--running];
            } else {
                each++;
            }
        }
        pause_ms(1);
    }
    return failed;
}

#endif
