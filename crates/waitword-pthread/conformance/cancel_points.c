/* Cancellation: semaphores, whose waits are cancellation points, and functions that are none.
 * Sources: POSIX "Thread Cancellation", sem_wait(3p), pthreads(7). */
#include "objects.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static sem_t sem;
static int stage, cleaned;

/* Cancels a thread at its stage 1, before it goes on at stage 2. */
static void runs_with_a_request(void *(*run)(void *)) {
    struct thread thread;
    start(&thread, run, NULL);
    UNTIL(GET(stage) == 1);
    OK(pthread_cancel(thread.handle));
    SET(stage, 2);
    CHECK(join(&thread) == PTHREAD_CANCELED);
}

/* ---- Semaphores ---- */

static void *wait_for_sem(void *how) {
    SET(stage, 1);
    OK(sem_wait_by((int)(long)how, &sem));
    return NULL;
}

static void cancels_sem(int shared, long how) {
    struct thread thread;
    int value;
    OK(sem_init(&sem, shared, 0));
    start(&thread, wait_for_sem, (void *)how);
    UNTIL(GET(stage) == 1);
    until_asleep(&thread);
    OK(pthread_cancel(thread.handle));
    CHECK(join(&thread) == PTHREAD_CANCELED);
    OK(sem_getvalue(&sem, &value));
    EQ(value, 0);
    OK(sem_post(&sem));
    OK(sem_getvalue(&sem, &value));
    EQ(value, 1);
    OK(sem_wait(&sem));
    OK(sem_destroy(&sem));
}

CASE(sem_wait_is_cancelled) { cancels_sem(0, 0); }
CASE(sem_timedwait_is_cancelled) { cancels_sem(0, 1); }
CASE(sem_clockwait_is_cancelled) { cancels_sem(0, 2); }
CASE(shared_sem_wait_is_cancelled) { cancels_sem(1, 0); }

/* POSIX: a request that is pending when sem_wait is called is acted on, even if the call need
 * not wait. */
static void *sem_with_one_pending(void *unused) {
    (void)unused;
    SET(stage, 1);
    while (GET(stage) != 2) {
    }
    OK(sem_wait(&sem));
    return NULL;
}

CASE(sem_wait_acts_without_waiting) {
    int value;
    OK(sem_init(&sem, 0, 1));
    runs_with_a_request(sem_with_one_pending);
    OK(sem_getvalue(&sem, &value));
    EQ(value, 1);
}

/* sem_trywait and sem_post are not cancellation points. */
static void *sem_without_waiting(void *unused) {
    (void)unused;
    SET(stage, 1);
    while (GET(stage) != 2) {
    }
    OK(sem_post(&sem));
    OK(sem_trywait(&sem));
    SET(stage, 3);
    pthread_testcancel();
    return NULL;
}

CASE(sem_post_and_trywait_are_no_cancellation_points) {
    OK(sem_init(&sem, 0, 0));
    runs_with_a_request(sem_without_waiting);
    EQ(stage, 3);
}

/* A post and a request at once: either the thread or the semaphore has the unit. */
CASE(post_against_cancel_loses_nothing) {
    for (int turn = 0; turn < 1500; turn++) {
        struct thread thread;
        int value;
        OK(sem_init(&sem, 0, 0));
        start(&thread, wait_for_sem, (void *)(long)(turn % 3));
        if (turn % 2) UNTIL(GET(thread.id) != 0);
        if (turn % 3 == 0) {
            OK(pthread_cancel(thread.handle));
            OK(sem_post(&sem));
        } else {
            OK(sem_post(&sem));
            OK(pthread_cancel(thread.handle));
        }
        void *end = join(&thread);
        OK(sem_getvalue(&sem, &value));
        EQ(value, end == PTHREAD_CANCELED ? 1 : 0);
        OK(sem_destroy(&sem));
    }
}

/* ---- Functions that are not cancellation points ---- */

static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static pthread_spinlock_t spin;

static void *wait_for_mutex(void *how) {
    struct timespec later = after_ms(CLOCK_REALTIME, FAR_AWAY);
    switch ((long)how) {
    case 0: OK(pthread_mutex_lock(&mutex)); break;
    case 1: OK(pthread_mutex_timedlock(&mutex, &later)); break;
    default: OK(pthread_mutex_clocklock(&mutex, CLOCK_REALTIME, &later));
    }
    OK(pthread_mutex_unlock(&mutex));
    ADD(cleaned, 1);
    pthread_testcancel();
    return NULL;
}

static void *wait_for_rwlock(void *how) {
    struct timespec later = after_ms(CLOCK_REALTIME, FAR_AWAY);
    switch ((long)how) {
    case 0: OK(pthread_rwlock_rdlock(&rwlock)); break;
    case 1: OK(pthread_rwlock_wrlock(&rwlock)); break;
    case 2: OK(pthread_rwlock_timedrdlock(&rwlock, &later)); break;
    default: OK(pthread_rwlock_timedwrlock(&rwlock, &later));
    }
    OK(pthread_rwlock_unlock(&rwlock));
    ADD(cleaned, 1);
    pthread_testcancel();
    return NULL;
}

static void *wait_for_barrier(void *unused) {
    (void)unused;
    pthread_barrier_wait(&barrier);
    ADD(cleaned, 1);
    pthread_testcancel();
    return NULL;
}

static void *wait_for_spin(void *unused) {
    (void)unused;
    OK(pthread_spin_lock(&spin));
    OK(pthread_spin_unlock(&spin));
    ADD(cleaned, 1);
    pthread_testcancel();
    return NULL;
}

static void is_no_cancellation_point(void *(*run)(void *), int variants, void (*release)(void)) {
    struct thread threads[4];
    for (int each = 0; each < variants; each++) {
        start(&threads[each], run, (void *)(long)each);
        UNTIL(GET(threads[each].id) != 0);
        if (run != wait_for_spin) until_asleep(&threads[each]);
        pause_ms(5);
        OK(pthread_cancel(threads[each].handle));
    }
    CHECK(still_waits(&threads[0], 30));
    EQ(GET(cleaned), 0);
    release();
    for (int each = 0; each < variants; each++) CHECK(join(&threads[each]) == PTHREAD_CANCELED);
    EQ(cleaned, variants);
}

static void release_mutex(void) { OK(pthread_mutex_unlock(&mutex)); }
static void release_rwlock(void) { OK(pthread_rwlock_unlock(&rwlock)); }
static void release_barrier(void) { pthread_barrier_wait(&barrier); }
static void release_spin(void) { OK(pthread_spin_unlock(&spin)); }

CASE(mutex_lock_is_no_cancellation_point) {
    OK(pthread_mutex_lock(&mutex));
    is_no_cancellation_point(wait_for_mutex, 3, release_mutex);
}

CASE(rwlock_is_no_cancellation_point) {
    OK(pthread_rwlock_wrlock(&rwlock));
    is_no_cancellation_point(wait_for_rwlock, 4, release_rwlock);
}

CASE(barrier_is_no_cancellation_point) {
    OK(pthread_barrier_init(&barrier, NULL, 2));
    is_no_cancellation_point(wait_for_barrier, 1, release_barrier);
}

CASE(spin_is_no_cancellation_point) {
    OK(pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE));
    OK(pthread_spin_lock(&spin));
    is_no_cancellation_point(wait_for_spin, 1, release_spin);
}

/* Signal and broadcast are not cancellation points either, nor are init and destroy. */
static void *signal_with_one_pending(void *unused) {
    pthread_cond_t own;
    (void)unused;
    SET(stage, 1);
    while (GET(stage) != 2) {
    }
    OK(pthread_mutex_lock(&mutex));
    OK(pthread_cond_init(&own, NULL));
    OK(pthread_cond_signal(&condition));
    OK(pthread_cond_broadcast(&condition));
    OK(pthread_cond_destroy(&own));
    OK(pthread_mutex_unlock(&mutex));
    SET(stage, 3);
    pthread_testcancel();
    return NULL;
}

CASE(signal_is_no_cancellation_point) {
    runs_with_a_request(signal_with_one_pending);
    EQ(stage, 3);
}
