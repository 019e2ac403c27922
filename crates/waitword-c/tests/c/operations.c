/* Every function of waitword.h works: sizes, scopes, counts, masks, time, settings.
 *
 * No test here sleeps to give another thread time to fall asleep. For private words a test moves
 * waiters from one word to another until it has moved all of them: a moved waiter is asleep, so
 * from then on the counts are exact.
 *
 * The waiters of shared words are queued in the kernel, which sends a moved waiter back to its
 * first word if anything else wakes the thread for a moment. Those tests continue until they have
 * found all waiters.
 */
#define _POSIX_C_SOURCE 200809L

#include "check.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <waitword.h>

static const uint64_t all_bits[] = {WW_MASK_U8, WW_MASK_U16, WW_MASK_U32, WW_MASK_U64};

/* Words, 16 bytes apart so that any size fits. All hold 0 except where a test changes them. */
static _Alignas(16) unsigned char memory[48];
static void *const a = memory, *const b = memory + 16, *const c = memory + 32;

static uint64_t load(const void *word, unsigned size)
{
    switch (size) {
    case WW_SIZE_U8: return __atomic_load_n((const uint8_t *)word, __ATOMIC_SEQ_CST);
    case WW_SIZE_U16: return __atomic_load_n((const uint16_t *)word, __ATOMIC_SEQ_CST);
    case WW_SIZE_U32: return __atomic_load_n((const uint32_t *)word, __ATOMIC_SEQ_CST);
    default: return __atomic_load_n((const uint64_t *)word, __ATOMIC_SEQ_CST);
    }
}

/* A thread in ww_futex_wait, and its result. */
struct sleeper {
    pthread_t thread;
    void *word;
    uint64_t mask;
    unsigned flags;
    long result;
};

static void *sleep_once(void *argument)
{
    struct sleeper *sleeper = argument;
    do
        sleeper->result = ww_futex_wait(sleeper->word, 0, sleeper->mask, sleeper->flags, NULL, 0);
    while (sleeper->result < 0 && errno == EINTR);
    return NULL;
}

static void start(struct sleeper *sleeper, void *word, uint64_t mask, unsigned flags)
{
    *sleeper = (struct sleeper){.word = word, .mask = mask, .flags = flags};
    if (pthread_create(&sleeper->thread, NULL, sleep_once, sleeper) != 0) {
        perror("pthread_create");
        exit(1);
    }
}

static void join(struct sleeper *sleeper)
{
    pthread_join(sleeper->thread, NULL);
    GIVES(0, sleeper->result);
}

static struct ww_futex_waitv entry(void *word, unsigned flags)
{
    return (struct ww_futex_waitv){.uaddr = (uintptr_t)word, .flags = flags};
}

static long requeue(void *from, void *to, unsigned flags, int wake, int move)
{
    struct ww_futex_waitv pair[2] = {entry(from, flags), entry(to, flags)};
    return ww_futex_requeue(pair, 0, wake, move);
}

/* Moves all `count` waiters of a private word. */
static void move_all(void *from, void *to, unsigned flags, int count)
{
    while (count > 0) {
        long moved = requeue(from, to, flags, 0, INT_MAX);
        if (moved < 0 || moved > count) {
            check(__LINE__, "ww_futex_requeue", count, moved, errno);
            exit(report("operations"));
        }
        count -= (int)moved;
        sched_yield();
    }
}

static void private_wake_and_requeue(unsigned flags)
{
    uint64_t any = all_bits[flags & 3];
    struct sleeper sleepers[4];
    for (int i = 0; i < 4; i++)
        start(&sleepers[i], a, any, flags);
    move_all(a, b, flags, 4);
    GIVES(0, ww_futex_wake(a, any, INT_MAX, flags));
    GIVES(0, ww_futex_wake(b, any, 0, flags));
    GIVES(1, ww_futex_wake(b, any, 1, flags));
    /* Wakes one and moves one: two in all. */
    GIVES(2, requeue(b, c, flags, 1, 1));
    GIVES(1, ww_futex_wake(b, any, INT_MAX, flags));
    GIVES(1, ww_futex_wake(c, any, INT_MAX, flags));
    for (int i = 0; i < 4; i++)
        join(&sleepers[i]);
}

static void private_masks(unsigned flags)
{
    struct sleeper sleeper;
    start(&sleeper, a, 0x82, flags);
    move_all(a, b, flags, 1); /* the mask survives the move */
    GIVES(0, ww_futex_wake(b, 0x7d, INT_MAX, flags));
    GIVES(1, ww_futex_wake(b, 0x81, INT_MAX, flags));
    join(&sleeper);
}

static void private_wake_op(unsigned flags)
{
    unsigned size = flags & 3;
    uint64_t any = all_bits[size];
    struct sleeper sleepers[3];
    start(&sleepers[0], a, any, flags);
    start(&sleepers[1], a, any, flags);
    move_all(a, b, flags, 2);
    start(&sleepers[2], a, any, flags);
    move_all(a, c, flags, 1);
    /* The comparison fails: only the first word's waiter is woken. */
    GIVES(1, ww_futex_wake_op(b, 1, c, 1, WW_OP_SET, any, WW_OP_CMP_NE, 0, flags));
    GIVES(true, load(c, size) == any);
    /* All ones is -1, and adding 1 makes it 0 again. */
    GIVES(2, ww_futex_wake_op(b, 1, c, 1, WW_OP_ADD, 1, WW_OP_CMP_EQ, (uint64_t)-1, flags));
    GIVES(0, load(c, size));
    for (int i = 0; i < 3; i++)
        join(&sleepers[i]);
}

/* Wakes waiters of two words, one at a time, until `count` have been woken. */
static void wake_all_of(void *word, void *other, unsigned flags, int count)
{
    uint64_t any = all_bits[flags & 3];
    int woken = 0;
    while (woken < count) {
        long here = ww_futex_wake(word, any, 1, flags), there = ww_futex_wake(other, any, 1, flags);
        if (here < 0 || here > 1 || there < 0 || there > 1) {
            check(__LINE__, "ww_futex_wake", 1, here, errno);
            check(__LINE__, "ww_futex_wake", 1, there, errno);
            exit(report("operations"));
        }
        woken += (int)(here + there);
        sched_yield();
    }
    GIVES(count, woken);
    GIVES(0, ww_futex_wake(word, any, INT_MAX, flags) + ww_futex_wake(other, any, INT_MAX, flags));
}

static void shared_wake_and_requeue(unsigned flags)
{
    struct sleeper sleepers[4];
    for (int i = 0; i < 4; i++)
        start(&sleepers[i], a, all_bits[flags & 3], flags);
    long moved;
    while ((moved = requeue(a, b, flags, 0, 1)) == 0)
        sched_yield();
    GIVES(1, moved);
    /* A waiter of an 8 or 16-bit word cannot be moved, so it has been woken. */
    wake_all_of(a, b, flags, (flags & 3) >= WW_SIZE_U32 ? 4 : 3);
    for (int i = 0; i < 4; i++)
        join(&sleepers[i]);
}

static void shared_masks(unsigned flags)
{
    if (flags == WW_SIZE_U64) { /* 64 bits are emulated with futex_waitv, which has no masks */
        FAILS(ENOSYS, ww_futex_wait(a, 0, 0x82, flags, NULL, 0));
        return;
    }
    struct sleeper sleeper;
    start(&sleeper, a, 0x82, flags);
    long woken;
    do {
        GIVES(0, ww_futex_wake(a, 0x7d, INT_MAX, flags));
        sched_yield();
    } while ((woken = ww_futex_wake(a, 0x81, INT_MAX, flags)) == 0);
    GIVES(1, woken);
    join(&sleeper);
}

static void shared_wake_op(unsigned flags)
{
    uint64_t any = all_bits[flags & 3];
    struct sleeper sleeper;
    long woken;
    start(&sleeper, a, any, flags);
    while ((woken = ww_futex_wake_op(a, 1, c, 1, WW_OP_XOR, 0, WW_OP_CMP_NE, 0, flags)) == 0)
        sched_yield();
    GIVES(1, woken);
    join(&sleeper);
    start(&sleeper, c, any, flags);
    do {
        GIVES(0, ww_futex_wake_op(a, 1, c, 1, WW_OP_XOR, 0, WW_OP_CMP_NE, 0, flags));
        sched_yield();
        woken = ww_futex_wake_op(a, 1, c, 1, WW_OP_XOR, 0, WW_OP_CMP_EQ, 0, flags);
    } while (woken == 0);
    GIVES(1, woken);
    join(&sleeper);
}

/* The effect of wake_op on the word, without waiters. */
static void changes(unsigned flags)
{
    unsigned size = flags & 3, last_bit = (8u << size) - 1;
    uint64_t any = all_bits[size], top = any ^ (any >> 1);
    GIVES(0, ww_futex_wake_op(a, 1, c, 1, WW_OP_SET, any, WW_OP_CMP_EQ, 0, flags));
    GIVES(true, load(c, size) == any);
    GIVES(0, ww_futex_wake_op(a, 1, c, 1, WW_OP_ADD, 1, WW_OP_CMP_LT, 0, flags));
    GIVES(0, load(c, size));
    GIVES(0, ww_futex_wake_op(a, 1, c, 1, WW_OP_OR | WW_OP_ARG_SHIFT, last_bit, WW_OP_CMP_GE, 0,
                              flags));
    GIVES(true, load(c, size) == top);
    GIVES(0, ww_futex_wake_op(a, 1, c, 1, WW_OP_XOR, top | 1, WW_OP_CMP_LE, 0, flags));
    GIVES(1, load(c, size));
    GIVES(0, ww_futex_wake_op(a, 1, c, 1, WW_OP_ANDN, 1, WW_OP_CMP_GT, 0, flags));
    GIVES(0, load(c, size));
}

static void until_a_deadline(unsigned flags)
{
    uint64_t any = all_bits[flags & 3];
    const int clocks[] = {CLOCK_MONOTONIC, CLOCK_REALTIME};
    for (int i = 0; i < 2; i++) {
        struct timespec deadline, now;
        clock_gettime(clocks[i], &deadline);
        deadline.tv_nsec += 2000000;
        deadline.tv_sec += deadline.tv_nsec / 1000000000;
        deadline.tv_nsec %= 1000000000;
        long result;
        do
            result = ww_futex_wait(a, 0, any, flags, &deadline, clocks[i]);
        while (result == 0);
        check_error(__LINE__, "wait until a deadline", ETIMEDOUT, result, errno);
        clock_gettime(clocks[i], &now);
        bool early = now.tv_sec < deadline.tv_sec ||
                     (now.tv_sec == deadline.tv_sec && now.tv_nsec < deadline.tv_nsec);
        GIVES(false, early);
    }
}

/* Words of all sizes and both scopes in one wait. Each of them is woken in turn. */
static struct ww_futex_waitv many[8];

static void *wait_for_many(void *result)
{
    do
        *(long *)result = ww_futex_waitv(many, 8, 0, NULL, 0);
    while (*(long *)result < 0 && errno == EINTR);
    return NULL;
}

static void wait_on_many(void)
{
    static _Alignas(16) unsigned char words[8][16];
    for (unsigned i = 0; i < 8; i++)
        many[i] = entry(words[i], i / 2 | (i % 2 ? WW_PRIVATE : 0));
    for (unsigned i = 0; i < 8; i++) {
        long index = -1;
        pthread_t thread;
        if (pthread_create(&thread, NULL, wait_for_many, &index) != 0) {
            perror("pthread_create");
            exit(1);
        }
        long woken;
        while ((woken = ww_futex_wake(words[i], all_bits[i / 2], 1, many[i].flags)) == 0)
            sched_yield();
        GIVES(1, woken);
        pthread_join(thread, NULL);
        GIVES(i, index);
    }
}

/* The futex(2) interface and the futex2 interface see the same waiters. */
static void classic_private(void)
{
    const int scope = FUTEX_PRIVATE_FLAG;
    struct sleeper sleepers[3];
    for (int i = 0; i < 3; i++)
        start(&sleepers[i], a, WW_MASK_U32, WW_SIZE_U32 | WW_PRIVATE);
    for (int left = 3; left > 0; sched_yield()) {
        long moved = ww_futex(a, FUTEX_CMP_REQUEUE | scope, 0, WW_VAL2(INT_MAX), b, 0);
        if (moved < 0) {
            check(__LINE__, "FUTEX_CMP_REQUEUE", left, moved, errno);
            exit(report("operations"));
        }
        left -= (int)moved;
    }
    GIVES(1, ww_futex(b, FUTEX_WAKE | scope, 0, NULL, NULL, 0)); /* futex(2)'s 0 wakes one */
    GIVES(1, ww_futex(b, FUTEX_WAKE_BITSET | scope, 1, NULL, NULL, 4));
    int op = FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_EQ, 0);
    GIVES(1, ww_futex(c, FUTEX_WAKE_OP | scope, 1, WW_VAL2(1), b, (uint32_t)op));
    for (int i = 0; i < 3; i++)
        join(&sleepers[i]);
}

static void classic_shared(void)
{
    struct sleeper sleeper;
    start(&sleeper, a, WW_MASK_U32, WW_SIZE_U32);
    long woken;
    do {
        GIVES(0, ww_futex(a, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0)); /* other scope, other word */
        sched_yield();
    } while ((woken = ww_futex(a, FUTEX_WAKE, 1, NULL, NULL, 0)) == 0);
    GIVES(1, woken);
    join(&sleeper);
}

static void settings(void)
{
    errno = 77;
    long woken = ww_futex_wake(a, WW_MASK_U8, 1, WW_SIZE_U8);
    check(__LINE__, "a wake without waiters", 0, woken, errno);
    check(__LINE__, "errno after success", 77, errno, errno);
    GIVES(WW_VERSION, ww_version());
    GIVES(true, ww_table_buckets() > 0); /* earlier tests have waited */
    long buckets = ww_table_reserve(5000);
    GIVES(true, buckets > 0);
    GIVES(buckets, ww_table_buckets());
    GIVES(buckets, ww_table_reserve(0)); /* never shrinks */
    GIVES(true, ww_table_mapped_bytes() >= (size_t)buckets);
    ww_set_spin_budget_ns(1500);
    GIVES(1500, ww_spin_budget_ns());
    ww_set_spin_budget_ns(0);
    GIVES(0, ww_spin_budget_ns());
    /* Where there are no time slice extensions, no section asks. */
    int outer = ww_time_slice_extend(), inner = ww_time_slice_extend();
    ww_time_slice_end(inner);
    ww_time_slice_end(outer);
    GIVES(true, (outer == 0 || outer == 1) && inner <= outer);
}

static void every_operation(void)
{
    for (unsigned size = WW_SIZE_U8; size <= WW_SIZE_U64; size++) {
        printf("words of %d bits\n", 8 << size);
        private_wake_and_requeue(size | WW_PRIVATE);
        private_masks(size | WW_PRIVATE);
        private_wake_op(size | WW_PRIVATE);
        shared_wake_and_requeue(size);
        shared_masks(size);
        shared_wake_op(size);
        for (unsigned scope = 0; scope <= WW_PRIVATE; scope += WW_PRIVATE) {
            changes(size | scope);
            until_a_deadline(size | scope);
        }
    }
    printf("many words, futex(2)\n");
    wait_on_many();
    classic_private();
    classic_shared();
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ); /* so that a hang keeps earlier output */
    every_operation();
    settings();
    every_operation(); /* again, without spinning */
    return report("operations");
}
