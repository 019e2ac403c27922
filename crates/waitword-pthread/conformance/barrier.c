/* pthread_barrier_*, pthread_spin_*. Sources: POSIX, pthread_barrier_wait(3p),
 * pthread_barrier_init(3p), pthread_spin_lock(3p). */
#include "objects.h"

static pthread_barrier_t barrier;
static int serials, arrived, left;
enum { THREADS = 5, ROUNDS = 300 };

static void *go_round(void *unused) {
    (void)unused;
    for (int round = 0; round < ROUNDS; round++) {
        ADD(arrived, 1);
        int result = pthread_barrier_wait(&barrier);
        CHECK(result == 0 || result == PTHREAD_BARRIER_SERIAL_THREAD);
        if (result != 0) ADD(serials, 1);
        /* No thread passes before all have arrived. */
        CHECK(GET(arrived) >= (round + 1) * THREADS);
        if (round % 16 == 0) sched_yield();
    }
    return NULL;
}

static void meets(pthread_barrier_t *unused, int shared) {
    struct thread threads[THREADS];
    pthread_barrierattr_t attributes;
    (void)unused;
    OK(pthread_barrierattr_init(&attributes));
    OK(pthread_barrierattr_setpshared(&attributes,
                                      shared ? PTHREAD_PROCESS_SHARED : PTHREAD_PROCESS_PRIVATE));
    memset(&barrier, 0xa5, sizeof barrier);
    OK(pthread_barrier_init(&barrier, &attributes, THREADS));
    for (int each = 0; each < THREADS; each++) start(&threads[each], go_round, NULL);
    for (int each = 0; each < THREADS; each++) join(&threads[each]);
    EQ(serials, ROUNDS);
    OK(pthread_barrier_destroy(&barrier));
}

CASE(private_meets) { meets(&barrier, 0); }
CASE(shared_meets) { meets(&barrier, 1); }

CASE(init_answers) {
    EQ(pthread_barrier_init(&barrier, NULL, 0), EINVAL);
    ANSWER("maximum", "%s", error_name(pthread_barrier_init(&barrier, NULL, UINT_MAX)));
    ANSWER("half", "%s", error_name(pthread_barrier_init(&barrier, NULL, 1u << 31)));
    OK(pthread_barrier_init(&barrier, NULL, INT_MAX / 2));
    OK(pthread_barrier_destroy(&barrier));
    OK(pthread_barrier_init(&barrier, NULL, 1));
    for (int turn = 0; turn < 3; turn++)
        EQ(pthread_barrier_wait(&barrier), PTHREAD_BARRIER_SERIAL_THREAD);
    OK(pthread_barrier_destroy(&barrier));
    OK(pthread_barrier_init(&barrier, NULL, 2));
    OK(pthread_barrier_destroy(&barrier));
}

static void *wait_once(void *unused) {
    (void)unused;
    int result = pthread_barrier_wait(&barrier);
    if (result != 0) ADD(serials, 1);
    ADD(left, 1);
    return NULL;
}

CASE(no_thread_passes_alone) {
    struct thread threads[3];
    OK(pthread_barrier_init(&barrier, NULL, 4));
    for (int each = 0; each < 3; each++) {
        start(&threads[each], wait_once, NULL);
        until_asleep(&threads[each]);
        EQ(GET(left), 0);
    }
    CHECK(still_waits(&threads[0], 20));
    wait_once(NULL);
    for (int each = 0; each < 3; each++) join(&threads[each]);
    EQ(serials, 1);
    EQ(left, 4);
}

CASE(withstands_signals) {
    struct thread thread;
    struct sigaction action = {.sa_handler = no_op};
    OK(sigaction(SIGUSR1, &action, NULL));
    OK(pthread_barrier_init(&barrier, NULL, 2));
    start(&thread, wait_once, NULL);
    until_asleep(&thread);
    for (int turn = 0; turn < 20; turn++) {
        OK(pthread_kill(thread.handle, SIGUSR1));
        pause_ms(1);
    }
    EQ(GET(left), 0);
    wait_once(NULL);
    join(&thread);
    EQ(serials, 1);
}

/* POSIX: a thread that has returned may destroy and free the barrier; other threads may still be
 * on their way out. */
static pthread_barrier_t *freed;
static void *meet_in_freed(void *unused) {
    (void)unused;
    if (pthread_barrier_wait(freed) == PTHREAD_BARRIER_SERIAL_THREAD) {
        OK(pthread_barrier_destroy(freed));
        memset(freed, 0x5a, sizeof *freed);
        OK(munmap(freed, 4096));
    }
    return NULL;
}

CASE(destroyed_by_the_first_to_leave) {
    for (int turn = 0; turn < 300; turn++) {
        struct thread threads[3];
        freed = (pthread_barrier_t *)new_page();
        OK(pthread_barrier_init(freed, NULL, 3));
        for (int each = 0; each < 3; each++) start(&threads[each], meet_in_freed, NULL);
        for (int each = 0; each < 3; each++) join(&threads[each]);
    }
}

/* ---- Spin locks ---- */

static pthread_spinlock_t spin;
static long spun;

static void *spin_on(void *unused) {
    (void)unused;
    for (int turn = 0; turn < 20000; turn++) {
        if (turn % 3 || pthread_spin_trylock(&spin) != 0) OK(pthread_spin_lock(&spin));
        long before = *(volatile long *)&spun;
        *(volatile long *)&spun = before + 1;
        OK(pthread_spin_unlock(&spin));
    }
    return NULL;
}

static void *try_spin(void *unused) {
    (void)unused;
    return (void *)(long)pthread_spin_trylock(&spin);
}

static void spins(int shared) {
    struct thread threads[3], thread;
    spin = (pthread_spinlock_t)0x5a5a5a5a;
    OK(pthread_spin_init(&spin, shared ? PTHREAD_PROCESS_SHARED : PTHREAD_PROCESS_PRIVATE));
    OK(pthread_spin_lock(&spin));
    EQ(pthread_spin_trylock(&spin), EBUSY);
    start(&thread, try_spin, NULL);
    EQ(join(&thread), EBUSY);
    OK(pthread_spin_unlock(&spin));
    for (int each = 0; each < 3; each++) start(&threads[each], spin_on, NULL);
    for (int each = 0; each < 3; each++) join(&threads[each]);
    EQ(spun, 60000);
    OK(pthread_spin_destroy(&spin));
}

LONG_CASE(spin_private, 60) { spins(PTHREAD_PROCESS_PRIVATE); }
LONG_CASE(spin_shared, 60) { spins(1); }

static void *hold_spin(void *unused) {
    (void)unused;
    OK(pthread_spin_lock(&spin));
    SET(left, 1);
    pause_ms(30);
    OK(pthread_spin_unlock(&spin));
    return NULL;
}

CASE(spin_waits) {
    struct thread thread;
    OK(pthread_spin_init(&spin, 0));
    start(&thread, hold_spin, NULL);
    UNTIL(GET(left));
    OK(pthread_spin_lock(&spin));
    OK(pthread_spin_unlock(&spin));
    join(&thread);
}
