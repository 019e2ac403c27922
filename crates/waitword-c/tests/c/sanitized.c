/* Uses every lock of the C ABI on plain data in heap memory that is freed as early as the header
 * allows. scripts/sanitizers runs this under gcc's sanitizers and under Valgrind's tools.
 *
 * Helgrind and DRD do not recognise atomic operations, and gcc's ThreadSanitizer cannot see into a
 * library that was built without it. So this program tells them what the header promises: whatever
 * came before an unlock, a post or a set is visible after the lock or wait that follows it. They
 * then check the rest: that the data is accessed only under this promise, and that the library
 * leaves other memory alone. (Whether the locks keep the promise is checked by the runs without
 * WITNESS_*, with a library that was built with the sanitizer.)
 *
 * With an argument, the program contains one defect of its own, which the tools must report: race,
 * leak, use-after-free, lock-after-free, uninitialised, overflow.
 */
#define _GNU_SOURCE
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <waitword.h>

#if defined WITNESS_HELGRIND
#include <valgrind/helgrind.h>
#define BEFORE(object) ANNOTATE_HAPPENS_BEFORE(object)
#define AFTER(object) ANNOTATE_HAPPENS_AFTER(object)
#define ATOMIC(word) VALGRIND_HG_DISABLE_CHECKING(&(word), sizeof(word))
#elif defined WITNESS_DRD
#include <valgrind/drd.h>
#define BEFORE(object) ANNOTATE_HAPPENS_BEFORE(object)
#define AFTER(object) ANNOTATE_HAPPENS_AFTER(object)
#define ATOMIC(word) ANNOTATE_BENIGN_RACE_SIZED(&(word), sizeof(word), "an atomic")
#elif defined WITNESS_TSAN
#include <sanitizer/tsan_interface.h>
#define BEFORE(object) __tsan_release(object)
#define AFTER(object) __tsan_acquire(object)
#define ATOMIC(word) ((void)(word))
#else
#define BEFORE(object) ((void)(object))
#define AFTER(object) ((void)(object))
#define ATOMIC(word) ((void)(word))
#endif

#ifndef ROUNDS
#define ROUNDS 40 /* a multiple of 4 */
#endif
enum { THREADS = 3 };

static void check(int line, const char *what, bool holds)
{
    if (holds)
        return;
    printf("line %d: %s does not hold\n", line, what);
    exit(2);
}
#define CHECK(condition) check(__LINE__, #condition, condition)

static void *make(size_t size)
{
    void *memory = calloc(1, size);
    CHECK(memory != NULL);
    return memory;
}

/* Runs a function in all threads, and waits for them. */
static void in_threads(void *(*body)(void *), void *argument)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, body, argument) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

static struct timespec in_a_minute(int clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    time.tv_sec += 60;
    return time;
}

/* Mutexes of every kind; condition variables. */

struct counted {
    ww_mutex_t mutex;
    ww_cond_t cond;
    long count;
    long turn;
};

static void lock(struct counted *counted, int how)
{
    struct timespec time = in_a_minute(CLOCK_MONOTONIC);
    if (how % 3 == 0)
        CHECK(ww_mutex_lock(&counted->mutex) == 0);
    else if (how % 3 == 1)
        CHECK(ww_mutex_clocklock(&counted->mutex, CLOCK_MONOTONIC, &time) == 0);
    else if (ww_mutex_trylock(&counted->mutex) != 0)
        CHECK(ww_mutex_lock(&counted->mutex) == 0);
    AFTER(&counted->mutex);
}

static void unlock(struct counted *counted)
{
    BEFORE(&counted->mutex);
    CHECK(ww_mutex_unlock(&counted->mutex) == 0);
}

static void *counts(void *argument)
{
    struct counted *counted = argument;
    for (int i = 0; i < ROUNDS; i++) {
        lock(counted, i);
        counted->count++;
        unlock(counted);
    }
    return NULL;
}

/* Each thread waits until it is its turn in the count, increments the count, and waits again. */
static void *takes_turns(void *argument)
{
    struct counted *counted = argument;
    lock(counted, 0);
    long mine = counted->turn++;
    for (int i = 0; i < ROUNDS / 4; i++) {
        while (counted->count % THREADS != mine) {
            struct timespec time = in_a_minute(CLOCK_REALTIME);
            BEFORE(&counted->mutex);
            if (i % 2)
                CHECK(ww_cond_wait(&counted->cond, &counted->mutex) == 0);
            else
                CHECK(ww_cond_timedwait(&counted->cond, &counted->mutex, &time) == 0);
            AFTER(&counted->mutex);
        }
        counted->count++;
        CHECK(ww_cond_broadcast(&counted->cond) == 0);
    }
    unlock(counted);
    return NULL;
}

static void mutexes_and_condition_variables(void)
{
    const unsigned kinds[] = {WW_MUTEX_NORMAL, WW_MUTEX_RECURSIVE, WW_MUTEX_ERRORCHECK};
    const unsigned flavours[] = {WW_MUTEX_ADAPTIVE, WW_MUTEX_THROUGHPUT, WW_MUTEX_WAIT_WAKE,
                                 WW_MUTEX_PRIO_INHERIT};
    for (int i = 0; i < 24; i++) {
        unsigned scope = i / 12 ? WW_PROCESS_SHARED : 0;
        struct counted *counted = make(sizeof *counted);
        CHECK(ww_mutex_init(&counted->mutex, kinds[i % 3] | flavours[i / 3 % 4] | scope) == 0);
        CHECK(ww_cond_init(&counted->cond, scope) == 0);
        in_threads(counts, counted);
        CHECK(counted->count == THREADS * ROUNDS);
        counted->count = 0;
        in_threads(takes_turns, counted);
        CHECK(counted->count == THREADS * (ROUNDS / 4));
        CHECK(ww_cond_destroy(&counted->cond) == 0);
        CHECK(ww_mutex_destroy(&counted->mutex) == 0);
        free(counted);
    }
}

/* Robust mutexes: a thread ends without unlocking. */

struct robust {
    ww_robust_mutex_t mutex;
    long count;
};

static void *dies_now_and_then(void *argument)
{
    struct robust *robust = argument;
    for (int i = 0; i < ROUNDS; i++) {
        int answer = ww_robust_mutex_lock(&robust->mutex);
        AFTER(&robust->mutex);
        if (answer != 0)
            CHECK(ww_robust_mutex_consistent(&robust->mutex) == 0);
        robust->count++;
        BEFORE(&robust->mutex);
        if (i == ROUNDS - 1)
            return NULL;
        CHECK(ww_robust_mutex_unlock(&robust->mutex) == 0);
    }
    return NULL;
}

static void robust_mutexes(void)
{
    struct robust *robust = make(sizeof *robust);
    in_threads(dies_now_and_then, robust);
    CHECK(robust->count == THREADS * ROUNDS);
    free(robust);
}

/* Reader/writer locks, upgrades too. */

struct pair {
    ww_rwlock_t lock;
    long one, other;
};

static void *reads_and_writes(void *argument)
{
    struct pair *pair = argument;
    for (int i = 0; i < ROUNDS; i++) {
        if (i % 4 == 0) {
            CHECK(ww_rwlock_wrlock(&pair->lock) == 0);
            AFTER(&pair->lock);
            pair->one++;
            pair->other++;
        } else if (i % 4 == 1) {
            CHECK(ww_rwlock_upgradable_lock(&pair->lock) == 0);
            AFTER(&pair->lock);
            CHECK(pair->one == pair->other);
            CHECK(ww_rwlock_upgrade(&pair->lock) == 0);
            AFTER(&pair->lock);
            pair->one++;
            pair->other++;
        } else {
            CHECK(ww_rwlock_rdlock(&pair->lock) == 0);
            AFTER(&pair->lock);
            CHECK(pair->one == pair->other);
        }
        BEFORE(&pair->lock);
        CHECK(ww_rwlock_unlock(&pair->lock) == 0);
    }
    return NULL;
}

static void rwlocks(void)
{
    for (unsigned flags = 0; flags < 4; flags++) {
        struct pair *pair = make(sizeof *pair);
        unsigned scope = flags & 2 ? WW_PROCESS_SHARED : 0;
        CHECK(ww_rwlock_init(&pair->lock, (flags & 1) | scope) == 0);
        in_threads(reads_and_writes, pair);
        CHECK(pair->one == THREADS * (ROUNDS / 2));
        CHECK(ww_rwlock_destroy(&pair->lock) == 0);
        free(pair);
    }
}

/* Semaphores, barriers, latches, events, once: each passes plain data to another thread, which
 * frees the object that passed it. */

struct handed {
    ww_sem_t sem;
    ww_latch_t latch;
    ww_event_t event;
    ww_auto_event_t pass;
    ww_once_t once;
    long by_sem, by_latch, by_event, by_pass, by_once;
};

static void *hands_over(void *argument)
{
    struct handed *handed = argument;
    handed->by_sem = 1;
    BEFORE(&handed->sem);
    CHECK(ww_sem_post(&handed->sem) == 0);
    handed->by_latch = 1;
    BEFORE(&handed->latch);
    CHECK(ww_latch_count_down(&handed->latch, 1) == 0);
    handed->by_event = 1;
    BEFORE(&handed->event);
    CHECK(ww_event_set(&handed->event) == 0);
    handed->by_pass = 1;
    BEFORE(&handed->pass);
    /* The last access: the other thread may free everything immediately. */
    CHECK(ww_auto_event_set(&handed->pass) == 0);
    return NULL;
}

static void is_done_once(void *argument)
{
    struct handed *handed = argument;
    handed->by_once++;
    BEFORE(&handed->once);
}

static void *is_done(void *argument)
{
    struct handed *handed = argument;
    for (int i = 0; i < ROUNDS; i++) {
        CHECK(ww_once_call(&handed->once, is_done_once, handed) == 0);
        AFTER(&handed->once);
        CHECK(handed->by_once == 1);
    }
    return NULL;
}

static void hand_overs(void)
{
    for (int i = 0; i < ROUNDS; i++) {
        struct handed *handed = make(sizeof *handed);
        pthread_t thread;
        unsigned scope = i % 2 ? WW_PROCESS_SHARED : 0;
        CHECK(ww_sem_init(&handed->sem, scope, 0) == 0);
        CHECK(ww_latch_init(&handed->latch, scope, 1) == 0);
        CHECK(ww_event_init(&handed->event, scope) == 0);
        CHECK(ww_auto_event_init(&handed->pass, scope) == 0);
        if (i % 10 == 0)
            in_threads(is_done, handed);
        CHECK(pthread_create(&thread, NULL, hands_over, handed) == 0);
        CHECK(ww_sem_wait(&handed->sem) == 0);
        AFTER(&handed->sem);
        CHECK(handed->by_sem == 1);
        CHECK(ww_latch_wait(&handed->latch) == 0);
        AFTER(&handed->latch);
        CHECK(handed->by_latch == 1);
        CHECK(ww_event_wait(&handed->event) == 0);
        AFTER(&handed->event);
        CHECK(handed->by_event == 1);
        CHECK(ww_auto_event_wait(&handed->pass) == 0);
        AFTER(&handed->pass);
        CHECK(handed->by_pass == 1);
        free(handed);
        pthread_join(thread, NULL);
    }
}

struct round {
    ww_barrier_t barrier;
    long come, written[THREADS];
};

static void *goes_round(void *argument)
{
    struct round *round = argument;
    long mine = __atomic_fetch_add(&round->come, 1, __ATOMIC_RELAXED);
    for (long i = 1; i <= ROUNDS; i++) {
        round->written[mine] = i;
        for (int twice = 0; twice < 2; twice++) {
            for (int other = 0; other < THREADS && twice; other++)
                CHECK(round->written[other] == i);
            BEFORE(&round->barrier);
            int answer = ww_barrier_wait(&round->barrier);
            CHECK(answer == 0 || answer == WW_BARRIER_SERIAL_THREAD);
            AFTER(&round->barrier);
        }
    }
    return NULL;
}

static void barriers(void)
{
    struct round *round = make(sizeof *round);
    ATOMIC(round->come);
    CHECK(ww_barrier_init(&round->barrier, 0, THREADS) == 0);
    in_threads(goes_round, round);
    CHECK(ww_barrier_destroy(&round->barrier) == 0);
    free(round);
}

/* The futex calls: the threads take turns with a 64-bit word. */

struct passed {
    uint64_t word;
    long count;
};

static void *passes(void *argument)
{
    struct passed *passed = argument;
    for (uint64_t i = 0; i < ROUNDS; i++) {
        /* Even: free. Odd: taken. */
        for (;;) {
            uint64_t even = __atomic_load_n(&passed->word, __ATOMIC_RELAXED) & ~1ull;
            if (__atomic_compare_exchange_n(&passed->word, &even, even | 1, false, __ATOMIC_ACQUIRE,
                                            __ATOMIC_RELAXED))
                break;
            if (even & 1)
                ww_futex_wait(&passed->word, even, WW_MASK_U64, WW_SIZE_U64 | WW_PRIVATE, NULL, 0);
        }
        AFTER(&passed->word);
        passed->count++;
        BEFORE(&passed->word);
        __atomic_fetch_add(&passed->word, 1, __ATOMIC_RELEASE);
        CHECK(ww_futex_wake(&passed->word, WW_MASK_U64, 1, WW_SIZE_U64 | WW_PRIVATE) >= 0);
    }
    return NULL;
}

static void futexes(void)
{
    struct passed *passed = make(sizeof *passed);
    ATOMIC(passed->word);
    in_threads(passes, passed);
    CHECK(passed->count == THREADS * ROUNDS);
    free(passed);
}

/* The planted defects of this program. */

static void *races(void *argument)
{
    struct counted *counted = argument;
    for (int i = 0; i < ROUNDS; i++) {
        /* Reads without the mutex. */
        volatile long *count = &counted->count;
        long seen = *count;
        lock(counted, 0);
        *count = seen + 1;
        unlock(counted);
    }
    return NULL;
}

static void defect(const char *name)
{
    struct counted *counted = make(sizeof *counted);
    if (strcmp(name, "race") == 0) {
        in_threads(races, counted);
    } else if (strcmp(name, "leak") == 0) {
        counted = NULL;
        return;
    } else if (strcmp(name, "use-after-free") == 0) {
        /* volatile hides the defect from the compiler. */
        struct counted *volatile gone = counted;
        free(counted);
        gone->count = 1;
        return;
    } else if (strcmp(name, "lock-after-free") == 0) {
        /* The same access inside the library, for the tools that see into it. */
        struct counted *volatile gone = counted;
        free(counted);
        ww_mutex_lock(&gone->mutex);
        return;
    } else if (strcmp(name, "uninitialised") == 0) {
        volatile long *count = malloc(sizeof *count);
        if (*count > 0)
            ww_mutex_lock(&counted->mutex);
        free((void *)count);
    } else if (strcmp(name, "overflow") == 0) {
        volatile long most = LONG_MAX;
        most += counted->turn + 1;
    } else {
        CHECK(!"a known defect");
    }
    free(counted);
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        defect(argv[1]);
        return 0;
    }
    mutexes_and_condition_variables();
    robust_mutexes();
    rwlocks();
    hand_overs();
    barriers();
    futexes();
    printf("sanitized: all locks\n");
    return 0;
}
