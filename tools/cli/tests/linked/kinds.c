/* Waits of every other kind that libwaitword has, each ended by `main` after 5 ms, for so many
 * rounds: the function that waits has the name of what it waits for. */
#include <linux/futex.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>
#include <waitword.h>

static ww_mutex_t heir, recursive, shared;
static ww_robust_mutex_t robust;
static ww_cond_t heirs, everywhere;
static ww_barrier_t barrier, shared_barrier;
static ww_latch_t latch;
static ww_event_t event;
static ww_once_t once;
static uint32_t words[4];
static int is_signalled;

static void check(int error) {
    if (error) _exit(1);
}

#define WAITS(name, call)                              \
    __attribute__((noinline)) void waits_##name(void) { \
        call;                                          \
        /* No tail call: the function stays on the stack. */ \
        __asm__ volatile("");                          \
    }
#define LOCKS(name, lock, unlock, object) \
    WAITS(name, check(lock(&object)); check(unlock(&object)))

static void wait_with(ww_cond_t *cond, ww_mutex_t *mutex) {
    check(ww_mutex_lock(mutex));
    while (!is_signalled) check(ww_cond_wait(cond, mutex));
    check(ww_mutex_unlock(mutex));
}
static void nothing(void) {}
static void doze_once(void) { usleep(5000); }
static void wait_for_several(void) {
    struct ww_futex_waitv two[] = {{0, (uintptr_t)&words[2], WW_SIZE_U32 | WW_PRIVATE, 0},
                                   {0, (uintptr_t)&words[3], WW_SIZE_U32 | WW_PRIVATE, 0}};
    ww_futex_waitv(two, 2, 0, NULL, 0);
}

LOCKS(for_priority, ww_mutex_lock, ww_mutex_unlock, heir)
LOCKS(for_recursive, ww_mutex_lock, ww_mutex_unlock, recursive)
LOCKS(for_shared, ww_mutex_lock, ww_mutex_unlock, shared)
LOCKS(for_robust, ww_robust_mutex_lock, ww_robust_mutex_unlock, robust)
WAITS(with_priority, wait_with(&heirs, &heir))
WAITS(everywhere, wait_with(&everywhere, &shared))
WAITS(at_barrier, ww_barrier_wait(&barrier))
WAITS(at_shared_barrier, ww_barrier_wait(&shared_barrier))
WAITS(at_latch, check(ww_latch_wait(&latch)))
WAITS(for_event, check(ww_event_wait(&event)))
WAITS(for_once, check(ww_once(&once, nothing)))
WAITS(on_word, ww_futex_wait(&words[0], 0, UINT32_MAX, WW_SIZE_U32 | WW_PRIVATE, NULL, 0))
WAITS(on_shared_word, ww_futex_wait(&words[1], 0, UINT32_MAX, WW_SIZE_U32, NULL, 0))
WAITS(on_several_words, wait_for_several())
WAITS(as_futex, ww_futex(&words[0], FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 0, NULL, NULL, 0))

static void *run(void *function) {
    (*(void (*const *)(void))function)();
    return NULL;
}

/* In the order of `main`. */
static void (*const waits[])(void) = {
    waits_for_priority, waits_for_recursive,     waits_for_shared, waits_for_robust,
    waits_with_priority, waits_everywhere,       waits_at_barrier, waits_at_shared_barrier,
    waits_at_latch,      waits_for_event,        waits_for_once,   waits_on_word,
    waits_on_shared_word, waits_on_several_words, waits_as_futex};

static pthread_t start(int which) {
    pthread_t thread;
    check(pthread_create(&thread, NULL, run, (void *)&waits[which]));
    usleep(5000);
    return thread;
}
static void join(pthread_t thread) { check(pthread_join(thread, NULL)); }

static void with_mutex(int which, ww_mutex_t *mutex) {
    check(ww_mutex_lock(mutex));
    pthread_t thread = start(which);
    check(ww_mutex_unlock(mutex));
    join(thread);
}
static void with_cond(int which, ww_cond_t *cond, ww_mutex_t *mutex) {
    is_signalled = 0;
    pthread_t thread = start(which);
    check(ww_mutex_lock(mutex));
    is_signalled = 1;
    check(ww_cond_signal(cond));
    check(ww_mutex_unlock(mutex));
    join(thread);
}
static void with_word(int which, uint32_t *word, unsigned int flags) {
    pthread_t thread = start(which);
    __atomic_store_n(word, 1, __ATOMIC_SEQ_CST);
    ww_futex_wake(word, UINT32_MAX, 1, WW_SIZE_U32 | flags);
    join(thread);
    *word = 0;
}
static void *runs_once(void *ignored) {
    check(ww_once(&once, doze_once));
    return ignored;
}

int main(int argc, char **argv) {
    pthread_t thread, other;
    check(argc != 2);
    check(ww_mutex_init(&heir, WW_MUTEX_PRIO_INHERIT));
    check(ww_mutex_init(&recursive, WW_MUTEX_RECURSIVE));
    check(ww_mutex_init(&shared, WW_PROCESS_SHARED));
    check(ww_robust_mutex_init(&robust, 0));
    check(ww_cond_init(&heirs, 0));
    check(ww_cond_init(&everywhere, WW_PROCESS_SHARED));
    check(ww_barrier_init(&barrier, 0, 2));
    check(ww_barrier_init(&shared_barrier, WW_PROCESS_SHARED, 2));
    for (int round = atoi(argv[1]); round > 0; round--) {
        with_mutex(0, &heir);
        with_mutex(1, &recursive);
        with_mutex(2, &shared);
        check(ww_robust_mutex_lock(&robust));
        thread = start(3);
        check(ww_robust_mutex_unlock(&robust));
        join(thread);
        with_cond(4, &heirs, &heir);
        with_cond(5, &everywhere, &shared);
        thread = start(6);
        ww_barrier_wait(&barrier);
        join(thread);
        thread = start(7);
        ww_barrier_wait(&shared_barrier);
        join(thread);
        check(ww_latch_init(&latch, 0, 1));
        thread = start(8);
        check(ww_latch_count_down(&latch, 1));
        join(thread);
        check(ww_event_reset(&event));
        thread = start(9);
        check(ww_event_set(&event));
        join(thread);
        once = (ww_once_t)WW_ONCE_INIT;
        check(pthread_create(&other, NULL, runs_once, NULL));
        usleep(500);
        thread = start(10);
        join(thread);
        join(other);
        with_word(11, &words[0], WW_PRIVATE);
        with_word(12, &words[1], 0);
        with_word(13, &words[3], WW_PRIVATE);
        with_word(14, &words[0], WW_PRIVATE);
    }
    return 0;
}
