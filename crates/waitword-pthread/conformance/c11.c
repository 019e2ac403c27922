/* C11: mtx_*, cnd_*, call_once. Sources: ISO C11 7.26, mtx_lock(3), cnd_wait(3), call_once(3). */
#include "conformance.h"
#include <threads.h>

static mtx_t mutex;
static cnd_t condition;
static once_flag flag = ONCE_FLAG_INIT;
static int runs, level, waits, passed;
static long count;

static int try_it(void *which) { return mtx_trylock((mtx_t *)which); }
static int unlock_after_lock(void *which) {
    EQ(mtx_lock((mtx_t *)which), thrd_success);
    EQ(mtx_unlock((mtx_t *)which), thrd_success);
    return 0;
}

static int elsewhere(int (*run)(void *), void *argument) {
    thrd_t thread;
    int result;
    EQ(thrd_create(&thread, run, argument), thrd_success);
    EQ(thrd_join(thread, &result), thrd_success);
    return result;
}

CASE(kinds) {
    mtx_t plain, timed, recursive, both;
    EQ(mtx_init(&plain, mtx_plain), thrd_success);
    EQ(mtx_init(&timed, mtx_timed), thrd_success);
    EQ(mtx_init(&recursive, mtx_plain | mtx_recursive), thrd_success);
    EQ(mtx_init(&both, mtx_timed | mtx_recursive), thrd_success);
    ANSWER("unknown-type", "%d", mtx_init(&mutex, 77));
    EQ(mtx_lock(&plain), thrd_success);
    EQ(mtx_trylock(&plain), thrd_busy);
    EQ(elsewhere(try_it, &plain), thrd_busy);
    EQ(mtx_unlock(&plain), thrd_success);
    EQ(elsewhere(unlock_after_lock, &plain), 0);
    for (int depth = 0; depth < 5; depth++)
        EQ(depth % 2 ? mtx_lock(&recursive) : mtx_trylock(&recursive), thrd_success);
    EQ(elsewhere(try_it, &recursive), thrd_busy);
    for (int depth = 0; depth < 5; depth++) EQ(mtx_unlock(&recursive), thrd_success);
    EQ(elsewhere(unlock_after_lock, &recursive), 0);
    ANSWER("unlock-not-held", "%d", mtx_unlock(&recursive));
    struct timespec soon = after_ms(CLOCK_REALTIME, 30);
    EQ(mtx_timedlock(&timed, &soon), thrd_success);
    EQ(mtx_timedlock(&timed, &soon), thrd_timedout);
    CHECK(is_past(CLOCK_REALTIME, soon));
    EQ(mtx_unlock(&timed), thrd_success);
    EQ(mtx_timedlock(&both, &soon), thrd_success);
    EQ(mtx_timedlock(&both, &soon), thrd_success);
    EQ(elsewhere(try_it, &both), thrd_busy);
    mtx_destroy(&plain);
    mtx_destroy(&timed);
    mtx_destroy(&recursive);
}

static int add(void *unused) {
    (void)unused;
    for (int turn = 0; turn < 20000; turn++) {
        EQ(mtx_lock(&mutex), thrd_success);
        *(volatile long *)&count += 1;
        EQ(mtx_unlock(&mutex), thrd_success);
    }
    return 0;
}

CASE(excludes) {
    thrd_t threads[4];
    EQ(mtx_init(&mutex, mtx_plain), thrd_success);
    for (int each = 0; each < 4; each++) EQ(thrd_create(&threads[each], add, NULL), thrd_success);
    for (int each = 0; each < 4; each++) EQ(thrd_join(threads[each], NULL), thrd_success);
    EQ(count, 80000);
    mtx_destroy(&mutex);
}

static int take(void *timed) {
    EQ(mtx_lock(&mutex), thrd_success);
    waits++;
    while (level == 0) {
        struct timespec later = after_ms(CLOCK_REALTIME, FAR_AWAY);
        EQ(timed ? cnd_timedwait(&condition, &mutex, &later) : cnd_wait(&condition, &mutex),
           thrd_success);
    }
    level--;
    passed++;
    EQ(mtx_unlock(&mutex), thrd_success);
    return 0;
}

static int get(int *field) {
    EQ(mtx_lock(&mutex), thrd_success);
    int value = *field;
    EQ(mtx_unlock(&mutex), thrd_success);
    return value;
}

CASE(waits_and_wakes) {
    thrd_t threads[5];
    EQ(mtx_init(&mutex, mtx_plain), thrd_success);
    EQ(cnd_init(&condition), thrd_success);
    for (long each = 0; each < 5; each++)
        EQ(thrd_create(&threads[each], take, each % 2 ? &mutex : NULL), thrd_success);
    UNTIL(get(&waits) == 5);
    for (int turn = 1; turn <= 2; turn++) {
        EQ(mtx_lock(&mutex), thrd_success);
        level++;
        EQ(mtx_unlock(&mutex), thrd_success);
        EQ(cnd_signal(&condition), thrd_success);
        UNTIL(get(&passed) == turn);
    }
    EQ(mtx_lock(&mutex), thrd_success);
    level = 3;
    EQ(mtx_unlock(&mutex), thrd_success);
    EQ(cnd_broadcast(&condition), thrd_success);
    for (int each = 0; each < 5; each++) EQ(thrd_join(threads[each], NULL), thrd_success);
    struct timespec soon = after_ms(CLOCK_REALTIME, 20);
    EQ(mtx_lock(&mutex), thrd_success);
    EQ(cnd_timedwait(&condition, &mutex, &soon), thrd_timedout);
    CHECK(is_past(CLOCK_REALTIME, soon));
    EQ(mtx_trylock(&mutex), thrd_busy);
    struct timespec bad = {0, 1000000000};
    EQ(cnd_timedwait(&condition, &mutex, &bad), thrd_error);
    EQ(mtx_unlock(&mutex), thrd_success);
    cnd_destroy(&condition);
    mtx_destroy(&mutex);
}

static void run(void) {
    ADD(runs, 1);
    pause_ms(20);
}

static int call(void *unused) {
    (void)unused;
    call_once(&flag, run);
    EQ(GET(runs), 1);
    return 0;
}

CASE(calls_once) {
    thrd_t threads[4];
    for (int each = 0; each < 4; each++) EQ(thrd_create(&threads[each], call, NULL), thrd_success);
    for (int each = 0; each < 4; each++) EQ(thrd_join(threads[each], NULL), thrd_success);
    call(NULL);
    EQ(runs, 1);
}

/* In glibc the underlying types are the same, and programs that mix them work there. */
CASE(mixes_with_pthreads) {
    EQ(mtx_init(&mutex, mtx_plain), thrd_success);
    OK(pthread_mutex_lock((pthread_mutex_t *)&mutex));
    EQ(mtx_trylock(&mutex), thrd_busy);
    EQ(mtx_unlock(&mutex), thrd_success);
    pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
    EQ(mtx_lock((mtx_t *)&own), thrd_success);
    EQ(pthread_mutex_trylock(&own), EBUSY);
    OK(pthread_mutex_unlock(&own));
}
