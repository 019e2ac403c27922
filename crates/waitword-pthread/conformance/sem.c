/* sem_*: unnamed and named. Sources: POSIX, sem_wait(3), sem_post(3), sem_init(3), sem_open(3),
 * sem_overview(7). */
#include "objects.h"
#include <sys/stat.h>

static sem_t *new_sem(int shared, unsigned value) {
    sem_t *sem = shared ? (sem_t *)shared_memory(4096) : (sem_t *)malloc(sizeof *sem);
    memset(sem, 0xa5, sizeof *sem);
    OK(sem_init(sem, shared, value));
    return sem;
}

static int value_of(sem_t *sem) {
    int value = -77;
    OK(sem_getvalue(sem, &value));
    return value;
}

static void counts(sem_t *sem) {
    EQ(value_of(sem), 3);
    OK(sem_wait(sem));
    OK(sem_trywait(sem));
    struct timespec later = after_ms(CLOCK_REALTIME, FAR_AWAY);
    OK(sem_timedwait(sem, &later));
    EQ(value_of(sem), 0);
    EQ_ERRNO(sem_trywait(sem), EAGAIN);
    OK(sem_post(sem));
    EQ(value_of(sem), 1);
    later = after_ms(CLOCK_MONOTONIC, FAR_AWAY);
    OK(sem_clockwait(sem, CLOCK_MONOTONIC, &later));
    EQ_ERRNO(sem_trywait(sem), EAGAIN);
    /* The time is not checked if the call need not wait. */
    OK(sem_post(sem));
    OK(sem_timedwait(sem, &negative));
}

CASE(private_counts) {
    sem_t *sem = new_sem(0, 3);
    counts(sem);
    OK(sem_destroy(sem));
}

CASE(shared_counts) {
    sem_t *sem = new_sem(1, 3);
    counts(sem);
    OK(sem_destroy(sem));
}

CASE(init_answers) {
    sem_t sem;
    EQ_ERRNO(sem_init(&sem, 0, (unsigned)SEM_VALUE_MAX + 1), EINVAL);
    EQ_ERRNO(sem_init(&sem, 1, (unsigned)SEM_VALUE_MAX + 1), EINVAL);
    EQ_ERRNO(sem_init(&sem, 0, UINT_MAX), EINVAL);
    OK(sem_init(&sem, 0, SEM_VALUE_MAX));
    EQ(value_of(&sem), SEM_VALUE_MAX);
    EQ_ERRNO(sem_post(&sem), EOVERFLOW);
    EQ(value_of(&sem), SEM_VALUE_MAX);
    OK(sem_wait(&sem));
    OK(sem_post(&sem));
    EQ(value_of(&sem), SEM_VALUE_MAX);
    OK(sem_destroy(&sem));
}

static void keeps_time(sem_t *sem) {
    struct timespec soon = after_ms(CLOCK_REALTIME, 30);
    EQ_ERRNO(sem_timedwait(sem, &soon), ETIMEDOUT);
    CHECK(is_past(CLOCK_REALTIME, soon));
    soon = after_ms(CLOCK_REALTIME, 30);
    EQ_ERRNO(sem_clockwait(sem, CLOCK_REALTIME, &soon), ETIMEDOUT);
    CHECK(is_past(CLOCK_REALTIME, soon));
    soon = after_ms(CLOCK_MONOTONIC, 30);
    EQ_ERRNO(sem_clockwait(sem, CLOCK_MONOTONIC, &soon), ETIMEDOUT);
    CHECK(is_past(CLOCK_MONOTONIC, soon));
    EQ_ERRNO(sem_timedwait(sem, &negative), ETIMEDOUT);
    EQ_ERRNO(sem_timedwait(sem, &long_ago), ETIMEDOUT);
    EQ_ERRNO(sem_clockwait(sem, CLOCK_MONOTONIC, &negative), ETIMEDOUT);
    EQ_ERRNO(sem_timedwait(sem, &bad), EINVAL);
    EQ_ERRNO(sem_timedwait(sem, &bad_too), EINVAL);
    EQ_ERRNO(sem_clockwait(sem, CLOCK_MONOTONIC, &bad), EINVAL);
    EQ_ERRNO(sem_clockwait(sem, CLOCK_PROCESS_CPUTIME_ID, &long_ago), EINVAL);
    EQ_ERRNO(sem_clockwait(sem, 77, &long_ago), EINVAL);
    EQ(value_of(sem), 0);
    OK(sem_post(sem));
    /* POSIX requires no check of a time that is not needed; the clock is another matter. */
    ANSWER("bad-time-not-needed", "%s", sem_timedwait(sem, &bad) == 0 ? "0" : error_name(errno));
    ANSWER("bad-clock-not-needed", "%s",
           sem_clockwait(sem, 77, &negative) == 0 ? "0" : error_name(errno));
}

CASE(private_keeps_time) { keeps_time(new_sem(0, 0)); }
CASE(shared_keeps_time) { keeps_time(new_sem(1, 0)); }

/* ---- Waiting ---- */

struct line {
    sem_t *sem;
    int how, served;
};

static void *wait_in_line(void *pointer) {
    struct line *line = (struct line *)pointer;
    OK(sem_wait_by(line->how, line->sem));
    ADD(line->served, 1);
    return NULL;
}

static void serves_one_by_one(sem_t *sem) {
    struct thread threads[6];
    struct line lines[3] = {{sem, 0, 0}, {sem, 1, 0}, {sem, 2, 0}};
    for (int each = 0; each < 6; each++) start(&threads[each], wait_in_line, &lines[each % 3]);
    for (int each = 0; each < 6; each++) until_asleep(&threads[each]);
    EQ(value_of(sem), 0);
    for (int turn = 1; turn <= 6; turn++) {
        OK(sem_post(sem));
        UNTIL(GET(lines[0].served) + GET(lines[1].served) + GET(lines[2].served) == turn);
        pause_ms(5);
        EQ(GET(lines[0].served) + GET(lines[1].served) + GET(lines[2].served), turn);
    }
    for (int each = 0; each < 6; each++) join(&threads[each]);
    EQ(value_of(sem), 0);
}

CASE(private_serves_one_by_one) { serves_one_by_one(new_sem(0, 0)); }
CASE(shared_serves_one_by_one) { serves_one_by_one(new_sem(1, 0)); }

/* ---- Interrupted ---- */

static int handled;
static void note(int signal) {
    (void)signal;
    ADD(handled, 1);
}

struct interrupted {
    sem_t *sem;
    int how, returned, error;
};

static void *be_interrupted(void *pointer) {
    struct interrupted *one = (struct interrupted *)pointer;
    int result = sem_wait_by(one->how, one->sem);
    one->error = result == -1 ? errno : 0;
    SET(one->returned, 1);
    return NULL;
}

static void interrupt(int shared, int flags, int how) {
    struct sigaction action = {.sa_handler = note, .sa_flags = flags};
    struct interrupted one = {new_sem(shared, 0), how, 0, 0};
    struct thread thread;
    OK(sigaction(SIGUSR1, &action, NULL));
    SET(handled, 0);
    start(&thread, be_interrupted, &one);
    until_asleep(&thread);
    OK(pthread_kill(thread.handle, SIGUSR1));
    UNTIL(GET(handled) == 1);
    if (flags & SA_RESTART) {
        pause_ms(10);
        until_asleep(&thread);
        if (how == 0) EQ(GET(one.returned), 0);
        OK(sem_post(one.sem));
    }
    join(&thread);
    /* signal(7) says that waits with a time limit are restarted too. */
    if (flags & SA_RESTART) ANSWER("gives", "%s", error_name(one.error));
    if (!(flags & SA_RESTART) || how == 0) EQ(one.error, flags & SA_RESTART ? 0 : EINTR);
    EQ(value_of(one.sem), flags & SA_RESTART && one.error == EINTR);
    /* The semaphore still works. */
    OK(sem_post(one.sem));
    OK(sem_wait(one.sem));
}

CASE(private_wait_is_interrupted) { interrupt(0, 0, 0); }
CASE(private_timedwait_is_interrupted) { interrupt(0, 0, 1); }
CASE(private_clockwait_is_interrupted) { interrupt(0, 0, 2); }
CASE(shared_wait_is_interrupted) { interrupt(1, 0, 0); }
CASE(private_wait_goes_on) { interrupt(0, SA_RESTART, 0); }
CASE(private_timedwait_goes_on) { interrupt(0, SA_RESTART, 1); }
CASE(private_clockwait_goes_on) { interrupt(0, SA_RESTART, 2); }
CASE(shared_wait_goes_on) { interrupt(1, SA_RESTART, 0); }

/* ---- From a signal handler ---- */

static sem_t *handlers;
static void post_it(int signal) {
    (void)signal;
    int before = errno;
    OK(sem_post(handlers));
    ADD(handled, 1);
    errno = before;
}

static void posts_from_a_handler(int shared) {
    struct sigaction action = {.sa_handler = post_it, .sa_flags = SA_RESTART};
    handlers = new_sem(shared, 0);
    OK(sigaction(SIGUSR1, &action, NULL));
    OK(raise(SIGUSR1));
    EQ(value_of(handlers), 1);
    OK(sem_wait(handlers));
    /* The handler runs in the waiting thread, and ends its wait. */
    for (int turn = 0; turn < 20; turn++) {
        struct interrupted one = {handlers, turn % 3, 0, 0};
        struct thread thread;
        start(&thread, be_interrupted, &one);
        if (turn % 2) until_asleep(&thread);
        OK(pthread_kill(thread.handle, SIGUSR1));
        join(&thread);
        /* With a time limit the wait may be interrupted; the unit is available then. */
        if (one.error == EINTR && one.how != 0) {
            one.error = 0;
            OK(sem_trywait(handlers));
        }
        EQ(one.error, 0);
    }
    EQ(value_of(handlers), 0);
}

CASE(private_posts_from_a_handler) { posts_from_a_handler(0); }
CASE(shared_posts_from_a_handler) { posts_from_a_handler(1); }

/* Handlers that post interrupt threads that post and wait, at any instruction. */
static void *post_and_wait(void *unused) {
    (void)unused;
    for (int turn = 0; turn < 20000; turn++) {
        OK(sem_post(handlers));
        while (sem_wait(handlers) != 0) EQ(errno, EINTR);
    }
    return NULL;
}

CASE(storm_of_handlers) {
    struct sigaction action = {.sa_handler = post_it};
    struct thread threads[2];
    handlers = new_sem(0, 0);
    OK(sigaction(SIGUSR1, &action, NULL));
    for (int each = 0; each < 2; each++) start(&threads[each], post_and_wait, NULL);
    for (int turn = 0; turn < 200; turn++) {
        for (int each = 0; each < 2; each++) {
            if (threads[each].id == -1 || pthread_tryjoin_np(threads[each].handle, NULL) == 0) {
                threads[each].id = -1;
            } else {
                OK(pthread_kill(threads[each].handle, SIGUSR1));
            }
        }
        if (turn % 8 == 0) pause_ms(1);
    }
    for (int each = 0; each < 2; each++)
        if (threads[each].id != -1) join(&threads[each]);
    EQ(value_of(handlers), GET(handled));
}

/* ---- Order and many threads ---- */

static int order[8], ordered;
static void *wait_in_order(void *number) {
    be_real_time((int)(long)number);
    OK(sem_wait(handlers));
    order[ADD(ordered, 1) - 1] = (int)(long)number;
    return NULL;
}

/* POSIX: among real-time threads, the one of the highest priority. */
CASE(posts_by_priority) {
    if (!may_be_real_time()) SKIP("real-time threads are not permitted");
    struct thread threads[4];
    static const long numbers[] = {2, 7, 4, 7};
    handlers = new_sem(0, 0);
    for (int each = 0; each < 4; each++) {
        start(&threads[each], wait_in_order, (void *)numbers[each]);
        until_asleep(&threads[each]);
    }
    for (int each = 0; each < 4; each++) {
        OK(sem_post(handlers));
        UNTIL(GET(ordered) == each + 1);
    }
    for (int each = 0; each < 4; each++) join(&threads[each]);
    ANSWER("order", "%d,%d,%d,%d", order[0], order[1], order[2], order[3]);
}

static sem_t *first, *second;
static void *ping(void *unused) {
    (void)unused;
    for (int turn = 0; turn < 5000; turn++) {
        OK(sem_wait(first));
        OK(sem_post(second));
    }
    return NULL;
}

CASE(ping_pong) {
    struct thread thread;
    first = new_sem(0, 0);
    second = new_sem(0, 0);
    start(&thread, ping, NULL);
    for (int turn = 0; turn < 5000; turn++) {
        OK(sem_post(first));
        OK(sem_wait(second));
    }
    join(&thread);
}

static void *take_many(void *impatient) {
    long got = 0;
    while (got < 5000) {
        if (!impatient) {
            OK(sem_wait(first));
            got++;
            continue;
        }
        struct timespec soon;
        clock_gettime(CLOCK_MONOTONIC, &soon);
        if (soon.tv_nsec < 999000000) soon.tv_nsec += 20000;
        if (sem_clockwait(first, CLOCK_MONOTONIC, &soon) == 0) {
            got++;
        } else {
            EQ(errno, ETIMEDOUT);
        }
    }
    return NULL;
}

static void *post_many(void *unused) {
    (void)unused;
    for (int turn = 0; turn < 10000; turn++) OK(sem_post(first));
    return NULL;
}

static void loses_nothing(int shared) {
    struct thread threads[6];
    first = new_sem(shared, 0);
    for (int each = 0; each < 4; each++) start(&threads[each], take_many, each % 2 ? first : NULL);
    for (int each = 4; each < 6; each++) start(&threads[each], post_many, NULL);
    for (int each = 0; each < 6; each++) join(&threads[each]);
    EQ(value_of(first), 0);
}

CASE(private_loses_nothing) { loses_nothing(0); }
CASE(shared_loses_nothing) { loses_nothing(1); }

/* The thread that was let through destroys and frees the semaphore, while the other may still be
 * in its post. */
static void *wait_and_free(void *pointer) {
    sem_t *sem = (sem_t *)pointer;
    OK(sem_wait(sem));
    OK(sem_destroy(sem));
    OK(munmap(sem, 4096));
    return NULL;
}

CASE(freed_by_the_woken_waiter) {
    for (int turn = 0; turn < 300; turn++) {
        struct thread thread;
        sem_t *sem = new_page();
        OK(sem_init(sem, 0, 0));
        start(&thread, wait_and_free, sem);
        if (turn % 2) UNTIL(GET(thread.id) != 0);
        if (turn % 4 == 3) until_asleep(&thread);
        OK(sem_post(sem));
        join(&thread);
    }
}

/* ---- Named ---- */

static const char *own_name(const char *what) {
    static char name[64];
    snprintf(name, sizeof name, "/waitword-%s-%d", what, getpid());
    return name;
}

CASE(named_counts) {
    const char *name = own_name("counts");
    EQ_ERRNO(sem_open(name, 0) == SEM_FAILED ? -1 : 0, ENOENT);
    sem_t *sem = sem_open(name, O_CREAT | O_EXCL, 0600, 3);
    CHECK(sem != SEM_FAILED);
    EQ_ERRNO(sem_open(name, O_CREAT | O_EXCL, 0600, 3) == SEM_FAILED ? -1 : 0, EEXIST);
    /* The same process gets the same address. */
    CHECK(sem_open(name, 0) == sem);
    OK(sem_close(sem));
    counts(sem);
    OK(sem_unlink(name));
    EQ_ERRNO(sem_unlink(name), ENOENT);
    /* It exists until it is closed. */
    OK(sem_post(sem));
    EQ(value_of(sem), 1);
    OK(sem_close(sem));
}

CASE(named_answers) {
    EQ_ERRNO(sem_open("/", O_CREAT, 0600, 1) == SEM_FAILED ? -1 : 0, EINVAL);
    EQ_ERRNO(sem_open("/a/b", O_CREAT, 0600, 1) == SEM_FAILED ? -1 : 0, EINVAL);
    EQ_ERRNO(sem_open(own_name("big"), O_CREAT, 0600, (unsigned)SEM_VALUE_MAX + 1) == SEM_FAILED
                 ? -1
                 : 0,
             EINVAL);
    sem_t fake;
    memset(&fake, 0, sizeof fake);
    EQ_ERRNO(sem_close(&fake), EINVAL);
}

CASE(named_serves_one_by_one) {
    const char *name = own_name("line");
    sem_t *sem = sem_open(name, O_CREAT | O_EXCL, 0600, 0);
    CHECK(sem != SEM_FAILED);
    OK(sem_unlink(name));
    serves_one_by_one(sem);
    keeps_time(sem);
}

/* argv: the name. Waits once, posts twice. */
PART(named_in_another_process) {
    sem_t *sem = sem_open(part_argument, 0);
    CHECK(sem != SEM_FAILED);
    OK(sem_wait(sem));
    OK(sem_post(sem));
    OK(sem_post(sem));
}

static void named_between(int plain) {
    const char *name = own_name(plain ? "plain" : "same");
    sem_t *sem = sem_open(name, O_CREAT | O_EXCL, 0600, 0);
    CHECK(sem != SEM_FAILED);
    pid_t child = run_part("named_in_another_process", name, plain);
    until_asleep_in(child, child);
    OK(sem_post(sem));
    EQ(end_of(child), 0);
    OK(sem_unlink(name));
    OK(sem_wait(sem));
    OK(sem_wait(sem));
    EQ(value_of(sem), 0);
}

CASE(named_between_processes) { named_between(0); }
CASE(named_with_a_plain_process) { named_between(1); }
