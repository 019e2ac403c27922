/*
 * waitword: futexes of 8, 16, 32 and 64 bits in user space, and the locks that stand on them: mutexes,
 * condition variables, semaphores and more; private and process-shared.
 *
 * THE FUTEXES
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
 * THE LOCKS
 *
 * ww_mutex_t and the other types that end in _t have pthread's functions, arguments and error numbers, under
 * other names, and in a fraction of the size. Where they differ, the function says so.
 *
 * Making one. By a static initialiser (WW_MUTEX_INITIALIZER), or by init, which takes flags where pthread's
 * takes an attribute object: ww_mutex_init(&mutex, WW_MUTEX_RECURSIVE | WW_PROCESS_SHARED). The static
 * initialiser of a default object is all zeros, so one in calloc'ed memory is made already (barriers apart). An object
 * may not be copied or moved once it is in use. Nothing is allocated, and nothing has to be freed.
 *
 * Errors. A lock's function returns 0, or the error number, and leaves errno alone. NULL and misaligned
 * pointers to locks are EINVAL. Unknown flags are EINVAL. Signal handlers end no wait but those of ww_sem_t, with
 * EINTR, as POSIX has it.
 *
 * Times are absolute, struct timespec: by CLOCK_REALTIME in the timed functions, by CLOCK_REALTIME or
 * CLOCK_MONOTONIC in the clock functions; any other clock is EINVAL. Seconds below 0 have passed (ETIMEDOUT).
 * Nanoseconds that are not below 10^9 are EINVAL; but of a call that need not wait the time is not looked
 * at (of ww_cond and ww_barrier it always is). No wait ends early on account of its time.
 *
 * Scope. An object is private unless it was made with WW_PROCESS_SHARED. (Of futex words it is the other
 * way round: they are shared unless the call says WW_PRIVATE.)
 *
 * No lock's function is a cancellation point, and no thread may be cancelled asynchronously, or leave a signal
 * handler by siglongjmp, in one.
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

/* The flags of the locks, for debuggers; they are macros too, below. */
enum ww_scope_flag {
    WW_PROCESS_PRIVATE = 0,
    WW_PROCESS_SHARED = 256
};
enum ww_mutex_flag {
    WW_MUTEX_NORMAL = 0,
    WW_MUTEX_RECURSIVE = 1,
    WW_MUTEX_ERRORCHECK = 2,
    WW_MUTEX_ADAPTIVE = 0,
    WW_MUTEX_THROUGHPUT = 16,
    WW_MUTEX_WAIT_WAKE = 32,
    WW_MUTEX_PRIO_INHERIT = 48
};
enum ww_rwlock_flag {
    WW_RWLOCK_PREFER_READER = 0,
    WW_RWLOCK_PREFER_WRITER = 1
};
enum ww_event_flag {
    WW_EVENT_SET = 1
};

/* Static initialisers, the same as the init functions with the same flags. flags, value and count are not checked:
 * those that init refuses make an object that does not work. */
#define WW_MUTEX_INITIALIZER { { 0, 0 } }
#define WW_RECURSIVE_MUTEX_INITIALIZER WW_MUTEX_INITIALIZER_WITH(WW_MUTEX_RECURSIVE)
#define WW_ERRORCHECK_MUTEX_INITIALIZER WW_MUTEX_INITIALIZER_WITH(WW_MUTEX_ERRORCHECK)
#define WW_THROUGHPUT_MUTEX_INITIALIZER WW_MUTEX_INITIALIZER_WITH(WW_MUTEX_THROUGHPUT)
#define WW_WAIT_WAKE_MUTEX_INITIALIZER WW_MUTEX_INITIALIZER_WITH(WW_MUTEX_WAIT_WAKE)
#define WW_PRIO_INHERIT_MUTEX_INITIALIZER WW_MUTEX_INITIALIZER_WITH(WW_MUTEX_PRIO_INHERIT)
#define WW_MUTEX_INITIALIZER_WITH(flags) { { WW_MUTEX_WORD_(flags), WW_MUTEX_DATA_(flags) } }
#define WW_COND_INITIALIZER { { 0, 0 } }
#define WW_ROBUST_MUTEX_INITIALIZER { { 0, 0, 0, 0, 0 } }
#define WW_RWLOCK_INITIALIZER { 0 }
#define WW_WRITER_RWLOCK_INITIALIZER WW_RWLOCK_INITIALIZER_WITH(WW_RWLOCK_PREFER_WRITER)
#define WW_RWLOCK_INITIALIZER_WITH(flags) { ((flags) & 0x1ull) << 8 | ((flags) & 0x100ull) << 1 }
#define WW_SEM_INITIALIZER(value) { (value) & 0xffffffffu }
#define WW_BARRIER_INITIALIZER(count) { 0, { (count) & 0xffffffffu, 0 } }
#define WW_LATCH_INITIALIZER(count) { (count) & 0xffffffffu }
#define WW_EVENT_INITIALIZER { 0 }
#define WW_AUTO_EVENT_INITIALIZER { 0 }
#define WW_ONCE_INIT { 0 }

/* Of the macros above; not for you. */
#define WW_MUTEX_INHERITS_(flags) (((flags) & 0x30u) == WW_MUTEX_PRIO_INHERIT)
#define WW_MUTEX_OWNED_(flags) (((flags) & 0xfu) != 0 || WW_MUTEX_INHERITS_(flags))
#define WW_MUTEX_WORD_(flags)                                                                            \
    (!WW_MUTEX_OWNED_(flags) ? 0u                                                                        \
                             : 0x8u | ((flags) & 0xfu) << 5 | ((flags) & 0x100u) >> 1 |                  \
                                   (WW_MUTEX_INHERITS_(flags) ? 0x10u : 0u))
#define WW_MUTEX_DATA_(flags)                                                                            \
    (WW_MUTEX_INHERITS_(flags) ? 0u                                                                      \
                               : ((flags) & 0x30u) << 26 |                                               \
                                     (WW_MUTEX_OWNED_(flags) ? 0u : ((flags) & 0x100u) << 21))

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
 * Flag for the `init` of every lock: only threads of this process use the object. (0, the default.)
 */
#define WW_PROCESS_PRIVATE 0

/**
 * Flag for the `init` of every lock: the object lies in memory that several processes map, and threads of all of them
 * use it.
 */
#define WW_PROCESS_SHARED 256

/**
 * Kind of a mutex, for `ww_mutex_init`: a second lock by its holder waits for ever; who unlocks is not checked. (0, the
 * default.)
 */
#define WW_MUTEX_NORMAL 0

/**
 * Kind of a mutex: a second lock by its holder succeeds, and as many unlocks are needed; an unlock by another thread is
 * `EPERM`.
 */
#define WW_MUTEX_RECURSIVE 1

/**
 * Kind of a mutex: a second lock by its holder is `EDEADLK`, an unlock by another thread `EPERM`.
 */
#define WW_MUTEX_ERRORCHECK 2

/**
 * Flavour of a mutex, for `ww_mutex_init`: chooses for itself, from what it observes, whether to spin, to sleep, and to
 * hand over. (0, the default, and the one to use unless a measurement says otherwise.)
 */
#define WW_MUTEX_ADAPTIVE 0

/**
 * Flavour of a mutex: a running thread may take it past sleepers, waiters stay awake for some µs, and a thread
 * that has waited long is handed it.
 */
#define WW_MUTEX_THROUGHPUT 16

/**
 * Flavour of a mutex: waiters sleep at once. For sections that are long or sleep. A waiter may be passed over without
 * bound.
 */
#define WW_MUTEX_WAIT_WAKE 32

/**
 * Flavour of a mutex: whoever holds it runs with the priority of whoever waits for it, and it is handed over in the order
 * of priorities, by the kernel. For real-time threads; slow for all others.
 */
#define WW_MUTEX_PRIO_INHERIT 48

/**
 * Preference of a reader/writer lock, for `ww_rwlock_init`: a reader waits only while somebody writes, so a thread may
 * read several times at once. (0, the default.) After glibc's `PTHREAD_RWLOCK_PREFER_READER_NP`.
 */
#define WW_RWLOCK_PREFER_READER 0

/**
 * Preference of a reader/writer lock: a reader waits also while a writer waits. After glibc's
 * `PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP`.
 */
#define WW_RWLOCK_PREFER_WRITER 1

/**
 * Flag for `ww_event_init` and `ww_auto_event_init`: the event is set to begin with.
 */
#define WW_EVENT_SET 1

/**
 * What `ww_barrier_wait` returns to one thread of each round, as `PTHREAD_BARRIER_SERIAL_THREAD`.
 */
#define WW_BARRIER_SERIAL_THREAD -1

/**
 * The highest value of a semaphore.
 */
#define WW_SEM_VALUE_MAX 2147483647

/**
 * The highest count of a barrier.
 */
#define WW_BARRIER_COUNT_MAX 2147483647

/**
 * The highest count of a latch.
 */
#define WW_LATCH_COUNT_MAX 1073741823

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

/**
 * A mutex: 8 bytes, all zero when it is free, private, normal and adaptive. `WW_MUTEX_INITIALIZER`, or `ww_mutex_init`.
 *
 * It may be destroyed, freed or unmapped by whoever locked and unlocked it last, also while the unlock before that is
 * still returning. None of its functions is for signal handlers. After `fork` the child's copy is held if the
 * parent's was; the child may unlock what the forking thread held, unless it keeps its owner (recursive, error-checking,
 * priority-inheriting), since the child's thread is another one. If a process is killed while it holds a shared one, it stays held;
 * a `ww_robust_mutex_t` does not.
 */
struct ww_mutex {
    /**
     * Not for you.
     */
    uint32_t words_[2];
};

/**
 * A mutex.
 */
typedef struct ww_mutex ww_mutex_t;

/**
 * A condition variable: 16 bytes, all zero when it is private and nobody waits. `WW_COND_INITIALIZER`, or `ww_cond_init`.
 *
 * It works with any `ww_mutex_t`, of the same scope; all who wait at one time do so with the same
 * mutex. Threads are signalled in the order in which they came. A signal or broadcast that finds
 * the mutex held wakes nobody: it moves the waiters to the mutex, whose unlocks wake them one by
 * one. (Of shared ones the kernel does the moving, as far as it can. With a priority-inheriting
 * mutex each signal wakes, the highest priority first.)
 *
 * A private one may be freed as soon as everybody has been signalled; a shared one only after `ww_cond_destroy`. None of its
 * functions is for signal handlers. In a child of `fork` nobody waits.
 */
struct ww_cond {
    /**
     * Not for you.
     */
    uint64_t words_[2];
};

/**
 * A condition variable.
 */
typedef struct ww_cond ww_cond_t;

/**
 * A robust mutex: 40 bytes, all zero when it is free and normal. `WW_ROBUST_MUTEX_INITIALIZER`, or `ww_robust_mutex_init`.
 *
 * Whoever holds one may die: its process is killed, or its thread ends without unlocking. Then the next to lock it is told
 * `EOWNERDEAD`, holds it, repairs what it protects, and says so by `ww_robust_mutex_consistent`. If it unlocks without that,
 * nobody can lock it any more (`ENOTRECOVERABLE`).
 *
 * It may lie in memory that several processes map, or not; there is no difference. It stays where it is, mapped, while
 * anybody holds it: the thread that does is known to the kernel by a list that leads through it. It works with a process-shared
 * `ww_cond_t` (`ww_cond_wait_robust`). None of its functions is for signal handlers. A forked child holds none of its parent's.
 */
struct ww_robust_mutex {
    /**
     * Not for you.
     */
    uint64_t words_[5];
};

/**
 * A robust mutex.
 */
typedef struct ww_robust_mutex ww_robust_mutex_t;

/**
 * A reader/writer lock: 8 bytes, all zero when it is free, private, and prefers readers. `WW_RWLOCK_INITIALIZER`,
 * `WW_WRITER_RWLOCK_INITIALIZER`, or `ww_rwlock_init`.
 *
 * Neither readers nor writers starve under either preference: whoever has waited for about a millisecond asks for a turn. Many
 * readers on many CPUs do not hinder each other: a lock that is mostly read becomes one whose readers do not touch it.
 *
 * It may be destroyed, freed or unmapped by whoever locked and unlocked it last. None of its functions is for signal
 * handlers. After `fork` the child's copy is held as the parent's was. If a process is killed while it holds a shared one, it stays
 * held.
 */
struct ww_rwlock {
    /**
     * Not for you.
     */
    uint64_t word_;
};

/**
 * A reader/writer lock.
 */
typedef struct ww_rwlock ww_rwlock_t;

/**
 * A semaphore: 8 bytes, all zero when it is private and its value 0. `WW_SEM_INITIALIZER(value)`, or `ww_sem_init`.
 *
 * Once a wait has returned the semaphore may be freed, also while the post that it took is still returning. Posts and trywaits
 * may be made from signal handlers. A forked child has a copy with the same value, and nobody waits there.
 *
 * All its functions return 0 or an error number, where `sem_t`'s return -1 and set `errno`.
 */
struct ww_sem {
    /**
     * Not for you.
     */
    uint64_t word_;
};

/**
 * A semaphore.
 */
typedef struct ww_sem ww_sem_t;

/**
 * A barrier: 16 bytes. `WW_BARRIER_INITIALIZER(count)`, or `ww_barrier_init`.
 *
 * What any of the threads did before the barrier is visible to all of them after it. A private one may be freed as soon as any thread has
 * come back from the last round; a shared one only after `ww_barrier_destroy`. None of its functions is for signal handlers. A forked
 * child's copy of a private one begins its round anew.
 */
struct ww_barrier {
    /**
     * Not for you.
     */
    uint64_t state_;
    /**
     * Not for you.
     */
    uint32_t words_[2];
};

/**
 * A barrier.
 */
typedef struct ww_barrier ww_barrier_t;

/**
 * A latch: 4 bytes, all zero when it is private and open. `WW_LATCH_INITIALIZER(count)`, or `ww_latch_init`.
 *
 * What a thread did before it counted down is visible to all whose wait has returned. Once all waits have returned the latch may be
 * freed, also while a `ww_latch_count_down` is still returning. Counting down and `ww_latch_trywait` may be done from signal
 * handlers. After C++20's `std::latch`.
 */
struct ww_latch {
    /**
     * Not for you.
     */
    uint32_t word_;
};

/**
 * A latch.
 */
typedef struct ww_latch ww_latch_t;

/**
 * An event that stays set until it is reset: 8 bytes, all zero when it is private and not set. `WW_EVENT_INITIALIZER`, or
 * `ww_event_init`.
 *
 * What a thread did before a set is visible to whoever passes. Once all waits have returned the event may be freed, also while a set is
 * still returning. After Windows' manual-reset event.
 */
struct ww_event {
    /**
     * Not for you.
     */
    uint64_t word_;
};

/**
 * An event that stays set until it is reset.
 */
typedef struct ww_event ww_event_t;

/**
 * An event that resets itself, with each set letting one thread pass: 8 bytes, all zero when it is private and not set.
 * `WW_AUTO_EVENT_INITIALIZER`, or `ww_auto_event_init`.
 *
 * What a thread did before a set is visible to whoever passes next. Once all waits have returned the event may be freed, also while a set
 * is still returning. After Windows' auto-reset event.
 */
struct ww_auto_event {
    /**
     * Not for you.
     */
    uint64_t word_;
};

/**
 * An event that resets itself.
 */
typedef struct ww_auto_event ww_auto_event_t;

/**
 * Something that is done once: 4 bytes, all zero before it has been done. `WW_ONCE_INIT`.
 *
 * For the threads of one process. If a process forks while another of its threads is at it, the child's next call does it anew.
 */
struct ww_once_flag {
    /**
     * Not for you.
     */
    uint32_t word_;
};

/**
 * Something that is done once.
 */
typedef struct ww_once_flag ww_once_t;

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
 * neighbour in the same 32 bits. So that none is lost it wakes all who wait there: their waits may end for no reason. Where nothing says
 * that the wake was its own, and such wakes come thick and fast, its wait may go on for some milliseconds before it does,
 * 100 at most; if its process is killed meanwhile, the neighbour's wake is lost. Several who wait so in loops for words in the same
 * 32 bits may be woken some thousand times a second once one of them was, though nothing happens.
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
 * `op` is one of linux/futex.h's `FUTEX_*`. With `FUTEX_PRIVATE_FLAG`, WAIT, WAKE, REQUEUE,
 * CMP_REQUEUE, WAKE_OP, WAIT_BITSET and WAKE_BITSET work on this process's own table, where they
 * meet the waiters of `ww_futex_wait` with `WW_SIZE_U32 | WW_PRIVATE`. All else, shared words and
 * priority inheritance, goes to the kernel. On a private word an operation of one kind that finds
 * a waiter of the other is `EINVAL`, as in the kernel.
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
 * Makes a free mutex. `flags`: a kind, a flavour and a scope, each 0 if left out: `WW_MUTEX_RECURSIVE` or
 * `WW_MUTEX_ERRORCHECK`, with `WW_MUTEX_THROUGHPUT`, `WW_MUTEX_WAIT_WAKE` or `WW_MUTEX_PRIO_INHERIT`, with
 * `WW_PROCESS_SHARED`.
 *
 * A static one needs no call: `WW_MUTEX_INITIALIZER`, or `WW_MUTEX_INITIALIZER_WITH(flags)`.
 *
 * Errors:
 * - `EINVAL`: `mutex` is NULL or misaligned; unknown flags.
 *
 * Does not block. Nothing is allocated. After `pthread_mutex_init`, with flags in place of attribute objects.
 *
 * # Safety
 * `mutex` is NULL or memory for a mutex that nobody uses.
 */
int ww_mutex_init(ww_mutex_t *mutex,
                  unsigned int flags);

/**
 * Says that the mutex will not be used any more: later calls give `EINVAL`, where that can be seen, until it is made
 * anew. Nothing else needs to be done for a mutex, and its memory may as well be freed without this.
 *
 * Errors:
 * - `EBUSY`: somebody holds it or waits for it.
 * - `EINVAL`: NULL or misaligned; destroyed already.
 *
 * Does not block. After `pthread_mutex_destroy`.
 *
 * # Safety
 * `mutex` is NULL or a mutex.
 */
int ww_mutex_destroy(ww_mutex_t *mutex);

/**
 * Locks the mutex, and waits for that as long as it takes. Signal handlers do not end the wait.
 *
 * Errors:
 * - `EDEADLK`: error-checking or priority-inheriting, and the caller holds it; priority-inheriting, and holders would wait for each
 *   other in a ring.
 * - `EAGAIN`: recursive, and locked 65,536 times.
 * - `EINVAL`: NULL or misaligned; destroyed.
 * - Priority-inheriting only: `ESRCH`, its holder has ended without unlocking it; `ENOMEM`; `ENOSYS`.
 *
 * Blocks. Not a cancellation point. After `pthread_mutex_lock`.
 *
 * # Safety
 * `mutex` is NULL or a mutex.
 */
int ww_mutex_lock(ww_mutex_t *mutex);

/**
 * Locks the mutex if that needs no waiting.
 *
 * Errors:
 * - `EBUSY`: somebody holds it, or one that is not recursive is the caller's own.
 * - `EAGAIN`, `EINVAL` and what the kernel says: as `ww_mutex_lock`.
 *
 * Does not block. After `pthread_mutex_trylock`.
 *
 * # Safety
 * `mutex` is NULL or a mutex.
 */
int ww_mutex_trylock(ww_mutex_t *mutex);

/**
 * Locks the mutex, and waits for that no longer than to `abs_timeout`, an absolute time on `CLOCK_REALTIME`.
 *
 * `ww_mutex_clocklock` with that clock, in all else.
 *
 * # Safety
 * `mutex` is NULL or a mutex, `abs_timeout` NULL or a time.
 */
int ww_mutex_timedlock(ww_mutex_t *mutex,
                       const struct timespec *abs_timeout);

/**
 * Locks the mutex, and waits for that no longer than to `abs_timeout`, an absolute time on `clock` (`CLOCK_MONOTONIC` or
 * `CLOCK_REALTIME`). The time is looked at only if the call must wait: what can be had at once is had, late or not.
 *
 * Errors:
 * - `ETIMEDOUT`: the time came first.
 * - `EINVAL`: another clock; the call would wait and `abs_timeout` is NULL or its nanoseconds are not below 10^9.
 * - as `ww_mutex_lock`.
 *
 * Blocks. Not a cancellation point. After `pthread_mutex_clocklock` (POSIX 2024).
 *
 * # Safety
 * `mutex` is NULL or a mutex, `abs_timeout` NULL or a time.
 */
int ww_mutex_clocklock(ww_mutex_t *mutex,
                       int clock,
                       const struct timespec *abs_timeout);

/**
 * Unlocks the mutex.
 *
 * Errors:
 * - `EPERM`: recursive, error-checking or priority-inheriting, and the caller does not hold it. (Of others the caller must
 *   hold it, or have agreed with the thread that does; that is not checked.)
 * - `EINVAL`: NULL or misaligned; destroyed.
 *
 * Does not block. After `pthread_mutex_unlock`.
 *
 * # Safety
 * `mutex` is NULL or a mutex; a normal one is held, and the holder has no more to do with it.
 */
int ww_mutex_unlock(ww_mutex_t *mutex);

/**
 * Unlocks the mutex and gives it to the thread that has waited longest, if any waits, instead of letting a running one take it
 * first. Nobody has it while that thread wakes up, so this is for rare use. A priority-inheriting one is always
 * given so (by priority), a process-shared one never: there it is `ww_mutex_unlock`.
 *
 * Errors: as `ww_mutex_unlock`.
 *
 * Does not block. After WebKit's `Lock::unlockFairly`.
 *
 * # Safety
 * As for `ww_mutex_unlock`.
 */
int ww_mutex_unlock_fair(ww_mutex_t *mutex);

/**
 * Gives the mutex to the thread that has waited longest, and takes it again behind that; does nothing if nobody waits. For a
 * holder that has held it for long and will go on. What it protects may have changed when this returns. A mutex that is
 * recursive, error-checking or priority-inheriting keeps its owner, and nothing is done.
 *
 * Errors:
 * - `EINVAL`: NULL or misaligned.
 *
 * Blocks. Not a cancellation point.
 *
 * # Safety
 * `mutex` is NULL or a mutex that the caller holds.
 */
int ww_mutex_bump(ww_mutex_t *mutex);

/**
 * Makes a condition variable. `flags`: 0 or `WW_PROCESS_SHARED`. A static one needs no call: `WW_COND_INITIALIZER`.
 *
 * There is no attribute for a clock: `ww_cond_timedwait` is by `CLOCK_REALTIME`, `ww_cond_clockwait` by either.
 *
 * Errors:
 * - `EINVAL`: `cond` is NULL or misaligned; unknown flags.
 *
 * Does not block. Nothing is allocated. After `pthread_cond_init`.
 *
 * # Safety
 * `cond` is NULL or memory for a condition variable that nobody uses.
 */
int ww_cond_init(ww_cond_t *cond,
                 unsigned int flags);

/**
 * Makes sure that nobody uses the condition variable any more. A private one that nobody waits on needs no such call; of a shared
 * one this waits until all who have been signalled are gone.
 *
 * Errors:
 * - `EBUSY`: somebody waits on a private one.
 * - `EINVAL`: NULL or misaligned.
 *
 * Blocks, if it is shared, until those who were signalled are gone. Not a cancellation point. After `pthread_cond_destroy`.
 *
 * # Safety
 * `cond` is NULL or a condition variable.
 */
int ww_cond_destroy(ww_cond_t *cond);

/**
 * Unlocks `mutex`, waits to be signalled, and locks `mutex` again. It may also return for no reason: look at what you wait for
 * again. All who wait when a signal or broadcast is sent are found by it.
 *
 * Of a recursive mutex that is locked more than once, one level is given back: it stays locked. Signal handlers do not end the wait, or
 * end it for no reason (never with `EINTR`).
 *
 * Errors:
 * - `EPERM`: the mutex is recursive, error-checking or priority-inheriting, and the caller does not hold it.
 * - `EINVAL`: NULL or misaligned; others wait here with another mutex. The mutex is still locked then.
 * - `EDEADLK`, `ESRCH`, `ENOMEM` and what else `ww_mutex_lock` returns: the mutex is
 *   priority-inheriting, and could not be locked again. The caller does **not** hold it.
 *
 * Blocks. Not a cancellation point. After `pthread_cond_wait`.
 *
 * # Safety
 * `cond` is NULL or a condition variable, `mutex` NULL or a mutex that the caller holds. Both live until everybody has come
 * back from here.
 */
int ww_cond_wait(ww_cond_t *cond,
                 ww_mutex_t *mutex);

/**
 * `ww_cond_wait` until `abs_timeout` at the latest, an absolute time on `CLOCK_REALTIME`.
 *
 * `ww_cond_clockwait` with that clock, in all else.
 *
 * # Safety
 * As for `ww_cond_wait`; `abs_timeout` is NULL or a time.
 */
int ww_cond_timedwait(ww_cond_t *cond,
                      ww_mutex_t *mutex,
                      const struct timespec *abs_timeout);

/**
 * `ww_cond_wait` until `abs_timeout` at the latest, an absolute time on `clock` (`CLOCK_MONOTONIC` or `CLOCK_REALTIME`).
 *
 * Errors:
 * - `ETIMEDOUT`: the time came first. The mutex is locked again, and no signal was spent on the caller (of a private condition
 *   variable; of a shared one, one may have been).
 * - `EINVAL`: another clock; `abs_timeout` is NULL or its nanoseconds are not below 10^9. Nothing has been done then.
 * - as `ww_cond_wait`.
 *
 * Blocks. Not a cancellation point. After `pthread_cond_clockwait` (POSIX 2024).
 *
 * # Safety
 * As for `ww_cond_wait`; `abs_timeout` is NULL or a time.
 */
int ww_cond_clockwait(ww_cond_t *cond,
                      ww_mutex_t *mutex,
                      int clock,
                      const struct timespec *abs_timeout);

/**
 * `ww_cond_wait` with a robust mutex, on a condition variable of `WW_PROCESS_SHARED`. A broadcast wakes all who wait so.
 *
 * Errors:
 * - `EOWNERDEAD`: **the mutex is locked again**, and the caller is the first to hold it since a holder has died.
 * - `ENOTRECOVERABLE`: the mutex can never be locked again, and is not.
 * - `EPERM`: the caller does not hold the mutex.
 * - `ENOTSUP`: the condition variable is private. The mutex is still locked then.
 * - `EINVAL`: NULL or misaligned.
 *
 * Blocks. Not a cancellation point. After `pthread_cond_wait`. Do not destroy the condition variable, but make a new one, once a
 * process has been killed that waited on it.
 *
 * # Safety
 * `cond` is NULL or a condition variable, `mutex` NULL or a robust mutex. Both live until everybody has come back from here.
 */
int ww_cond_wait_robust(ww_cond_t *cond,
                        ww_robust_mutex_t *mutex);

/**
 * `ww_cond_wait_robust` until `abs_timeout` at the latest, an absolute time on `clock` (`CLOCK_MONOTONIC` or `CLOCK_REALTIME`).
 *
 * Errors:
 * - `ETIMEDOUT`: the time came first. The mutex is locked again. (`EOWNERDEAD` goes first.)
 * - `EINVAL`: another clock; `abs_timeout` is NULL or its nanoseconds are not below 10^9. Nothing has been done then.
 * - as `ww_cond_wait_robust`.
 *
 * Blocks. Not a cancellation point. After `pthread_cond_clockwait` (POSIX 2024).
 *
 * # Safety
 * As for `ww_cond_wait_robust`; `abs_timeout` is NULL or a time.
 */
int ww_cond_clockwait_robust(ww_cond_t *cond,
                             ww_robust_mutex_t *mutex,
                             int clock,
                             const struct timespec *abs_timeout);

/**
 * Signals the thread that has waited longest, if any waits. The caller may hold the mutex or not.
 *
 * Errors:
 * - `EINVAL`: NULL or misaligned.
 *
 * Does not block. After `pthread_cond_signal`.
 *
 * # Safety
 * `cond` is NULL or a condition variable.
 */
int ww_cond_signal(ww_cond_t *cond);

/**
 * Signals all threads that wait; each goes on as it gets the mutex. The caller may hold the mutex or not.
 *
 * Errors:
 * - `EINVAL`: NULL or misaligned.
 *
 * Does not block. After `pthread_cond_broadcast`.
 *
 * # Safety
 * `cond` is NULL or a condition variable.
 */
int ww_cond_broadcast(ww_cond_t *cond);

/**
 * Makes a free robust mutex. `flags`: `WW_MUTEX_RECURSIVE` or `WW_MUTEX_ERRORCHECK`, and `WW_MUTEX_PRIO_INHERIT`; `WW_PROCESS_SHARED` is
 * taken, and makes no difference.
 *
 * Errors:
 * - `EINVAL`: `mutex` is NULL or misaligned; unknown flags, or another flavour.
 *
 * Does not block. Nothing is allocated. After `pthread_mutex_init` with `PTHREAD_MUTEX_ROBUST`.
 *
 * # Safety
 * `mutex` is NULL or memory for a robust mutex that nobody uses.
 */
int ww_robust_mutex_init(ww_robust_mutex_t *mutex,
                         unsigned int flags);

/**
 * Says whether the mutex may be freed. Nothing else needs to be done for it.
 *
 * Errors:
 * - `EBUSY`: somebody holds it.
 * - `EINVAL`: NULL or misaligned.
 *
 * Does not block. After `pthread_mutex_destroy`.
 *
 * # Safety
 * `mutex` is NULL or a robust mutex.
 */
int ww_robust_mutex_destroy(ww_robust_mutex_t *mutex);

/**
 * Locks the mutex, and waits for that as long as it takes. Signal handlers do not end the wait.
 *
 * Errors:
 * - `EOWNERDEAD`: **the caller holds it**, and is the first to do so since a holder has died.
 * - `ENOTRECOVERABLE`: somebody who was told that has unlocked it without `ww_robust_mutex_consistent`.
 * - `EDEADLK`: error-checking, and the caller holds it; priority-inheriting, and it does, or holders would wait for each
 *   other in a ring.
 * - `EAGAIN`: recursive, and locked as many times as can be counted, 2^32 - 1.
 * - `ENOTSUP`: this C library or kernel has no place for it.
 * - `EINVAL`: NULL or misaligned.
 * - Priority-inheriting only: `ENOMEM`, and what the kernel says.
 *
 * Blocks. Not a cancellation point. After `pthread_mutex_lock` of a robust mutex.
 *
 * # Safety
 * `mutex` is NULL or a robust mutex, which stays where it is until it is unlocked.
 */
int ww_robust_mutex_lock(ww_robust_mutex_t *mutex);

/**
 * Locks the mutex if that needs no waiting.
 *
 * Errors:
 * - `EBUSY`: somebody holds it, or one that is not recursive is the caller's own.
 * - `EOWNERDEAD` (the caller holds it) and the others but `EDEADLK`: as `ww_robust_mutex_lock`.
 *
 * Does not block. After `pthread_mutex_trylock` of a robust mutex.
 *
 * # Safety
 * As for `ww_robust_mutex_lock`.
 */
int ww_robust_mutex_trylock(ww_robust_mutex_t *mutex);

/**
 * Locks the mutex, and waits for that no longer than to `abs_timeout`, an absolute time on `CLOCK_REALTIME`.
 *
 * `ww_robust_mutex_clocklock` with that clock, in all else.
 *
 * # Safety
 * As for `ww_robust_mutex_lock`; `abs_timeout` is NULL or a time.
 */
int ww_robust_mutex_timedlock(ww_robust_mutex_t *mutex,
                              const struct timespec *abs_timeout);

/**
 * Locks the mutex, and waits for that no longer than to `abs_timeout`, an absolute time on `clock` (`CLOCK_MONOTONIC` or
 * `CLOCK_REALTIME`). The time is looked at only if the call must wait.
 *
 * Errors:
 * - `ETIMEDOUT`: the time came first.
 * - `EINVAL`: another clock; the call would wait and `abs_timeout` is NULL or its nanoseconds are not below 10^9.
 * - `EOWNERDEAD` (the caller holds it) and the others: as `ww_robust_mutex_lock`.
 *
 * Blocks. Not a cancellation point. After `pthread_mutex_clocklock` of a robust mutex.
 *
 * # Safety
 * As for `ww_robust_mutex_lock`; `abs_timeout` is NULL or a time.
 */
int ww_robust_mutex_clocklock(ww_robust_mutex_t *mutex,
                              int clock,
                              const struct timespec *abs_timeout);

/**
 * Unlocks the mutex. If the caller was told that a holder had died, and has not said since that what was left behind is repaired, nobody
 * can lock it any more.
 *
 * Errors:
 * - `EPERM`: the caller does not hold it.
 * - `EINVAL`: NULL or misaligned.
 *
 * Does not block. After `pthread_mutex_unlock` of a robust mutex.
 *
 * # Safety
 * `mutex` is NULL or a robust mutex. If the caller's thread number stands in it, the caller has
 * locked it. (A thread that has ended may have had that number, and left the mutex locked: it held
 * more than 2048 robust mutexes, or held this one in a process of which this one is a fork.)
 */
int ww_robust_mutex_unlock(ww_robust_mutex_t *mutex);

/**
 * Says that what the mutex protects has been repaired after a holder's death. The caller goes on to hold it.
 *
 * Errors:
 * - `EINVAL`: NULL or misaligned; the caller does not hold it, or there was no death.
 *
 * Does not block. After `pthread_mutex_consistent`.
 *
 * # Safety
 * `mutex` is NULL or a robust mutex.
 */
int ww_robust_mutex_consistent(ww_robust_mutex_t *mutex);

/**
 * Makes a free lock. `flags`: `WW_RWLOCK_PREFER_WRITER` if it is to prefer writers, `WW_PROCESS_SHARED`. A static one needs no
 * call: `WW_RWLOCK_INITIALIZER`, `WW_WRITER_RWLOCK_INITIALIZER`.
 *
 * Errors:
 * - `EINVAL`: `rwlock` is NULL or misaligned; unknown flags.
 *
 * Does not block. Nothing is allocated. After `pthread_rwlock_init`.
 *
 * # Safety
 * `rwlock` is NULL or memory for a lock that nobody uses.
 */
int ww_rwlock_init(ww_rwlock_t *rwlock,
                   unsigned int flags);

/**
 * Says whether the lock may be freed. Nothing else needs to be done for it.
 *
 * Errors:
 * - `EBUSY`: somebody holds it or waits for it.
 * - `EINVAL`: NULL or misaligned.
 *
 * Does not block. After `pthread_rwlock_destroy`.
 *
 * # Safety
 * `rwlock` is NULL or a lock.
 */
int ww_rwlock_destroy(ww_rwlock_t *rwlock);

/**
 * Locks it for reading, and waits for that as long as it takes: while somebody writes; with `WW_RWLOCK_PREFER_WRITER` also
 * while a writer waits. Signal handlers do not end the wait.
 *
 * A thread may read several times at once, and unlocks as often. With `WW_RWLOCK_PREFER_WRITER` it must not: it would wait
 * for ever if a writer had begun to wait in between.
 *
 * Errors:
 * - `EDEADLK`: the caller holds it for writing.
 * - `EAGAIN`: as many readers hold it as can be counted, 2^31 - 1.
 * - `EINVAL`: NULL or misaligned.
 *
 * Blocks. Not a cancellation point. After `pthread_rwlock_rdlock`.
 *
 * # Safety
 * `rwlock` is NULL or a lock.
 */
int ww_rwlock_rdlock(ww_rwlock_t *rwlock);

/**
 * Locks it for reading if that needs no waiting.
 *
 * Errors:
 * - `EBUSY`: it would have to wait.
 * - `EAGAIN`: as many readers hold it as can be counted.
 * - `EINVAL`: NULL or misaligned.
 *
 * Does not block. After `pthread_rwlock_tryrdlock`.
 *
 * # Safety
 * `rwlock` is NULL or a lock.
 */
int ww_rwlock_tryrdlock(ww_rwlock_t *rwlock);

/**
 * Locks it for reading, and waits for that no longer than to `abs_timeout`, an absolute time on `CLOCK_REALTIME`.
 *
 * `ww_rwlock_clockrdlock` with that clock, in all else.
 *
 * # Safety
 * `rwlock` is NULL or a lock, `abs_timeout` NULL or a time.
 */
int ww_rwlock_timedrdlock(ww_rwlock_t *rwlock,
                          const struct timespec *abs_timeout);

/**
 * Locks it for reading, and waits for that no longer than to `abs_timeout`, an absolute time on `clock` (`CLOCK_MONOTONIC` or
 * `CLOCK_REALTIME`). The time is looked at only if the call must wait.
 *
 * Errors:
 * - `ETIMEDOUT`: the time came first.
 * - `EINVAL`: another clock; the call would wait and `abs_timeout` is NULL or its nanoseconds are not below 10^9.
 * - as `ww_rwlock_rdlock`.
 *
 * Blocks. Not a cancellation point. After `pthread_rwlock_clockrdlock` (POSIX 2024).
 *
 * # Safety
 * `rwlock` is NULL or a lock, `abs_timeout` NULL or a time.
 */
int ww_rwlock_clockrdlock(ww_rwlock_t *rwlock,
                          int clock,
                          const struct timespec *abs_timeout);

/**
 * Locks it for writing, and waits for that as long as it takes. Signal handlers do not end the wait.
 *
 * Errors:
 * - `EDEADLK`: the caller holds it for writing. (If it reads, it waits for itself for ever.)
 * - `EINVAL`: NULL or misaligned.
 *
 * Blocks. Not a cancellation point. After `pthread_rwlock_wrlock`.
 *
 * # Safety
 * `rwlock` is NULL or a lock.
 */
int ww_rwlock_wrlock(ww_rwlock_t *rwlock);

/**
 * Locks it for writing if that needs no waiting.
 *
 * Errors:
 * - `EBUSY`: somebody holds it.
 * - `EINVAL`: NULL or misaligned.
 *
 * Does not block, but may wait for a moment for readers on other CPUs to notice. After `pthread_rwlock_trywrlock`.
 *
 * # Safety
 * `rwlock` is NULL or a lock.
 */
int ww_rwlock_trywrlock(ww_rwlock_t *rwlock);

/**
 * Locks it for writing, and waits for that no longer than to `abs_timeout`, an absolute time on `CLOCK_REALTIME`.
 *
 * `ww_rwlock_clockwrlock` with that clock, in all else.
 *
 * # Safety
 * `rwlock` is NULL or a lock, `abs_timeout` NULL or a time.
 */
int ww_rwlock_timedwrlock(ww_rwlock_t *rwlock,
                          const struct timespec *abs_timeout);

/**
 * Locks it for writing, and waits for that no longer than to `abs_timeout`, an absolute time on `clock` (`CLOCK_MONOTONIC` or
 * `CLOCK_REALTIME`). The time is looked at only if the call must wait.
 *
 * Errors:
 * - `ETIMEDOUT`: the time came first.
 * - `EINVAL`: another clock; the call would wait and `abs_timeout` is NULL or its nanoseconds are not below 10^9.
 * - as `ww_rwlock_wrlock`.
 *
 * Blocks. Not a cancellation point. After `pthread_rwlock_clockwrlock` (POSIX 2024).
 *
 * # Safety
 * `rwlock` is NULL or a lock, `abs_timeout` NULL or a time.
 */
int ww_rwlock_clockwrlock(ww_rwlock_t *rwlock,
                          int clock,
                          const struct timespec *abs_timeout);

/**
 * Gives back what the caller holds, for reading or for writing.
 *
 * Errors:
 * - `EPERM`: nobody holds it. (That it is the caller who does is not checked.)
 * - `EINVAL`: NULL or misaligned.
 *
 * Does not block. After `pthread_rwlock_unlock`.
 *
 * # Safety
 * `rwlock` is NULL or a lock that the caller holds, or nobody.
 */
int ww_rwlock_unlock(ww_rwlock_t *rwlock);

/**
 * Locks it upgradably: readers may hold it at the same time, but no writer and nobody else upgradably. For a thread that reads
 * and may then want to write without anybody's writing in between (`ww_rwlock_upgrade`). Waits as long as it takes; signal
 * handlers do not end the wait.
 *
 * Errors:
 * - `EINVAL`: NULL or misaligned.
 *
 * Blocks. Not a cancellation point. A thread that holds the lock upgradably or for writing waits for itself for ever.
 *
 * # Safety
 * `rwlock` is NULL or a lock.
 */
int ww_rwlock_upgradable_lock(ww_rwlock_t *rwlock);

/**
 * Locks it upgradably if that needs no waiting.
 *
 * Errors:
 * - `EBUSY`: it would have to wait.
 * - `EINVAL`: NULL or misaligned.
 *
 * Does not block.
 *
 * # Safety
 * `rwlock` is NULL or a lock.
 */
int ww_rwlock_upgradable_trylock(ww_rwlock_t *rwlock);

/**
 * Locks it upgradably, and waits for that no longer than to `abs_timeout`, an absolute time on `clock` (`CLOCK_MONOTONIC` or
 * `CLOCK_REALTIME`). The time is looked at only if the call must wait.
 *
 * Errors:
 * - `ETIMEDOUT`: the time came first.
 * - `EINVAL`: another clock; NULL or misaligned; the call would wait and `abs_timeout` is NULL or its nanoseconds are not
 *   below 10^9.
 *
 * Blocks. Not a cancellation point.
 *
 * # Safety
 * `rwlock` is NULL or a lock, `abs_timeout` NULL or a time.
 */
int ww_rwlock_upgradable_clocklock(ww_rwlock_t *rwlock,
                                   int clock,
                                   const struct timespec *abs_timeout);

/**
 * Gives back what the caller holds upgradably. (`ww_rwlock_unlock` is for what is held for reading or for writing.)
 *
 * Errors:
 * - `EPERM`: nobody holds it upgradably. (That it is the caller who does is not checked.)
 * - `EINVAL`: NULL or misaligned.
 *
 * Does not block.
 *
 * # Safety
 * `rwlock` is NULL or a lock; if it is held upgradably, the caller does.
 */
int ww_rwlock_upgradable_unlock(ww_rwlock_t *rwlock);

/**
 * From holding it upgradably to holding it for writing, once the readers have left; waits for that as long as it takes. Nobody
 * writes in between.
 *
 * Errors:
 * - `EPERM`: nobody holds it upgradably. (That it is the caller who does is not checked.)
 * - `EINVAL`: NULL or misaligned.
 *
 * Blocks. Not a cancellation point.
 *
 * # Safety
 * `rwlock` is NULL or a lock; if it is held upgradably, the caller does.
 */
int ww_rwlock_upgrade(ww_rwlock_t *rwlock);

/**
 * The same if nobody reads now. After an error it is held as before.
 *
 * Errors:
 * - `EBUSY`: somebody reads.
 * - `EPERM`, `EINVAL`: as `ww_rwlock_upgrade`.
 *
 * Does not block, but may wait for a moment for readers on other CPUs to notice.
 *
 * # Safety
 * As for `ww_rwlock_upgrade`.
 */
int ww_rwlock_tryupgrade(ww_rwlock_t *rwlock);

/**
 * The same, and waits no longer than to `abs_timeout`, an absolute time on `clock` (`CLOCK_MONOTONIC` or `CLOCK_REALTIME`). The
 * time is looked at only if the call must wait. After an error it is held as before.
 *
 * Errors:
 * - `ETIMEDOUT`: the time came first.
 * - `EINVAL`: another clock; NULL or misaligned; the call would wait and `abs_timeout` is NULL or its nanoseconds are not
 *   below 10^9.
 * - `EPERM`: as `ww_rwlock_upgrade`.
 *
 * Blocks. Not a cancellation point.
 *
 * # Safety
 * As for `ww_rwlock_upgrade`; `abs_timeout` is NULL or a time.
 */
int ww_rwlock_clockupgrade(ww_rwlock_t *rwlock,
                           int clock,
                           const struct timespec *abs_timeout);

/**
 * From holding it for writing to holding it for reading. Readers come in, and nobody writes in between.
 *
 * Errors:
 * - `EPERM`: nobody holds it for writing. (That it is the caller who does is not checked.)
 * - `EINVAL`: NULL or misaligned.
 *
 * Does not block.
 *
 * # Safety
 * `rwlock` is NULL or a lock; if it is held for writing, the caller does.
 */
int ww_rwlock_downgrade(ww_rwlock_t *rwlock);

/**
 * From holding it for writing to holding it upgradably. Readers come in, and nobody writes in between.
 *
 * Errors:
 * - as `ww_rwlock_downgrade`.
 *
 * Does not block.
 *
 * # Safety
 * As for `ww_rwlock_downgrade`.
 */
int ww_rwlock_downgrade_to_upgradable(ww_rwlock_t *rwlock);

/**
 * From holding it upgradably to holding it for reading: others may have it upgradably.
 *
 * Errors:
 * - `EPERM`: nobody holds it upgradably. (That it is the caller who does is not checked.)
 * - `EINVAL`: NULL or misaligned.
 *
 * Does not block.
 *
 * # Safety
 * `rwlock` is NULL or a lock; if it is held upgradably, the caller does.
 */
int ww_rwlock_upgradable_downgrade(ww_rwlock_t *rwlock);

/**
 * Makes a semaphore of this value. `flags`: 0 or `WW_PROCESS_SHARED`. A static one needs no call: `WW_SEM_INITIALIZER(value)`.
 *
 * Errors:
 * - `EINVAL`: `sem` is NULL or misaligned; unknown flags; the value is above `WW_SEM_VALUE_MAX`.
 *
 * Does not block. Nothing is allocated. After `sem_init`.
 *
 * # Safety
 * `sem` is NULL or memory for a semaphore that nobody uses.
 */
int ww_sem_init(ww_sem_t *sem,
                unsigned int flags,
                unsigned int value);

/**
 * Does nothing, since nothing needs to be done for a semaphore. Here for symmetry.
 *
 * Errors:
 * - `EINVAL`: NULL or misaligned.
 *
 * Does not block. After `sem_destroy`.
 *
 * # Safety
 * `sem` is NULL or a semaphore.
 */
int ww_sem_destroy(ww_sem_t *sem);

/**
 * Counts down by one, and waits until that can be done.
 *
 * Errors:
 * - `EINTR`: a signal handler ran that was installed without `SA_RESTART`. Nothing has been counted; call again, unless that is what you
 *   waited for.
 * - `EINVAL`: NULL or misaligned.
 *
 * Blocks. Not a cancellation point. After `sem_wait`. If a process is killed that was just woken for a semaphore with `pshared`, others
 * look again within a second; before Linux 5.16 they sleep until the next post.
 *
 * # Safety
 * `sem` is NULL or a semaphore.
 */
int ww_sem_wait(ww_sem_t *sem);

/**
 * Counts down by one, if that needs no waiting.
 *
 * Errors:
 * - `EAGAIN`: the value is 0.
 * - `EINVAL`: NULL or misaligned.
 *
 * Does not block. Async-signal-safe. After `sem_trywait`.
 *
 * # Safety
 * `sem` is NULL or a semaphore.
 */
int ww_sem_trywait(ww_sem_t *sem);

/**
 * `ww_sem_wait` until `abs_timeout` at the latest, an absolute time on `CLOCK_REALTIME`.
 *
 * `ww_sem_clockwait` with that clock, in all else.
 *
 * # Safety
 * `sem` is NULL or a semaphore, `abs_timeout` NULL or a time.
 */
int ww_sem_timedwait(ww_sem_t *sem,
                     const struct timespec *abs_timeout);

/**
 * `ww_sem_wait` until `abs_timeout` at the latest, an absolute time on `clock` (`CLOCK_MONOTONIC` or `CLOCK_REALTIME`). The time is looked
 * at only if the call must wait.
 *
 * Errors:
 * - `ETIMEDOUT`: the time came first. Nothing has been counted.
 * - `EINTR`: a signal handler ran; in most cases also one that was installed with `SA_RESTART`.
 * - `EINVAL`: NULL or misaligned; another clock; the call would wait and `abs_timeout` is NULL or its nanoseconds are not below
 *   10^9.
 *
 * Blocks. Not a cancellation point. After `sem_clockwait` (POSIX 2024).
 *
 * # Safety
 * `sem` is NULL or a semaphore, `abs_timeout` NULL or a time.
 */
int ww_sem_clockwait(ww_sem_t *sem,
                     int clock,
                     const struct timespec *abs_timeout);

/**
 * Counts up by one, and wakes a waiter if there is any.
 *
 * Errors:
 * - `EOVERFLOW`: the value is `WW_SEM_VALUE_MAX`.
 * - `EINVAL`: NULL or misaligned.
 *
 * Does not block. Async-signal-safe. After `sem_post`.
 *
 * # Safety
 * `sem` is NULL or a semaphore.
 */
int ww_sem_post(ww_sem_t *sem);

/**
 * Counts up by `count` in one step, and wakes as many waiters, if there are so many.
 *
 * Errors:
 * - `EOVERFLOW`: the value would rise above `WW_SEM_VALUE_MAX`. It is as it was.
 * - `EINVAL`: NULL or misaligned.
 *
 * Does not block. Async-signal-safe. After C++20's `std::counting_semaphore::release`.
 *
 * # Safety
 * `sem` is NULL or a semaphore.
 */
int ww_sem_post_many(ww_sem_t *sem,
                     unsigned int count);

/**
 * Writes the value at some moment during the call to `value`: 0 if anybody waits. It may have changed before the caller sees it.
 *
 * Errors:
 * - `EINVAL`: `sem` is NULL or misaligned, or `value` is.
 *
 * Does not block. Async-signal-safe. After `sem_getvalue`.
 *
 * # Safety
 * `sem` is NULL or a semaphore, `value` NULL or an `int` that can be written.
 */
int ww_sem_getvalue(ww_sem_t *sem,
                    int *value);

/**
 * Makes a barrier for so many threads. `flags`: 0 or `WW_PROCESS_SHARED`. A static one needs no call:
 * `WW_BARRIER_INITIALIZER(count)`.
 *
 * Errors:
 * - `EINVAL`: `barrier` is NULL or misaligned; unknown flags; the count is 0 or above `WW_BARRIER_COUNT_MAX`.
 *
 * Does not block. Nothing is allocated. After `pthread_barrier_init`.
 *
 * # Safety
 * `barrier` is NULL or memory for a barrier that nobody uses.
 */
int ww_barrier_init(ww_barrier_t *barrier,
                    unsigned int flags,
                    unsigned int count);

/**
 * Waits until no thread touches the barrier any more. A private one needs no such call, and has nothing to wait for.
 *
 * Errors:
 * - `EBUSY`: threads have arrived in a round that is not complete.
 * - `EINVAL`: NULL or misaligned; all zeros.
 *
 * Blocks, if it is shared, until the others have come back from their last round. Not a cancellation point. After
 * `pthread_barrier_destroy`.
 *
 * # Safety
 * `barrier` is NULL or a barrier.
 */
int ww_barrier_destroy(ww_barrier_t *barrier);

/**
 * Waits until as many threads have arrived as the barrier is for. Then all go on, and the barrier is ready for the next round.
 *
 * Returns `WW_BARRIER_SERIAL_THREAD`, which is negative, to the last thread of each round, and 0 to the others. Signal handlers do not end the
 * wait.
 *
 * Errors:
 * - `EINVAL`: NULL or misaligned; all zeros.
 *
 * Blocks. Not a cancellation point. After `pthread_barrier_wait`.
 *
 * # Safety
 * `barrier` is NULL or a barrier.
 */
int ww_barrier_wait(ww_barrier_t *barrier);

/**
 * `ww_barrier_wait` until `abs_timeout` at the latest, an absolute time on `CLOCK_REALTIME`.
 *
 * `ww_barrier_clockwait` with that clock, in all else.
 *
 * # Safety
 * `barrier` is NULL or a barrier, `abs_timeout` NULL or a time.
 */
int ww_barrier_timedwait(ww_barrier_t *barrier,
                         const struct timespec *abs_timeout);

/**
 * `ww_barrier_wait` until `abs_timeout` at the latest, an absolute time on `clock` (`CLOCK_MONOTONIC` or `CLOCK_REALTIME`). POSIX has no such
 * call.
 *
 * Errors:
 * - `ETIMEDOUT`: the time came before the last thread. The caller does not count as having arrived any more.
 * - `EINVAL`: NULL or misaligned; all zeros; another clock; `abs_timeout` is NULL or its nanoseconds are not below 10^9.
 *
 * Blocks. Not a cancellation point.
 *
 * # Safety
 * `barrier` is NULL or a barrier, `abs_timeout` NULL or a time.
 */
int ww_barrier_clockwait(ww_barrier_t *barrier,
                         int clock,
                         const struct timespec *abs_timeout);

/**
 * Makes a latch that is to be counted down so often; 0 is open. `flags`: 0 or `WW_PROCESS_SHARED`. A static one needs no call:
 * `WW_LATCH_INITIALIZER(count)`.
 *
 * Errors:
 * - `EINVAL`: `latch` is NULL or misaligned; unknown flags; the count is above `WW_LATCH_COUNT_MAX`.
 *
 * Does not block. Nothing is allocated.
 *
 * # Safety
 * `latch` is NULL or memory for a latch that nobody uses.
 */
int ww_latch_init(ww_latch_t *latch,
                  unsigned int flags,
                  unsigned int count);

/**
 * Does nothing, since nothing needs to be done for a latch. Here for symmetry.
 *
 * Errors:
 * - `EINVAL`: NULL or misaligned.
 *
 * Does not block.
 *
 * # Safety
 * `latch` is NULL or a latch.
 */
int ww_latch_destroy(ww_latch_t *latch);

/**
 * Counts `count` off, and lets all go on who wait if nothing is left.
 *
 * Errors:
 * - `EINVAL`: NULL or misaligned; less is left than `count`. The latch is as it was.
 *
 * Does not block. Async-signal-safe.
 *
 * # Safety
 * `latch` is NULL or a latch.
 */
int ww_latch_count_down(ww_latch_t *latch,
                        unsigned int count);

/**
 * Counts one off and waits until the latch is open.
 *
 * Errors:
 * - `EINVAL`: NULL or misaligned; the latch was open already. It does not wait.
 *
 * Blocks. Not a cancellation point.
 *
 * # Safety
 * `latch` is NULL or a latch.
 */
int ww_latch_arrive_and_wait(ww_latch_t *latch);

/**
 * Waits until the latch is open. Signal handlers do not end the wait.
 *
 * Errors:
 * - `EINVAL`: NULL or misaligned.
 *
 * Blocks. Not a cancellation point.
 *
 * # Safety
 * `latch` is NULL or a latch.
 */
int ww_latch_wait(ww_latch_t *latch);

/**
 * 0 if the latch is open.
 *
 * Errors:
 * - `EAGAIN`: it is not.
 * - `EINVAL`: NULL or misaligned.
 *
 * Does not block. Async-signal-safe.
 *
 * # Safety
 * `latch` is NULL or a latch.
 */
int ww_latch_trywait(ww_latch_t *latch);

/**
 * `ww_latch_wait` until `abs_timeout` at the latest, an absolute time on `CLOCK_REALTIME`.
 *
 * `ww_latch_clockwait` with that clock, in all else.
 *
 * # Safety
 * `latch` is NULL or a latch, `abs_timeout` NULL or a time.
 */
int ww_latch_timedwait(ww_latch_t *latch,
                       const struct timespec *abs_timeout);

/**
 * `ww_latch_wait` until `abs_timeout` at the latest, an absolute time on `clock` (`CLOCK_MONOTONIC` or `CLOCK_REALTIME`). The time is
 * looked at only if the call must wait.
 *
 * Errors:
 * - `ETIMEDOUT`: the time came first.
 * - `EINVAL`: NULL or misaligned; another clock; the call would wait and `abs_timeout` is NULL or its nanoseconds are not below
 *   10^9.
 *
 * Blocks. Not a cancellation point.
 *
 * # Safety
 * `latch` is NULL or a latch, `abs_timeout` NULL or a time.
 */
int ww_latch_clockwait(ww_latch_t *latch,
                       int clock,
                       const struct timespec *abs_timeout);

/**
 * Makes an event. `flags`: `WW_EVENT_SET` if it is to be set, `WW_PROCESS_SHARED`. A static one needs no call:
 * `WW_EVENT_INITIALIZER`.
 *
 * Errors:
 * - `EINVAL`: `event` is NULL or misaligned; unknown flags.
 *
 * Does not block. Nothing is allocated.
 *
 * # Safety
 * `event` is NULL or memory for an event that nobody uses.
 */
int ww_event_init(ww_event_t *event,
                  unsigned int flags);

/**
 * Does nothing, since nothing needs to be done for an event. Here for symmetry.
 *
 * Errors:
 * - `EINVAL`: NULL or misaligned.
 *
 * Does not block.
 *
 * # Safety
 * `event` is NULL or an event.
 */
int ww_event_destroy(ww_event_t *event);

/**
 * Sets the event: all who wait at this moment go on, even if it is reset at once, and so does whoever comes while it is set.
 *
 * Errors:
 * - `EINVAL`: NULL or misaligned.
 *
 * Does not block. Async-signal-safe.
 *
 * # Safety
 * `event` is NULL or an event.
 */
int ww_event_set(ww_event_t *event);

/**
 * Makes those who come from now on wait.
 *
 * Errors:
 * - `EINVAL`: NULL or misaligned.
 *
 * Does not block. Async-signal-safe.
 *
 * # Safety
 * `event` is NULL or an event.
 */
int ww_event_reset(ww_event_t *event);

/**
 * Waits until the event is set, or was for a moment. Signal handlers do not end the wait.
 *
 * Errors:
 * - `EINVAL`: NULL or misaligned.
 *
 * Blocks. Not a cancellation point.
 *
 * # Safety
 * `event` is NULL or an event.
 */
int ww_event_wait(ww_event_t *event);

/**
 * 0 if the event is set.
 *
 * Errors:
 * - `EAGAIN`: it is not.
 * - `EINVAL`: NULL or misaligned.
 *
 * Does not block. Async-signal-safe.
 *
 * # Safety
 * `event` is NULL or an event.
 */
int ww_event_trywait(ww_event_t *event);

/**
 * `ww_event_wait` until `abs_timeout` at the latest, an absolute time on `CLOCK_REALTIME`.
 *
 * `ww_event_clockwait` with that clock, in all else.
 *
 * # Safety
 * `event` is NULL or an event, `abs_timeout` NULL or a time.
 */
int ww_event_timedwait(ww_event_t *event,
                       const struct timespec *abs_timeout);

/**
 * `ww_event_wait` until `abs_timeout` at the latest, an absolute time on `clock` (`CLOCK_MONOTONIC` or `CLOCK_REALTIME`). The time is
 * looked at only if the call must wait.
 *
 * Errors:
 * - `ETIMEDOUT`: the time came first.
 * - `EINVAL`: NULL or misaligned; another clock; the call would wait and `abs_timeout` is NULL or its nanoseconds are not below
 *   10^9.
 *
 * Blocks. Not a cancellation point.
 *
 * # Safety
 * `event` is NULL or an event, `abs_timeout` NULL or a time.
 */
int ww_event_clockwait(ww_event_t *event,
                       int clock,
                       const struct timespec *abs_timeout);

/**
 * Makes an event that resets itself. `flags`: `WW_EVENT_SET` if it is to be set, `WW_PROCESS_SHARED`. A static one needs no
 * call: `WW_AUTO_EVENT_INITIALIZER`.
 *
 * Errors:
 * - `EINVAL`: `event` is NULL or misaligned; unknown flags.
 *
 * Does not block. Nothing is allocated.
 *
 * # Safety
 * `event` is NULL or memory for an event that nobody uses.
 */
int ww_auto_event_init(ww_auto_event_t *event,
                       unsigned int flags);

/**
 * Does nothing, since nothing needs to be done for an event. Here for symmetry.
 *
 * Errors:
 * - `EINVAL`: NULL or misaligned.
 *
 * Does not block.
 *
 * # Safety
 * `event` is NULL or an event.
 */
int ww_auto_event_destroy(ww_auto_event_t *event);

/**
 * Lets one thread pass: one that waits, and each further set another; if nobody waits, the next to come. While nobody waits, further
 * sets change nothing.
 *
 * Errors:
 * - `EINVAL`: NULL or misaligned.
 *
 * Does not block. Async-signal-safe.
 *
 * # Safety
 * `event` is NULL or an event.
 */
int ww_auto_event_set(ww_auto_event_t *event);

/**
 * Takes a set back that nobody has passed by.
 *
 * Errors:
 * - `EINVAL`: NULL or misaligned.
 *
 * Does not block. Async-signal-safe.
 *
 * # Safety
 * `event` is NULL or an event.
 */
int ww_auto_event_reset(ww_auto_event_t *event);

/**
 * Waits until the event is set, passes, and has thereby reset it. Signal handlers do not end the wait.
 *
 * Errors:
 * - `EINVAL`: NULL or misaligned.
 *
 * Blocks. Not a cancellation point.
 *
 * # Safety
 * `event` is NULL or an event.
 */
int ww_auto_event_wait(ww_auto_event_t *event);

/**
 * Passes and resets the event, if it is set.
 *
 * Errors:
 * - `EAGAIN`: it is not.
 * - `EINVAL`: NULL or misaligned.
 *
 * Does not block. Async-signal-safe.
 *
 * # Safety
 * `event` is NULL or an event.
 */
int ww_auto_event_trywait(ww_auto_event_t *event);

/**
 * `ww_auto_event_wait` until `abs_timeout` at the latest, an absolute time on `CLOCK_REALTIME`.
 *
 * `ww_auto_event_clockwait` with that clock, in all else.
 *
 * # Safety
 * `event` is NULL or an event, `abs_timeout` NULL or a time.
 */
int ww_auto_event_timedwait(ww_auto_event_t *event,
                            const struct timespec *abs_timeout);

/**
 * `ww_auto_event_wait` until `abs_timeout` at the latest, an absolute time on `clock` (`CLOCK_MONOTONIC` or `CLOCK_REALTIME`). The
 * time is looked at only if the call must wait.
 *
 * Errors:
 * - `ETIMEDOUT`: the time came first.
 * - `EINVAL`: NULL or misaligned; another clock; the call would wait and `abs_timeout` is NULL or its nanoseconds are not below
 *   10^9.
 *
 * Blocks. Not a cancellation point.
 *
 * # Safety
 * `event` is NULL or an event, `abs_timeout` NULL or a time.
 */
int ww_auto_event_clockwait(ww_auto_event_t *event,
                            int clock,
                            const struct timespec *abs_timeout);

/**
 * Calls `routine` if nobody has with this `once`, or waits for whoever is at it. When this returns, what was done is visible to the
 * caller. If it is done already this is one load.
 *
 * If `routine` is left in another way than by return (a C++ exception, `pthread_exit`) it counts as not called, and one of those
 * who wait calls its own. A `routine` that calls `ww_once` with the same `once` waits for itself for ever.
 *
 * Errors:
 * - `EINVAL`: `once` is NULL or misaligned; `routine` is NULL.
 *
 * Blocks. Not a cancellation point. Not for signal handlers. After `pthread_once`.
 *
 * # Safety
 * `once` is NULL or a once; `routine` is NULL or a function that may be called.
 */
int ww_once(ww_once_t *once,
            void (*routine)(void));

/**
 * `ww_once` for a function that takes an argument. With which of several arguments, and which of several functions, it was done, is
 * decided by who came first.
 *
 * Errors:
 * - `EINVAL`: `once` is NULL or misaligned; `routine` is NULL.
 *
 * Blocks. Not a cancellation point. Not for signal handlers. After C++11's `std::call_once`.
 *
 * # Safety
 * As for `ww_once`; `argument` is what `routine` takes it for.
 */
int ww_once_call(ww_once_t *once,
                 void (*routine)(void *argument),
                 void *argument);

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
