/* Priority inheritance and protection: PTHREAD_PRIO_INHERIT and PTHREAD_PRIO_PROTECT with
 * real-time threads on one CPU, also through a wait in a condition variable (glibc's bug 11588).
 * Sources: POSIX, pthread_mutexattr_setprotocol(3p), pthread_mutex_getprioceiling(3p), sched(7).
 * Without CAP_SYS_NICE, cases that need it are skipped, with a message. */
#include "objects.h"
#include <sys/eventfd.h>

static pthread_mutex_t mutex;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static int stage, done;
static struct timespec woken;

static void make(pthread_mutex_t *made, int protocol, int ceiling) {
    pthread_mutexattr_t attributes;
    OK(pthread_mutexattr_init(&attributes));
    OK(pthread_mutexattr_setprotocol(&attributes, protocol));
    if (ceiling != 0) OK(pthread_mutexattr_setprioceiling(&attributes, ceiling));
    OK(pthread_mutex_init(made, &attributes));
    OK(pthread_mutexattr_destroy(&attributes));
}

/* Uses the CPU for this long, not counting other threads' use. */
static void work_ms(long milliseconds) {
    struct timespec limit = after_ms(CLOCK_THREAD_CPUTIME_ID, milliseconds);
    while (!is_past(CLOCK_THREAD_CPUTIME_ID, limit)) {
    }
}

static long ms_between(struct timespec from, struct timespec to) {
    return (to.tv_sec - from.tv_sec) * 1000 + (to.tv_nsec - from.tv_nsec) / 1000000;
}

static struct timespec now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time;
}

/* Threads sleep here until they are released, each kind at its own gate, without a lock of the C
 * library's. */
static int gates[3];
enum { LOWS, MIDDLES, HIGHS };

static void wait_at_gate(int which) {
    uint64_t count;
    while (read(gates[which], &count, sizeof count) != sizeof count) {
    }
}

static void let_go(int which) {
    uint64_t one = 1;
    EQ(write(gates[which], &one, sizeof one), sizeof one);
}

enum { LOW = 10, MIDDLE = 20, HIGH = 30, DIRECTOR = 60, HOLDS_MS = 20, HOGS_MS = 400 };

/* All threads on one CPU; the caller has the highest priority, so that it sets the scene
 * undisturbed. */
static void set_the_scene(void) {
    if (!may_be_real_time()) SKIP("real-time threads are not permitted");
    for (int each = 0; each < 3; each++) gates[each] = eventfd(0, 0);
    only_on_cpu(sched_getcpu());
    be_real_time(DIRECTOR);
    make(&mutex, PTHREAD_PRIO_INHERIT, 0);
}

/* A thread between the high and the low one: it uses the CPU and needs no lock. */
static void *hog(void *unused) {
    (void)unused;
    be_real_time(MIDDLE);
    wait_at_gate(MIDDLES);
    work_ms(HOGS_MS);
    return NULL;
}

static void is_soon(struct timespec begin) {
    long waited = ms_between(begin, woken);
    if (waited >= HOGS_MS) FAIL("the high one waited for the middle one: %ld ms", waited);
}

/* ---- A lock ---- */

static void *hold(void *unused) {
    (void)unused;
    be_real_time(LOW);
    OK(pthread_mutex_lock(&mutex));
    SET(stage, 1);
    wait_at_gate(LOWS);
    work_ms(HOLDS_MS);
    OK(pthread_mutex_unlock(&mutex));
    return NULL;
}

static void *want(void *timed) {
    struct timespec later = after_ms(CLOCK_MONOTONIC, FAR_AWAY);
    be_real_time(HIGH);
    wait_at_gate(HIGHS);
    OK(timed ? pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &later)
             : pthread_mutex_lock(&mutex));
    woken = now();
    OK(pthread_mutex_unlock(&mutex));
    return NULL;
}

static void a_lock_is_soon(void *timed) {
    struct thread threads[3];
    set_the_scene();
    start(&threads[0], hold, NULL);
    UNTIL(GET(stage) == 1);
    start(&threads[1], want, timed);
    start(&threads[2], hog, NULL);
    for (int each = 0; each < 3; each++) until_asleep(&threads[each]);
    struct timespec begin = now();
    for (int each = 0; each < 3; each++) let_go(each);
    for (int each = 0; each < 3; each++) join(&threads[each]);
    is_soon(begin);
}

CASE(a_lock_inherits) { a_lock_is_soon(NULL); }
CASE(a_timed_lock_inherits) { a_lock_is_soon(&mutex); }

/* ---- A wait: the low one signals and keeps working with the mutex, and the middle one comes
 * ---- */

static void *wait_high(void *timed) {
    be_real_time(HIGH);
    OK(pthread_mutex_lock(&mutex));
    SET(stage, 1);
    while (!done) {
        struct timespec later = after_ms(CLOCK_REALTIME, FAR_AWAY);
        OK(timed ? pthread_cond_timedwait(&condition, &mutex, &later)
                 : pthread_cond_wait(&condition, &mutex));
    }
    woken = now();
    OK(pthread_mutex_unlock(&mutex));
    return NULL;
}

static struct timespec signalled;
static void *signal_and_hold(void *broadcast) {
    be_real_time(LOW);
    OK(pthread_mutex_lock(&mutex));
    done = 1;
    signalled = now();
    OK(broadcast ? pthread_cond_broadcast(&condition) : pthread_cond_signal(&condition));
    let_go(MIDDLES);
    work_ms(HOLDS_MS);
    OK(pthread_mutex_unlock(&mutex));
    return NULL;
}

static void a_wait_is_soon(void *timed, void *broadcast) {
    struct thread threads[3];
    set_the_scene();
    start(&threads[0], wait_high, timed);
    UNTIL(GET(stage) == 1);
    start(&threads[1], hog, NULL);
    until_asleep(&threads[0]);
    until_asleep(&threads[1]);
    start(&threads[2], signal_and_hold, broadcast);
    for (int each = 0; each < 3; each++) join(&threads[each]);
    is_soon(signalled);
}

CASE(a_signal_inherits) { a_wait_is_soon(NULL, NULL); }
CASE(a_broadcast_inherits) { a_wait_is_soon(NULL, &mutex); }
CASE(a_signal_inherits_timed) { a_wait_is_soon(&mutex, NULL); }

/* ---- A wait, with a low one that waits too ----
 *
 * The director wakes the low waiter, which does not get the CPU, since the middle one has it.
 * Then a high one comes, waits, and is to be woken. In glibc before 2.41 a signaller waits until
 * the waiters that were signalled before have left: here, until the middle one is done. The high
 * thread is delayed by a lower one without any lock: no inheritance fixes that. */

static void *wait_at(void *priority) {
    be_real_time((int)(long)priority);
    OK(pthread_mutex_lock(&mutex));
    ADD(stage, 1);
    OK(pthread_cond_wait(&condition, &mutex));
    if ((long)priority == HIGH) woken = now();
    OK(pthread_mutex_unlock(&mutex));
    return NULL;
}

static long high_one_behind(int protocol) {
    struct thread low, high, middle;
    set_the_scene();
    make(&mutex, protocol, 0);
    start(&middle, hog, NULL);
    start(&low, wait_at, (void *)LOW);
    until_asleep(&middle);
    UNTIL(GET(stage) == 1);
    until_asleep(&low);
    let_go(MIDDLES);
    OK(pthread_mutex_lock(&mutex));
    OK(pthread_cond_signal(&condition));
    OK(pthread_mutex_unlock(&mutex));
    start(&high, wait_at, (void *)HIGH);
    UNTIL(GET(stage) == 2);
    until_asleep(&high);
    struct timespec begin = now();
    OK(pthread_mutex_lock(&mutex));
    OK(pthread_cond_signal(&condition));
    OK(pthread_mutex_unlock(&mutex));
    join(&high);
    join(&low);
    join(&middle);
    return ms_between(begin, woken);
}

CASE(a_wake_up_waits_for_no_lower_thread) {
    ANSWER("held-up", "%s", high_one_behind(PTHREAD_PRIO_NONE) >= HOGS_MS / 2 ? "yes" : "no");
}

CASE(a_wake_up_waits_for_no_lower_thread_inheriting) {
    ANSWER("held-up", "%s", high_one_behind(PTHREAD_PRIO_INHERIT) >= HOGS_MS / 2 ? "yes" : "no");
}

/* ---- Protection ---- */

static int priority_now(void) {
    struct sched_param param;
    OK(sched_getparam(0, &param));
    return param.sched_priority;
}

CASE(a_ceiling_raises) {
    int ceiling, before;
    if (!may_be_real_time()) SKIP("real-time threads are not permitted");
    be_real_time(5);
    make(&mutex, PTHREAD_PRIO_PROTECT, 17);
    OK(pthread_mutex_getprioceiling(&mutex, &ceiling));
    EQ(ceiling, 17);
    OK(pthread_mutex_lock(&mutex));
    EQ(priority_now(), 17);
    OK(pthread_mutex_unlock(&mutex));
    EQ(priority_now(), 5);
    OK(pthread_mutex_trylock(&mutex));
    EQ(priority_now(), 17);
    OK(pthread_mutex_unlock(&mutex));
    struct timespec later = after_ms(CLOCK_REALTIME, FAR_AWAY);
    OK(pthread_mutex_timedlock(&mutex, &later));
    EQ(priority_now(), 17);
    OK(pthread_mutex_unlock(&mutex));
    OK(pthread_mutex_setprioceiling(&mutex, 25, &before));
    EQ(before, 17);
    OK(pthread_mutex_lock(&mutex));
    EQ(priority_now(), 25);
    /* While it waits with the mutex, it needs no protection. */
    struct timespec soon = after_ms(CLOCK_REALTIME, 20);
    EQ(pthread_cond_timedwait(&condition, &mutex, &soon), ETIMEDOUT);
    EQ(priority_now(), 25);
    OK(pthread_mutex_unlock(&mutex));
    EQ(priority_now(), 5);
    OK(pthread_mutex_destroy(&mutex));
}

CASE(a_ceiling_refuses) {
    int before;
    if (!may_be_real_time()) SKIP("real-time threads are not permitted");
    make(&mutex, PTHREAD_PRIO_PROTECT, 17);
    be_real_time(18);
    EQ(pthread_mutex_lock(&mutex), EINVAL);
    EQ(pthread_mutex_trylock(&mutex), EINVAL);
    be_real_time(17);
    OK(pthread_mutex_lock(&mutex));
    OK(pthread_mutex_unlock(&mutex));
    EQ(pthread_mutex_setprioceiling(&mutex, 100, &before), EINVAL);
    EQ(pthread_mutex_setprioceiling(&mutex, 0, &before), EINVAL);
}

CASE(a_ceiling_needs_protection) {
    int ceiling;
    pthread_mutex_t plain = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutexattr_t attributes;
    EQ(pthread_mutex_getprioceiling(&plain, &ceiling), EINVAL);
    EQ(pthread_mutex_setprioceiling(&plain, 17, &ceiling), EINVAL);
    make(&mutex, PTHREAD_PRIO_INHERIT, 0);
    EQ(pthread_mutex_getprioceiling(&mutex, &ceiling), EINVAL);
    EQ(pthread_mutex_setprioceiling(&mutex, 17, &ceiling), EINVAL);
    OK(pthread_mutexattr_init(&attributes));
    EQ(pthread_mutexattr_setprotocol(&attributes, 9), EINVAL);
    EQ(pthread_mutexattr_setprioceiling(&attributes, 100), EINVAL);
    OK(pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_PROTECT));
    OK(pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST));
    pthread_mutex_t both;
    EQ(pthread_mutex_init(&both, &attributes), ENOTSUP);
}

CASE(protecting_excludes) {
    struct thread thread;
    if (!may_be_real_time()) SKIP("real-time threads are not permitted");
    be_real_time(5);
    make(&mutex, PTHREAD_PRIO_PROTECT, 17);
    OK(pthread_mutex_lock(&mutex));
    EQ(pthread_mutex_trylock(&mutex), EBUSY);
    EQ(pthread_mutex_destroy(&mutex), EBUSY);
    start(&thread, lock_it, &mutex);
    until_asleep(&thread);
    CHECK(still_waits(&thread, 20));
    OK(pthread_mutex_unlock(&mutex));
    EQ(join(&thread), 0);
}
