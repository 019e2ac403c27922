/* pthread_rwlock_*: kinds, recursion, return codes, time limits. Sources: POSIX,
 * pthread_rwlock_rdlock(3p), pthread_rwlock_wrlock(3p), pthread_rwlockattr_setkind_np(3). */
#include "objects.h"

static pthread_rwlock_t static_lock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_rwlock_t static_writers = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
static pthread_rwlock_t *new_lock(int kind, int shared) {
    pthread_rwlockattr_t attributes;
    pthread_rwlock_t *lock = (pthread_rwlock_t *)shared_memory(4096);
    memset(lock, 0xa5, sizeof *lock);
    OK(pthread_rwlockattr_init(&attributes));
    OK(pthread_rwlockattr_setkind_np(&attributes, kind));
    OK(pthread_rwlockattr_setpshared(&attributes,
                                     shared ? PTHREAD_PROCESS_SHARED : PTHREAD_PROCESS_PRIVATE));
    OK(pthread_rwlock_init(lock, &attributes));
    OK(pthread_rwlockattr_destroy(&attributes));
    return lock;
}

#define READERS PTHREAD_RWLOCK_PREFER_READER_NP
#define WRITERS PTHREAD_RWLOCK_PREFER_WRITER_NP
#define WRITERS_STRICTLY PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP

static void *try_read(void *lock) {
    long result = pthread_rwlock_tryrdlock(lock);
    if (result == 0) OK(pthread_rwlock_unlock(lock));
    return (void *)result;
}

static void *try_write(void *lock) {
    long result = pthread_rwlock_trywrlock(lock);
    if (result == 0) OK(pthread_rwlock_unlock(lock));
    return (void *)result;
}

static void *read_it(void *lock) {
    OK(pthread_rwlock_rdlock(lock));
    OK(pthread_rwlock_unlock(lock));
    return NULL;
}

static void *write_it(void *lock) {
    OK(pthread_rwlock_wrlock(lock));
    OK(pthread_rwlock_unlock(lock));
    return NULL;
}

static long elsewhere(void *(*run)(void *), pthread_rwlock_t *lock) {
    struct thread thread;
    start(&thread, run, lock);
    return (long)join(&thread);
}

/* Readers share, writers exclude, and waiters get their turn. */
static void shares(pthread_rwlock_t *lock) {
    struct thread reader, writer;
    OK(pthread_rwlock_rdlock(lock));
    EQ(elsewhere(try_read, lock), 0);
    EQ(elsewhere(read_it, lock), 0);
    EQ(elsewhere(try_write, lock), EBUSY);
    EQ(pthread_rwlock_trywrlock(lock), EBUSY);
    OK(pthread_rwlock_tryrdlock(lock));
    OK(pthread_rwlock_unlock(lock));
    start(&writer, write_it, lock);
    until_asleep(&writer);
    CHECK(still_waits(&writer, 20));
    OK(pthread_rwlock_unlock(lock));
    join(&writer);
    OK(pthread_rwlock_wrlock(lock));
    EQ(elsewhere(try_read, lock), EBUSY);
    EQ(elsewhere(try_write, lock), EBUSY);
    EQ(pthread_rwlock_tryrdlock(lock), EBUSY);
    EQ(pthread_rwlock_trywrlock(lock), EBUSY);
    start(&reader, read_it, lock);
    start(&writer, write_it, lock);
    until_asleep(&reader);
    until_asleep(&writer);
    OK(pthread_rwlock_unlock(lock));
    join(&reader);
    join(&writer);
    OK(pthread_rwlock_destroy(lock));
}

/* POSIX leaves undefined what destroying a held lock does. It does nothing, and programs rely on
 * that as they end. Once initialised again it is free. */
static void destroyed_while_held(pthread_rwlock_t *lock, int shared) {
    pthread_rwlockattr_t attributes;
    OK(pthread_rwlockattr_init(&attributes));
    OK(pthread_rwlockattr_setpshared(&attributes, shared));
    for (int is_written = 0; is_written < 2; is_written++) {
        OK((is_written ? pthread_rwlock_wrlock : pthread_rwlock_rdlock)(lock));
        OK(pthread_rwlock_destroy(lock));
        EQ(elsewhere(try_write, lock), EBUSY);
        OK(pthread_rwlock_unlock(lock));
        OK(elsewhere(try_write, lock));
        OK((is_written ? pthread_rwlock_wrlock : pthread_rwlock_rdlock)(lock));
        OK(pthread_rwlock_destroy(lock));
        OK(pthread_rwlock_init(lock, &attributes));
        OK(elsewhere(try_write, lock));
        OK(pthread_rwlock_wrlock(lock));
        OK(pthread_rwlock_unlock(lock));
    }
}

CASE(static_destroyed_while_held) { destroyed_while_held(&static_lock, 0); }
CASE(static_writers_destroyed_while_held) { destroyed_while_held(&static_writers, 0); }
CASE(readers_first_destroyed_while_held) { destroyed_while_held(new_lock(READERS, 0), 0); }
CASE(writers_strictly_destroyed_while_held) {
    destroyed_while_held(new_lock(WRITERS_STRICTLY, 0), 0);
}
CASE(shared_destroyed_while_held) { destroyed_while_held(new_lock(READERS, 1), 1); }

CASE(static_shares) { shares(&static_lock); }
CASE(static_writers_shares) { shares(&static_writers); }
CASE(readers_first_shares) { shares(new_lock(READERS, 0)); }
CASE(writers_first_shares) { shares(new_lock(WRITERS, 0)); }
CASE(writers_strictly_shares) { shares(new_lock(WRITERS_STRICTLY, 0)); }
CASE(shared_shares) { shares(new_lock(READERS, 1)); }
CASE(shared_writers_strictly_shares) { shares(new_lock(WRITERS_STRICTLY, 1)); }

CASE(init_without_attributes) {
    pthread_rwlock_t lock;
    memset(&lock, 0xa5, sizeof lock);
    OK(pthread_rwlock_init(&lock, NULL));
    shares(&lock);
    OK(pthread_rwlock_init(&lock, NULL));
    shares(&lock);
}

/* A thread that holds it for writing locks it again. */
static void knows_its_writer(pthread_rwlock_t *lock) {
    struct timespec later = after_ms(CLOCK_REALTIME, FAR_AWAY);
    OK(pthread_rwlock_wrlock(lock));
    EQ(pthread_rwlock_wrlock(lock), EDEADLK);
    EQ(pthread_rwlock_rdlock(lock), EDEADLK);
    EQ(pthread_rwlock_timedwrlock(lock, &later), EDEADLK);
    EQ(pthread_rwlock_timedrdlock(lock, &later), EDEADLK);
    EQ(pthread_rwlock_clockwrlock(lock, CLOCK_MONOTONIC, &later), EDEADLK);
    EQ(pthread_rwlock_clockrdlock(lock, CLOCK_MONOTONIC, &later), EDEADLK);
    EQ(pthread_rwlock_trywrlock(lock), EBUSY);
    EQ(pthread_rwlock_tryrdlock(lock), EBUSY);
    OK(pthread_rwlock_unlock(lock));
    /* It does not remember a past writer. */
    struct thread thread;
    start(&thread, write_it, lock);
    join(&thread);
    OK(pthread_rwlock_rdlock(lock));
    OK(pthread_rwlock_rdlock(lock));
    OK(pthread_rwlock_unlock(lock));
    OK(pthread_rwlock_unlock(lock));
    OK(pthread_rwlock_wrlock(lock));
    OK(pthread_rwlock_unlock(lock));
}

CASE(static_knows_its_writer) { knows_its_writer(&static_lock); }
CASE(writers_strictly_knows_its_writer) { knows_its_writer(new_lock(WRITERS_STRICTLY, 0)); }
CASE(shared_knows_its_writer) { knows_its_writer(new_lock(READERS, 1)); }

static void *write_then_ask_again(void *lock) {
    OK(pthread_rwlock_wrlock(lock));
    EQ(pthread_rwlock_rdlock(lock), EDEADLK);
    EQ(pthread_rwlock_wrlock(lock), EDEADLK);
    OK(pthread_rwlock_unlock(lock));
    return NULL;
}

/* It got the lock after a wait, perhaps by a hand-off. */
CASE(knows_a_writer_that_waited) {
    struct thread thread;
    OK(pthread_rwlock_rdlock(&static_lock));
    start(&thread, write_then_ask_again, &static_lock);
    until_asleep(&thread);
    OK(pthread_rwlock_unlock(&static_lock));
    join(&thread);
}

/* A reader that locks again while a writer waits. Only the strict kind may (and does) block it. */
static void readers_recur(pthread_rwlock_t *lock) {
    struct thread writer;
    OK(pthread_rwlock_rdlock(lock));
    start(&writer, write_it, lock);
    until_asleep(&writer);
    OK(pthread_rwlock_rdlock(lock));
    OK(pthread_rwlock_tryrdlock(lock));
    struct timespec later = after_ms(CLOCK_REALTIME, FAR_AWAY);
    OK(pthread_rwlock_timedrdlock(lock, &later));
    for (int each = 0; each < 3; each++) OK(pthread_rwlock_unlock(lock));
    CHECK(still_waits(&writer, 20));
    OK(pthread_rwlock_unlock(lock));
    join(&writer);
}

CASE(static_readers_recur) { readers_recur(&static_lock); }
CASE(readers_first_readers_recur) { readers_recur(new_lock(READERS, 0)); }
CASE(writers_first_readers_recur) { readers_recur(new_lock(WRITERS, 0)); }
CASE(shared_readers_recur) { readers_recur(new_lock(READERS, 1)); }

static void holds_readers_up(pthread_rwlock_t *lock) {
    struct thread writer;
    OK(pthread_rwlock_rdlock(lock));
    start(&writer, write_it, lock);
    until_asleep(&writer);
    EQ(elsewhere(try_read, lock), EBUSY);
    struct timespec soon = after_ms(CLOCK_REALTIME, 20);
    EQ(pthread_rwlock_timedrdlock(lock, &soon), ETIMEDOUT);
    OK(pthread_rwlock_unlock(lock));
    join(&writer);
    EQ(elsewhere(try_read, lock), 0);
}

CASE(writers_strictly_holds_readers_up) { holds_readers_up(new_lock(WRITERS_STRICTLY, 0)); }
CASE(static_writers_holds_readers_up) { holds_readers_up(&static_writers); }

static void *time_out_writing(void *lock) {
    struct timespec soon = after_ms(CLOCK_REALTIME, 60);
    EQ(pthread_rwlock_timedwrlock(lock, &soon), ETIMEDOUT);
    return NULL;
}

/* When a writer gives up, the readers that it blocked proceed. */
CASE(writer_that_gives_up_lets_readers_go) {
    pthread_rwlock_t *lock = new_lock(WRITERS_STRICTLY, 0);
    struct thread writer, reader;
    OK(pthread_rwlock_rdlock(lock));
    start(&writer, time_out_writing, lock);
    until_asleep(&writer);
    start(&reader, read_it, lock);
    join(&writer);
    join(&reader);
    OK(pthread_rwlock_unlock(lock));
    OK(pthread_rwlock_wrlock(lock));
    OK(pthread_rwlock_unlock(lock));
}

/* ---- Time ---- */

static void *wait_for_it(void *lock) {
    struct timespec soon;
    for (int turn = 0; turn < 2; turn++) {
        int (*timed)(pthread_rwlock_t *, const struct timespec *) =
            turn ? pthread_rwlock_timedwrlock : pthread_rwlock_timedrdlock;
        int (*clocked)(pthread_rwlock_t *, clockid_t, const struct timespec *) =
            turn ? pthread_rwlock_clockwrlock : pthread_rwlock_clockrdlock;
        EQ(timed(lock, &negative), ETIMEDOUT);
        EQ(timed(lock, &long_ago), ETIMEDOUT);
        EQ(timed(lock, &bad), EINVAL);
        EQ(timed(lock, &bad_too), EINVAL);
        EQ(clocked(lock, CLOCK_MONOTONIC, &negative), ETIMEDOUT);
        EQ(clocked(lock, CLOCK_MONOTONIC, &long_ago), ETIMEDOUT);
        EQ(clocked(lock, CLOCK_MONOTONIC, &bad), EINVAL);
        EQ(clocked(lock, CLOCK_PROCESS_CPUTIME_ID, &long_ago), EINVAL);
        EQ(clocked(lock, 77, &long_ago), EINVAL);
        soon = after_ms(CLOCK_REALTIME, 30);
        EQ(timed(lock, &soon), ETIMEDOUT);
        CHECK(is_past(CLOCK_REALTIME, soon));
        soon = after_ms(CLOCK_REALTIME, 30);
        EQ(clocked(lock, CLOCK_REALTIME, &soon), ETIMEDOUT);
        CHECK(is_past(CLOCK_REALTIME, soon));
        soon = after_ms(CLOCK_MONOTONIC, 30);
        EQ(clocked(lock, CLOCK_MONOTONIC, &soon), ETIMEDOUT);
        CHECK(is_past(CLOCK_MONOTONIC, soon));
    }
    return NULL;
}

static void keeps_time(pthread_rwlock_t *lock) {
    OK(pthread_rwlock_wrlock(lock));
    EQ(elsewhere(wait_for_it, lock), 0);
    OK(pthread_rwlock_unlock(lock));
    /* Free: a time in the past does not prevent locking. */
    OK(pthread_rwlock_timedwrlock(lock, &negative));
    OK(pthread_rwlock_unlock(lock));
    OK(pthread_rwlock_timedrdlock(lock, &long_ago));
    struct timespec soon = after_ms(CLOCK_REALTIME, 20);
    EQ(pthread_rwlock_timedwrlock(lock, &soon), ETIMEDOUT);
    CHECK(is_past(CLOCK_REALTIME, soon));
    OK(pthread_rwlock_unlock(lock));
    /* POSIX requires no check of a time that is not needed. */
    int result = pthread_rwlock_timedrdlock(lock, &bad);
    ANSWER("bad-time-not-needed-to-read", "%s", error_name(result));
    if (result == 0) OK(pthread_rwlock_unlock(lock));
    result = pthread_rwlock_timedwrlock(lock, &bad);
    ANSWER("bad-time-not-needed-to-write", "%s", error_name(result));
    if (result == 0) OK(pthread_rwlock_unlock(lock));
    EQ(pthread_rwlock_clockwrlock(lock, 77, &long_ago), EINVAL);
    EQ(pthread_rwlock_clockrdlock(lock, 77, &long_ago), EINVAL);
    EQ(elsewhere(try_write, lock), 0);
    OK(pthread_rwlock_destroy(lock));
}

CASE(static_keeps_time) { keeps_time(&static_lock); }
CASE(writers_strictly_keeps_time) { keeps_time(new_lock(WRITERS_STRICTLY, 0)); }
CASE(shared_keeps_time) { keeps_time(new_lock(READERS, 1)); }

static void *timed_read(void *lock) {
    struct timespec later = after_ms(CLOCK_MONOTONIC, FAR_AWAY);
    OK(pthread_rwlock_clockrdlock(lock, CLOCK_MONOTONIC, &later));
    OK(pthread_rwlock_unlock(lock));
    return NULL;
}

static void *timed_write(void *lock) {
    struct timespec later = after_ms(CLOCK_REALTIME, FAR_AWAY);
    OK(pthread_rwlock_timedwrlock(lock, &later));
    OK(pthread_rwlock_unlock(lock));
    return NULL;
}

CASE(timed_calls_succeed_and_withstand_signals) {
    struct thread threads[4];
    void *(*runs[])(void *) = {timed_read, timed_write, read_it, write_it};
    struct sigaction action = {.sa_handler = no_op};
    OK(sigaction(SIGUSR1, &action, NULL));
    OK(pthread_rwlock_wrlock(&static_lock));
    for (int each = 0; each < 4; each++) start(&threads[each], runs[each], &static_lock);
    for (int each = 0; each < 4; each++) until_asleep(&threads[each]);
    for (int turn = 0; turn < 10; turn++) {
        for (int each = 0; each < 4; each++) OK(pthread_kill(threads[each].handle, SIGUSR1));
        pause_ms(1);
    }
    CHECK(still_waits(&threads[0], 10));
    OK(pthread_rwlock_unlock(&static_lock));
    for (int each = 0; each < 4; each++) join(&threads[each]);
}

/* ---- Order ---- */

static int order[8], ordered;
static void *wait_in_order(void *number) {
    long mine = (long)number;
    be_real_time((int)(mine / 10));
    if (mine % 10) {
        OK(pthread_rwlock_wrlock(&static_writers));
    } else {
        OK(pthread_rwlock_rdlock(&static_writers));
    }
    order[ADD(ordered, 1) - 1] = (int)mine;
    OK(pthread_rwlock_unlock(&static_writers));
    return NULL;
}

/* POSIX (Thread Execution Scheduling): by priority; a writer before readers of its own priority.
 * One CPU, so that the order can be observed. */
CASE(by_priority) {
    if (!may_be_real_time()) SKIP("real-time threads are not permitted");
    struct thread threads[4];
    static const long numbers[] = {20, 31, 51, 41};
    only_on_cpu(0);
    be_real_time(90);
    OK(pthread_rwlock_wrlock(&static_writers));
    for (int each = 0; each < 4; each++) {
        start(&threads[each], wait_in_order, (void *)numbers[each]);
        until_asleep(&threads[each]);
    }
    OK(pthread_rwlock_unlock(&static_writers));
    for (int each = 0; each < 4; each++) join(&threads[each]);
    ANSWER("order", "%d,%d,%d,%d", order[0], order[1], order[2], order[3]);
}

/* ---- Many threads ---- */

static struct {
    pthread_rwlock_t *lock;
    long readers, writers, written, turns;
} stress;

static void *lock_repeatedly(void *number) {
    for (long turn = 0; turn < stress.turns; turn++) {
        struct timespec later = after_ms(CLOCK_REALTIME, FAR_AWAY);
        if ((turn + (long)number) % 4 == 0) {
            OK(turn % 2 ? pthread_rwlock_wrlock(stress.lock)
                        : pthread_rwlock_timedwrlock(stress.lock, &later));
            EQ(ADD(stress.writers, 1), 1);
            EQ(GET(stress.readers), 0);
            long before = *(volatile long *)&stress.written;
            if (turn % 128 == 0) sched_yield();
            *(volatile long *)&stress.written = before + 1;
            ADD(stress.writers, -1);
        } else {
            if (turn % 8 || pthread_rwlock_tryrdlock(stress.lock) != 0)
                OK(turn % 2 ? pthread_rwlock_rdlock(stress.lock)
                            : pthread_rwlock_timedrdlock(stress.lock, &later));
            ADD(stress.readers, 1);
            if (turn % 128 == 0) sched_yield();
            EQ(GET(stress.writers), 0);
            ADD(stress.readers, -1);
        }
        OK(pthread_rwlock_unlock(stress.lock));
    }
    return NULL;
}

static void excludes(pthread_rwlock_t *lock) {
    struct thread threads[6];
    stress.lock = lock;
    stress.turns = 6000;
    for (long each = 0; each < 6; each++) start(&threads[each], lock_repeatedly, (void *)each);
    for (int each = 0; each < 6; each++) join(&threads[each]);
    EQ(stress.written, 6 * 6000 / 4);
    OK(pthread_rwlock_destroy(lock));
}

LONG_CASE(static_excludes, 60) { excludes(&static_lock); }
LONG_CASE(writers_first_excludes, 60) { excludes(new_lock(WRITERS, 0)); }
LONG_CASE(writers_strictly_excludes, 60) { excludes(new_lock(WRITERS_STRICTLY, 0)); }
LONG_CASE(shared_excludes, 60) { excludes(new_lock(READERS, 1)); }

static void *impatient(void *lock) {
    for (int turn = 0; turn < 3000; turn++) {
        struct timespec soon;
        clock_gettime(CLOCK_MONOTONIC, &soon);
        soon.tv_nsec += turn % 40 * 1000;
        if (soon.tv_nsec >= 1000000000) continue;
        int result = turn % 3 ? pthread_rwlock_clockrdlock(lock, CLOCK_MONOTONIC, &soon)
                              : pthread_rwlock_clockwrlock(lock, CLOCK_MONOTONIC, &soon);
        CHECK(result == 0 || result == ETIMEDOUT);
        if (result == 0) OK(pthread_rwlock_unlock(lock));
    }
    return NULL;
}

static void *patient(void *lock) {
    for (int turn = 0; turn < 3000; turn++) {
        OK(turn % 3 ? pthread_rwlock_rdlock(lock) : pthread_rwlock_wrlock(lock));
        if (turn % 64 == 0) sched_yield();
        OK(pthread_rwlock_unlock(lock));
    }
    return NULL;
}

static void withstands_timeouts(pthread_rwlock_t *lock) {
    struct thread threads[6];
    for (int each = 0; each < 6; each++)
        start(&threads[each], each % 2 ? impatient : patient, lock);
    for (int each = 0; each < 6; each++) join(&threads[each]);
    EQ(elsewhere(try_write, lock), 0);
}

CASE(static_withstands_timeouts) { withstands_timeouts(&static_lock); }
CASE(writers_strictly_withstands_timeouts) { withstands_timeouts(new_lock(WRITERS_STRICTLY, 0)); }

/* The writer that got the lock last frees it while readers are still in their unlocks. */
static void *write_and_free(void *lock) {
    OK(pthread_rwlock_wrlock(lock));
    OK(pthread_rwlock_unlock(lock));
    OK(pthread_rwlock_destroy(lock));
    OK(munmap(lock, 4096));
    return NULL;
}

CASE(freed_by_the_last_user) {
    for (int turn = 0; turn < 200; turn++) {
        struct thread thread;
        pthread_rwlock_t *lock = new_lock(turn % 2 ? READERS : WRITERS_STRICTLY, 0);
        OK(turn % 3 ? pthread_rwlock_rdlock(lock) : pthread_rwlock_wrlock(lock));
        start(&thread, write_and_free, lock);
        if (turn % 2) UNTIL(GET(thread.id) != 0);
        OK(pthread_rwlock_unlock(lock));
        join(&thread);
    }
}

/* Locked for reading by one thread, released by none: it stays locked after the thread's end. */
static void *read_and_end(void *lock) {
    OK(pthread_rwlock_rdlock(lock));
    return NULL;
}

CASE(stays_read_after_its_thread) {
    EQ(elsewhere(read_and_end, &static_lock), 0);
    EQ(pthread_rwlock_trywrlock(&static_lock), EBUSY);
    OK(pthread_rwlock_tryrdlock(&static_lock));
    OK(pthread_rwlock_unlock(&static_lock));
    /* A read lock may be released by another thread (undefined in POSIX; works in glibc). */
    OK(pthread_rwlock_unlock(&static_lock));
    OK(pthread_rwlock_trywrlock(&static_lock));
}

CASE(many_readers_at_once) {
    for (int each = 0; each < 100000; each++) OK(pthread_rwlock_rdlock(&static_lock));
    EQ(pthread_rwlock_trywrlock(&static_lock), EBUSY);
    for (int each = 0; each < 100000; each++) OK(pthread_rwlock_unlock(&static_lock));
    OK(pthread_rwlock_trywrlock(&static_lock));
}
