/* Bad input through the C ABI: -1 and the kernel's errno, checked in the kernel's order. */
#define _POSIX_C_SOURCE 200809L

#include "check.h"

#include <limits.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <waitword.h>

static const struct timespec past = {.tv_sec = 1, .tv_nsec = 0};
static const struct timespec negative = {.tv_sec = -1, .tv_nsec = 0};
static const struct timespec too_many_ns = {.tv_sec = 1, .tv_nsec = 1000000000};
static const struct timespec negative_ns = {.tv_sec = 1, .tv_nsec = -1};

static const uint64_t all_bits[] = {WW_MASK_U8, WW_MASK_U16, WW_MASK_U32, WW_MASK_U64};

/* Two words, each with a neighbour, and aligned for a pair of the largest. All zero. */
static _Alignas(16) unsigned char memory[64];
static void *const a = memory, *const b = memory + 16;
static void *const odd = memory + 33;

static const unsigned unknown_flag = 1u << 16;

static void bad_wait(unsigned flags)
{
    uint64_t any = all_bits[flags & 3];
    FAILS(EINVAL, ww_futex_wait(a, 0, any, flags | unknown_flag, NULL, 0));
    FAILS(EINVAL, ww_futex_wait(a, 0, 0, flags, NULL, 0));
    FAILS(EFAULT, ww_futex_wait(NULL, 0, any, flags, NULL, 0));
    if (any != WW_MASK_U64) {
        FAILS(EINVAL, ww_futex_wait(a, any + 1, any, flags, NULL, 0));
        FAILS(EINVAL, ww_futex_wait(a, 0, any + 1, flags, NULL, 0));
    }

    /* The time is checked before the word, so a value that differs does not hide the error. */
    FAILS(EINVAL, ww_futex_wait(a, 1, any, flags, &negative, CLOCK_MONOTONIC));
    FAILS(EINVAL, ww_futex_wait(a, 1, any, flags, &too_many_ns, CLOCK_MONOTONIC));
    FAILS(EINVAL, ww_futex_wait(a, 1, any, flags, &negative_ns, CLOCK_REALTIME));
    FAILS(EINVAL, ww_futex_wait(a, 1, any, flags, &past, CLOCK_PROCESS_CPUTIME_ID));
    FAILS(EINVAL, ww_futex_wait(a, 1, any, flags, &past, -1));
    /* Without a timeout the clock is not checked. */
    FAILS(EAGAIN, ww_futex_wait(a, 1, any, flags, NULL, -1));

    /* The address is checked before the value, the value before a time that has passed. */
    if ((flags & 3) != WW_SIZE_U8)
        FAILS(EINVAL, ww_futex_wait(odd, 1, any, flags, NULL, 0));
    FAILS(EAGAIN, ww_futex_wait(a, 1, any, flags, &past, CLOCK_MONOTONIC));
    FAILS(ETIMEDOUT, ww_futex_wait(a, 0, any, flags, &past, CLOCK_MONOTONIC));
    FAILS(ETIMEDOUT, ww_futex_wait(a, 0, any, flags, &past, CLOCK_REALTIME));
}

static void bad_wake(unsigned flags)
{
    uint64_t any = all_bits[flags & 3];
    FAILS(EINVAL, ww_futex_wake(a, any, 1, flags | unknown_flag));
    FAILS(EINVAL, ww_futex_wake(a, 0, 1, flags));
    if (any != WW_MASK_U64)
        FAILS(EINVAL, ww_futex_wake(a, any + 1, 1, flags));
    if ((flags & 3) != WW_SIZE_U8)
        FAILS(EINVAL, ww_futex_wake(odd, any, 1, flags));
    if (flags & WW_PRIVATE)
        GIVES(0, ww_futex_wake(NULL, any, 1, flags)); /* nothing is read */
    else
        FAILS(EFAULT, ww_futex_wake(NULL, any, 1, flags));
    GIVES(0, ww_futex_wake(a, any, 0, flags));
}

static struct ww_futex_waitv entry(void *word, uint64_t val, unsigned flags)
{
    return (struct ww_futex_waitv){.val = val, .uaddr = (uintptr_t)word, .flags = flags};
}

static long requeue(struct ww_futex_waitv from, struct ww_futex_waitv to, unsigned flags, int wake,
                    int move)
{
    struct ww_futex_waitv pair[2] = {from, to};
    return ww_futex_requeue(pair, flags, wake, move);
}

static void bad_requeue(unsigned flags)
{
    struct ww_futex_waitv from = entry(a, 0, flags), to = entry(b, 0, flags);
    FAILS(EINVAL, ww_futex_requeue(NULL, 0, 1, 1));
    FAILS(EINVAL, ww_futex_requeue(NULL, 1, 1, 1));
    FAILS(EINVAL, requeue(from, to, 1, 1, 1));
    FAILS(EINVAL, requeue(from, to, 0, -1, 1));
    FAILS(EINVAL, requeue(from, to, 0, 1, -1));
    FAILS(EINVAL, requeue(from, entry(b, 0, flags ^ WW_PRIVATE), 0, 1, 1));
    FAILS(EINVAL, requeue(entry(a, 0, flags | unknown_flag), to, 0, 1, 1));
    FAILS(EINVAL, requeue(from, entry(b, 0, flags | unknown_flag), 0, 1, 1));
    FAILS(EFAULT, requeue(entry(NULL, 0, flags), to, 0, 1, 1));
    if ((flags & 3) != WW_SIZE_U8) {
        FAILS(EINVAL, requeue(entry(odd, 1, flags), to, 0, 1, 1));
        FAILS(EINVAL, requeue(from, entry(odd, 0, flags), 0, 1, 1));
    }
    from.reserved = 1;
    FAILS(EINVAL, requeue(from, to, 0, 1, 1));
    from.reserved = 0;
    FAILS(EAGAIN, requeue(entry(a, 1, flags), to, 0, 1, 1));
    GIVES(0, requeue(from, to, 0, 1, INT_MAX));
}

static void bad_waitv(unsigned flags)
{
    struct ww_futex_waitv words[WW_WAITV_MAX + 1];
    for (int i = 0; i <= WW_WAITV_MAX; i++)
        words[i] = entry(a, 0, flags);
    FAILS(EINVAL, ww_futex_waitv(words, 0, 0, NULL, 0));
    FAILS(EINVAL, ww_futex_waitv(words, WW_WAITV_MAX + 1, 0, NULL, 0));
    FAILS(EINVAL, ww_futex_waitv(words, 1, 1, NULL, 0));
    FAILS(EINVAL, ww_futex_waitv(NULL, 1, 0, NULL, 0));
    FAILS(EINVAL, ww_futex_waitv(words, 1, 0, &too_many_ns, CLOCK_MONOTONIC));
    FAILS(EINVAL, ww_futex_waitv(words, 1, 0, &past, CLOCK_PROCESS_CPUTIME_ID));
    /* The kernel accepts 128 words of 32 bits. */
    if (flags == WW_SIZE_U64) {
        FAILS(EINVAL, ww_futex_waitv(words, WW_WAITV_MAX / 2 + 1, 0, &past, CLOCK_MONOTONIC));
        FAILS(ETIMEDOUT, ww_futex_waitv(words, WW_WAITV_MAX / 2, 0, &past, CLOCK_MONOTONIC));
    } else {
        FAILS(ETIMEDOUT, ww_futex_waitv(words, WW_WAITV_MAX, 0, &past, CLOCK_MONOTONIC));
    }

    words[1].flags = flags | unknown_flag;
    FAILS(EINVAL, ww_futex_waitv(words, 2, 0, NULL, 0));
    words[1] = entry(a, 0, flags);
    words[1].reserved = 1;
    FAILS(EINVAL, ww_futex_waitv(words, 2, 0, NULL, 0));
    words[1] = entry(NULL, 0, flags);
    FAILS(EFAULT, ww_futex_waitv(words, 2, 0, NULL, 0));
    words[1] = entry(odd, 0, flags);
    if ((flags & 3) != WW_SIZE_U8)
        FAILS(EINVAL, ww_futex_waitv(words, 2, 0, NULL, 0));
    words[1] = entry(b, 1, flags);
    FAILS(EAGAIN, ww_futex_waitv(words, 2, 0, NULL, 0));
}

static void bad_wake_op(unsigned flags)
{
    FAILS(EINVAL,
          ww_futex_wake_op(a, 1, b, 1, WW_OP_SET, 0, WW_OP_CMP_EQ, 0, flags | unknown_flag));
    FAILS(EFAULT, ww_futex_wake_op(a, 1, NULL, 1, WW_OP_SET, 0, WW_OP_CMP_EQ, 0, flags));
    if ((flags & 3) != WW_SIZE_U8) {
        FAILS(EINVAL, ww_futex_wake_op(odd, 1, b, 1, WW_OP_SET, 0, WW_OP_CMP_EQ, 0, flags));
        FAILS(EINVAL, ww_futex_wake_op(a, 1, odd, 1, WW_OP_SET, 0, WW_OP_CMP_EQ, 0, flags));
    }
    uint64_t any = all_bits[flags & 3];
    if (any != WW_MASK_U64) {
        FAILS(EINVAL, ww_futex_wake_op(a, 1, b, 1, WW_OP_SET, any + 1, WW_OP_CMP_EQ, 0, flags));
        FAILS(EINVAL, ww_futex_wake_op(a, 1, b, 1, WW_OP_SET, 0, WW_OP_CMP_EQ, any + 1, flags));
    }
    /* In both cases the word is unchanged. */
    FAILS(ENOSYS, ww_futex_wake_op(a, 1, b, 1, 7, 1, WW_OP_CMP_EQ, 0, flags));
    FAILS(ENOSYS, ww_futex_wake_op(a, 1, b, 1, WW_OP_SET, 1, 15, 0, flags));
    GIVES(0, *(unsigned char *)b);
}

static void bad_classic(int scope)
{
    const struct timespec relative = {.tv_sec = 0, .tv_nsec = 1};
    FAILS(EINVAL, ww_futex(odd, FUTEX_WAIT | scope, 1, NULL, NULL, 0));
    FAILS(EINVAL, ww_futex(a, FUTEX_WAIT | scope, 1, &too_many_ns, NULL, 0));
    FAILS(EAGAIN, ww_futex(a, FUTEX_WAIT | scope, 1, &relative, NULL, 0));
    FAILS(ETIMEDOUT, ww_futex(a, FUTEX_WAIT | scope, 0, &relative, NULL, 0));
    FAILS(EINVAL, ww_futex(a, FUTEX_WAIT_BITSET | scope, 0, NULL, NULL, 0));
    FAILS(EINVAL, ww_futex(a, FUTEX_WAKE_BITSET | scope, 1, NULL, NULL, 0));
    FAILS(EINVAL, ww_futex(odd, FUTEX_WAKE | scope, 1, NULL, NULL, 0));
    FAILS(EINVAL, ww_futex(a, FUTEX_REQUEUE | scope, (uint32_t)-1, WW_VAL2(1), b, 0));
    FAILS(EINVAL, ww_futex(a, FUTEX_CMP_REQUEUE | scope, 1, WW_VAL2(-1), b, 0));
    FAILS(EAGAIN, ww_futex(a, FUTEX_CMP_REQUEUE | scope, 1, WW_VAL2(1), b, 1));
    FAILS(ENOSYS, ww_futex(a, FUTEX_WAKE | FUTEX_CLOCK_REALTIME | scope, 1, NULL, NULL, 0));
    FAILS(ENOSYS, ww_futex(a, 100 | scope, 1, NULL, NULL, 0));
    FAILS(ENOSYS, ww_futex(a, FUTEX_FD | scope, 1, NULL, NULL, 0));
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ); /* so that a hang keeps earlier output */
    for (unsigned size = WW_SIZE_U8; size <= WW_SIZE_U64; size++) {
        for (unsigned scope = 0; scope <= WW_PRIVATE; scope += WW_PRIVATE) {
            printf("words of %d bits, %s\n", 8 << size, scope ? "private" : "shared");
            memset(memory, 0, sizeof memory);
            bad_wait(size | scope);
            bad_wake(size | scope);
            bad_requeue(size | scope);
            bad_waitv(size | scope);
            bad_wake_op(size | scope);
        }
    }
    printf("futex(2)\n");
    bad_classic(0);
    bad_classic(FUTEX_PRIVATE_FLAG);
    return report("bad_input");
}
