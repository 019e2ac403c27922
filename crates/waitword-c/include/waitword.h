/*
 * waitword: futexes of 8, 16, 32 and 64 bits in user space, private and process-shared.
 *
 * A futex is a word in a program's memory. A thread that finds the word in the wrong state asks to sleep
 * until somebody changes it (ww_futex_wait); whoever changes it asks to wake sleepers (ww_futex_wake).
 * Names, arguments, order and answers are those of Linux's futex2 calls; where they differ, the function
 * says so. The words are ordinary atomics of the program's: uint64_t with the compiler's atomic
 * builtins, _Atomic uint64_t, std::atomic<std::uint64_t>.
 *
 * Errors. A function that returns long returns -1 on failure, with errno set; errno is left alone
 * otherwise. Values above a word's width are refused, not cut off.
 *
 * Words. A word is private (WW_PRIVATE) or shared, and all calls on it must say the same: a private wake
 * does not find a shared waiter, nor the other way round. All calls on one word also name one size.
 *
 * Ordering. What a thread did before it woke another is visible to the one it woke. A wait that fails
 * with EAGAIN orders nothing.
 *
 * Threads. Every function may be called by any thread at any time. No function uses the heap: an
 * allocator may stand on these calls. One exception is glibc's: in a library that was brought in by dlopen, a
 * thread's first call takes the thread's local memory from malloc.
 *
 * Signal handlers. Wakes, requeues and wake_ops may be made from any handler (after dlopen, not as the
 * thread's first call). Waits are not for handlers: one that has interrupted this library gets EINTR.
 *
 * fork. The child starts with an empty table of waiters, whatever the other threads were doing, and may
 * use every function, also in a process with many threads. vfork: as little as in any other library.
 *
 * Bad addresses. Of a word that is read, an address in the first page or in the kernel's half is EFAULT; any
 * other address that is not mapped is a fault of the program's, as it would be for memcpy.
 *
 * Generated from the Rust sources: do not edit.
 */

#ifndef WAITWORD_H
#define WAITWORD_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* The version of this header; ww_version() is that of the library. Compare it in #if as
 * WW_VERSION >= major * 1000000 + minor * 1000 + patch. */
#define WW_VERSION_MAJOR 0
#define WW_VERSION_MINOR 1
#define WW_VERSION_PATCH 0
#define WW_VERSION (WW_VERSION_MAJOR * 1000000 + WW_VERSION_MINOR * 1000 + WW_VERSION_PATCH)
#define WW_VERSION_STRING "0.1.0"

/* In place of a timeout, the number that some operations of ww_futex take there (futex(2)'s val2). */
#define WW_VAL2(number) ((const struct timespec *)(uintptr_t)(number))

/* The C library's own; named here for C99, whose <time.h> does not have it. */
struct timespec;

/**
 * Flag: the word has 8 bits (`uint8_t`).
 */
#define WW_SIZE_U8 0

/**
 * Flag: the word has 16 bits (`uint16_t`, 2-byte aligned).
 */
#define WW_SIZE_U16 1

/**
 * Flag: the word has 32 bits (`uint32_t`, 4-byte aligned).
 */
#define WW_SIZE_U32 2

/**
 * Flag: the word has 64 bits (`uint64_t`, 8-byte aligned).
 */
#define WW_SIZE_U64 3

/**
 * Flag: the word is followed by a node word of the same size, which names the NUMA node that its
 * waiters stand on; -1 (all bits set) is replaced by the caller's node. The pair is aligned to its own
 * size. A shared word with this flag goes to the kernel as it is, which knows 32 bits only (Linux 6.16).
 */
#define WW_NUMA 4

/**
 * Flag: the waiters stand where the memory policy of the word's page says. Without effect on a private
 * word; a shared one goes to the kernel as it is, which knows 32 bits only (Linux 6.16).
 */
#define WW_MPOL 8

/**
 * Flag: only threads of this process use the word. Its waiters then stand in the process's own table,
 * and a call that need not sleep or wake anybody makes no system call.
 */
#define WW_PRIVATE 128

/**
 * Mask of all bits of an 8-bit word: found by every wake, finds every waiter.
 */
#define WW_MASK_U8 255

/**
 * Mask of all bits of a 16-bit word.
 */
#define WW_MASK_U16 65535

/**
 * Mask of all bits of a 32-bit word.
 */
#define WW_MASK_U32 4294967295

/**
 * Mask of all bits of a 64-bit word.
 */
#define WW_MASK_U64 18446744073709551615ull

/**
 * How many words `ww_futex_waitv` waits for at most.
 */
#define WW_WAITV_MAX 128

/**
 * Operation of `ww_futex_wake_op`: `word = oparg`.
 */
#define WW_OP_SET 0

/**
 * Operation: `word += oparg`, wrapping at the word's width.
 */
#define WW_OP_ADD 1

/**
 * Operation: `word |= oparg`.
 */
#define WW_OP_OR 2

/**
 * Operation: `word &= ~oparg`.
 */
#define WW_OP_ANDN 3

/**
 * Operation: `word ^= oparg`.
 */
#define WW_OP_XOR 4

/**
 * Added to an operation: the operand is `1 << oparg`, `oparg` taken modulo the word's width.
 */
#define WW_OP_ARG_SHIFT 8

/**
 * Comparison of `ww_futex_wake_op`: `old == cmparg`. All comparisons are signed, at the word's width.
 */
#define WW_OP_CMP_EQ 0

/**
 * Comparison: `old != cmparg`.
 */
#define WW_OP_CMP_NE 1

/**
 * Comparison: `old < cmparg`.
 */
#define WW_OP_CMP_LT 2

/**
 * Comparison: `old <= cmparg`.
 */
#define WW_OP_CMP_LE 3

/**
 * Comparison: `old > cmparg`.
 */
#define WW_OP_CMP_GT 4

/**
 * Comparison: `old >= cmparg`.
 */
#define WW_OP_CMP_GE 5

/**
 * A word and the value it is expected to hold: `struct futex_waitv` of futex2.
 *
 * `reserved` must be 0.
 */
struct ww_futex_waitv {
    /**
     * The expected value; the bits above the word's width must be 0.
     */
    uint64_t val;
    /**
     * The word's address: `(uintptr_t)&word`.
     */
    uint64_t uaddr;
    /**
     * `WW_SIZE_*`, with `WW_PRIVATE` and `WW_NUMA` as needed.
     */
    uint32_t flags;
    /**
     * Must be 0.
     */
    uint32_t reserved;
};

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Sleeps while the word holds `val`, until a wake whose mask shares a bit with `mask`.
 *
 * The check of the value and going to sleep are one step: a wake that comes after the word was changed
 * is never missed. Returns 0 once woken. A wake-up may be spurious: look at the word again.
 *
 * `mask` is usually `WW_MASK_U8` to `WW_MASK_U64`. `abs_timeout` is an absolute time, in seconds and
 * nanoseconds, on `clock` (`CLOCK_MONOTONIC` or `CLOCK_REALTIME`); NULL waits without end, and `clock`
 * is then not looked at. Never ends early on account of the timeout.
 *
 * Errors:
 * - `EAGAIN`: the word did not hold `val`.
 * - `ETIMEDOUT`: the time came first.
 * - `EINTR`: a signal handler ran (without a timeout, only one installed without `SA_RESTART`), or the
 *   call was made from a handler that had interrupted this library.
 * - `EINVAL`: unknown flags; `clock` or `abs_timeout` not valid; `mask` 0; `val` or `mask` wider than
 *   the word; `uaddr` misaligned; with `WW_NUMA`, a node that does not exist.
 * - `EFAULT`: `uaddr` is NULL.
 * - `ENOSYS`: a shared 64-bit word, and either a `mask` other than `WW_MASK_U64` or a kernel before 5.16.
 *
 * Blocks. Not a cancellation point. After futex2's futex_wait (Linux 6.7) and FUTEX_WAIT_BITSET.
 *
 * # Safety
 * `uaddr` is NULL or a mapped word of the size in `flags` (with `WW_NUMA`, a pair of them) that stays
 * mapped while this runs, and is changed by atomic operations only. `abs_timeout` is NULL or points to
 * a time.
 */
long ww_futex_wait(void *uaddr,
                   uint64_t val,
                   uint64_t mask,
                   unsigned int flags,
                   const struct timespec *abs_timeout,
                   int clock);

/**
 * Wakes up to `nr` of the threads that wait on the word with a mask that shares a bit with `mask`.
 *
 * Returns how many were woken. Order of arrival; real-time threads first, by priority. `INT_MAX` wakes
 * all, 0 nobody (FUTEX_WAKE differs: one), a negative number one, as in the kernel. With `WW_PRIVATE` and
 * nobody waiting, no system call is made. The word itself is not read. The waiters of a shared 64-bit word
 * are found by every mask.
 *
 * Errors:
 * - `EINVAL`: unknown flags; `mask` 0 or wider than the word; `uaddr` misaligned; with `WW_NUMA`, a
 *   node that does not exist.
 * - `EFAULT`: `uaddr` is NULL and the word is shared, or has a node word.
 *
 * Does not block. Async-signal-safe: from a handler that has interrupted this library inside one of
 * its own short critical sections, the wake is delivered as that section ends, and the call returns 0,
 * since the number is not yet known. After futex2's futex_wake (Linux 6.7) and FUTEX_WAKE_BITSET.
 *
 * # Safety
 * A shared word is mapped while this runs; a private one need not be, unless `WW_NUMA` is given.
 */
long ww_futex_wake(void *uaddr,
                   uint64_t mask,
                   int nr,
                   unsigned int flags);

/**
 * If the first word still holds its value: wakes up to `nr_wake` of its waiters, and moves up to
 * `nr_requeue` others onto the second word without waking them.
 *
 * `pair` is an array of two; the first's `val` is compared, the second's is not looked at. The words
 * may differ in size. Returns how many were woken and moved, together. A moved waiter keeps its mask
 * and its timeout, and is from then on woken through the second word. Moving private waiters makes no
 * system call.
 *
 * The comparison and the move are one step for private words and for shared ones of 32 bits. Of a shared
 * 64-bit word, the low half is compared in one step with the move, the high half just before. Waiters of
 * shared 8 and 16-bit words cannot be moved, neither from nor to such a word: they are woken instead.
 * A moved waiter of a shared word goes back to the first word, and looks at its value again, if anything
 * but a futex wakes its thread meanwhile: so the kernel does it.
 *
 * Errors:
 * - `EAGAIN`: the first word did not hold its value.
 * - `EINVAL`: `flags` not 0; `pair` NULL; a negative count; unknown flags, a `reserved` that is not 0, a
 *   value wider than its word, or a misaligned address in an entry; one word private and the other
 *   shared; with `WW_NUMA`, a node that does not exist.
 * - `EFAULT`: the first address is NULL; or the second is, and the words are shared.
 *
 * Does not block. Async-signal-safe, as `ww_futex_wake`. After futex2's futex_requeue (Linux 6.7) and
 * FUTEX_CMP_REQUEUE.
 *
 * # Safety
 * `pair` is NULL or points to two entries, whose addresses are those of words as `ww_futex_wait` wants
 * them.
 */
long ww_futex_requeue(const struct ww_futex_waitv *pair,
                      unsigned int flags,
                      int nr_wake,
                      int nr_requeue);

/**
 * Sleeps while each of `nr` words (at most `WW_WAITV_MAX`) holds its value, until one of them is woken.
 *
 * Returns the index of a word that was woken: a hint, others may have been woken too. Sizes may be
 * mixed, and private with shared words. `flags` must be 0; the flags of each word are in its entry.
 * `abs_timeout` and `clock` are those of `ww_futex_wait`.
 *
 * The kernel takes 128 shared words: one of 64 bits counts as two, and if there are private words too, they
 * count as one together. A waiter for a shared 8 or 16-bit word may take a wake that was meant for a
 * neighbour in the same 32 bits; it then wakes the neighbours, so that none is lost.
 *
 * Errors:
 * - `EAGAIN`: some word did not hold its value.
 * - `ETIMEDOUT`, `EINTR`: as `ww_futex_wait`.
 * - `ENOSYS`: a shared word, and a kernel before 5.16.
 * - `ENOMEM`: private words with shared ones, and memory is short.
 * - `EINVAL`: `nr` 0, or too many words; `waiters` NULL; `flags` not 0; `clock` or `abs_timeout`
 *   not valid; unknown flags, a `reserved` that is not 0, a value wider than its word, or a misaligned
 *   address in an entry.
 * - `EFAULT`: an address is NULL.
 *
 * Blocks. Not a cancellation point. After futex_waitv (Linux 5.16).
 *
 * # Safety
 * `waiters` is NULL or points to `nr` entries, whose addresses are those of words as `ww_futex_wait`
 * wants them. `abs_timeout` is NULL or points to a time.
 */
long ww_futex_waitv(const struct ww_futex_waitv *waiters,
                    unsigned int nr,
                    unsigned int flags,
                    const struct timespec *abs_timeout,
                    int clock);

/**
 * Changes the second word, wakes up to `nr` waiters of the first, and, if the second's old value
 * compares as asked, up to `nr2` waiters of the second.
 *
 * That is: `old = *uaddr2; *uaddr2 = old OP oparg; wake uaddr; if (old CMP cmparg) wake uaddr2`. The change
 * is one atomic step; whoever waited before it is found by the wakes. `op` is `WW_OP_SET` and so on,
 * `WW_OP_ARG_SHIFT` added if `oparg` is a shift; `cmp` is `WW_OP_CMP_EQ` and so on. Both words have the size
 * and scope that `flags` say; `oparg` and `cmparg` are as wide as the word, or such a number sign-extended
 * (-1 is all bits). A count of 0 wakes nobody, a negative one wakes one. Returns the sum of both wakes.
 *
 * Errors:
 * - `ENOSYS`: unknown `op` or `cmp`; in both cases the word is unchanged (the kernel has changed it
 *   before it finds an unknown comparison). Or: shared words with `WW_NUMA` or `WW_MPOL`.
 * - `EINVAL`: unknown flags; `oparg` or `cmparg` wider than the word; a misaligned address; with `WW_NUMA`,
 *   a node that does not exist.
 * - `EFAULT`: `uaddr2` is NULL, or `uaddr` is and the words are shared.
 *
 * Does not block. Async-signal-safe, as `ww_futex_wake`. After FUTEX_WAKE_OP (Linux 2.6.14), with
 * operands as wide as the word.
 *
 * # Safety
 * `uaddr2` is NULL or a word as `ww_futex_wait` wants it, and `uaddr` as `ww_futex_wake` does.
 */
long ww_futex_wake_op(void *uaddr,
                      int nr,
                      void *uaddr2,
                      int nr2,
                      unsigned int op,
                      uint64_t oparg,
                      unsigned int cmp,
                      uint64_t cmparg,
                      unsigned int flags);

/**
 * futex(2) with its own arguments and answers, on 32-bit words.
 *
 * `op` is one of linux/futex.h's `FUTEX_*`. With `FUTEX_PRIVATE_FLAG`, WAIT, WAKE, REQUEUE, CMP_REQUEUE,
 * WAKE_OP, WAIT_BITSET and WAKE_BITSET work on this process's own table, where they meet the waiters of
 * `ww_futex_wait` with `WW_SIZE_U32 | WW_PRIVATE`. All else, shared words and priority inheritance, goes to
 * the kernel untouched; a private word must not be used by both kinds.
 *
 * As futex(2) has it, `timeout` is relative for FUTEX_WAIT and absolute for FUTEX_WAIT_BITSET, and is a
 * number, `val2`, for REQUEUE, CMP_REQUEUE and WAKE_OP: write `WW_VAL2(n)`. FUTEX_WAKE with count 0
 * wakes one.
 *
 * Returns what futex(2) returns, or -1 with futex(2)'s errno: `EAGAIN`, `ETIMEDOUT`, `EINTR`, `EINVAL`,
 * `EFAULT`, `ENOSYS`, and for priority inheritance whatever the kernel says. FUTEX_WAKE_OP with an
 * unknown comparison is `ENOSYS` before the word is changed, not after.
 *
 * WAIT and WAIT_BITSET block (and the kernel's own LOCK_PI and WAIT_REQUEUE_PI); none is a cancellation
 * point. The others do not block, and are async-signal-safe as `ww_futex_wake` is.
 *
 * # Safety
 * As for futex(2): `uaddr`, `timeout` and `uaddr2` are what `op` takes them for, or NULL where it
 * allows that; the words are changed by atomic operations only.
 */
long ww_futex(void *uaddr,
              int op,
              uint32_t val,
              const struct timespec *timeout,
              void *uaddr2,
              uint32_t val3);

/**
 * How many buckets the process's table of private waiters has now; 0 before the first wait.
 *
 * Does not block. Async-signal-safe.
 */
size_t ww_table_buckets(void);

/**
 * Sees to it that the table has at least this many buckets, so that no thread has to make it grow later.
 *
 * Returns how many there are then. About one for each thread that waits at the same time is right, and the
 * table grows towards that by itself; it never shrinks. The environment variable `WAITWORD_BUCKETS` says
 * how many it starts with.
 *
 * Errors:
 * - `ENOMEM`: memory is short; the table stays as it was, and goes on working.
 *
 * May block for a moment while another thread changes the table. Not async-signal-safe.
 */
long ww_table_reserve(size_t buckets);

/**
 * How many bytes of address space the table, the smaller ones that it has replaced, and the memory that
 * threads sleep on take.
 *
 * Does not block. Async-signal-safe.
 */
size_t ww_table_mapped_bytes(void);

/**
 * How long a private wait spins before it sleeps, in nanoseconds; 0 if it sleeps at once.
 *
 * By default about as long as a sleep and a wake-up cost. Set by the environment variable
 * `WAITWORD_SPIN_NS` or by `ww_set_spin_budget_ns`. Does not block.
 */
uint64_t ww_spin_budget_ns(void);

/**
 * Sets how long a private wait spins before it sleeps, in nanoseconds, for all threads of this process
 * from their next wait on; 0 sleeps at once. More than a second is taken as a second. Does not block.
 */
void ww_set_spin_budget_ns(uint64_t nanoseconds);

/**
 * The version of the library that the program runs with, in the form of `WW_VERSION` (that of the
 * header it was compiled with): major * 1000000 + minor * 1000 + patch.
 */
unsigned int ww_version(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* WAITWORD_H */
