/*
 * waitword: futexes of 8, 16, 32 and 64 bits in user space, and the locks built on them: mutexes,
 * condition variables, semaphores and more, for one process or shared between processes.
 *
 * THE FUTEXES
 *
 * A futex is a word in a program's memory. A thread that finds the word in the wrong state asks to
 * sleep until it changes (ww_futex_wait). A thread that changes the word asks to wake the sleepers
 * (ww_futex_wake). Names, arguments, their order and return values are those of Linux's futex2
 * calls; each function documents where it differs. The words are ordinary atomics of the program:
 * uint64_t with the compiler's atomic builtins, _Atomic uint64_t, std::atomic<std::uint64_t>.
 *
 * Errors. A function that returns long returns -1 on failure and sets errno; otherwise it leaves
 * errno alone. Values wider than the word are refused, not truncated.
 *
 * Words. A word is private (WW_PRIVATE) or shared, and all calls on it must agree: a private wake
 * does not find a shared waiter, nor the reverse. All calls on one word must also pass the same
 * size.
 *
 * Ordering. What a thread did before it woke another thread is visible to the woken thread. A wait
 * that fails with EAGAIN orders nothing.
 *
 * Threads. Any thread may call any function at any time. No function allocates memory, so an
 * allocator may be built on these calls. The one exception comes from glibc: if the library was
 * loaded by dlopen, a thread's first call takes its thread-local storage from malloc.
 *
 * Signal handlers. Any handler may make wakes, requeues and wake_ops (after dlopen, not as the
 * thread's first call). Handlers must not wait: a wait in a handler that has interrupted this
 * library fails with EINTR.
 *
 * fork. The child starts with an empty waiter table, whatever the other threads were doing, and may
 * use every function, even if the process has many threads. After vfork it may do as little as with
 * any other library.
 *
 * Bad addresses. A call that reads the word fails with EFAULT if the address is in the first page
 * or in the kernel's half of the address space. Any other unmapped address makes the program fault,
 * as it would in memcpy.
 *
 * THE LOCKS
 *
 * ww_mutex_t and the other types that end in _t have the functions, arguments and error numbers of
 * pthreads, under other names and in a fraction of the size. Each function documents where it
 * differs.
 *
 * Initialisation. Use a static initialiser (WW_MUTEX_INITIALIZER) or an init function. Init
 * functions take flags where pthreads take an attribute object: ww_mutex_init(&mutex,
 * WW_MUTEX_RECURSIVE | WW_PROCESS_SHARED). The static initialiser of a default object is all zeros,
 * so an object in calloc'ed memory is already initialised (except a barrier). Do not copy or move
 * an object once it is in use. Nothing is allocated, and nothing has to be freed.
 *
 * Errors. A lock function returns 0 or an error number, and leaves errno alone. (So do those of
 * ww_sem_t: code that was written for sem_t tests for -1 and errno.) NULL and misaligned pointers
 * to locks give EINVAL, and so do unknown flags. Signal handlers end no wait except those of
 * ww_sem_t, which then return EINTR as POSIX specifies.
 *
 * Times are absolute, in a struct timespec: on CLOCK_REALTIME in the timed functions, on
 * CLOCK_REALTIME or CLOCK_MONOTONIC in the clock functions. Any other clock gives EINVAL. A time
 * with negative seconds has passed (ETIMEDOUT). Nanoseconds outside [0, 10^9) give EINVAL. A call
 * that does not need to wait does not check the time (those of ww_cond and ww_barrier always do).
 * No wait times out early.
 *
 * Scope. An object is private unless it was initialised with WW_PROCESS_SHARED. (For futex words it
 * is the reverse: they are shared unless the call passes WW_PRIVATE.)
 *
 * Cancellation. No lock function is a cancellation point. A thread inside one must not be cancelled
 * asynchronously, and must not leave a signal handler by siglongjmp.
 *
 * Generated from the Rust sources: do not edit.
 */

#ifndef WAITWORD_H
#define WAITWORD_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* The version of this header (ww_version() returns the library's). Compare it in #if as
 * WW_VERSION >= major * 1000000 + minor * 1000 + patch. */
#define WW_VERSION_MAJOR 0
#define WW_VERSION_MINOR 1
#define WW_VERSION_PATCH 0
#define WW_VERSION (WW_VERSION_MAJOR * 1000000 + WW_VERSION_MINOR * 1000 + WW_VERSION_PATCH)
#define WW_VERSION_STRING "0.1.0"

/* The number that some operations of ww_futex take in place of a timeout (futex(2)'s val2). */
#define WW_VAL2(number) ((const struct timespec *)(uintptr_t)(number))

/* The C library's type; declared here for C99, whose <time.h> does not have it. */
struct timespec;

/* The lock flags as enumerations, for debuggers. Also macros, below. */
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

/* Static initialisers. Each is equivalent to the init function with the same flags. flags, value
 * and count are not checked: values that init refuses make an object that does not work. */
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

/* Used by the macros above. Private to the library. */
#define WW_MUTEX_INHERITS_(flags) (((flags) & 0x30u) == WW_MUTEX_PRIO_INHERIT)
#define WW_MUTEX_OWNED_(flags) (((flags) & 0xfu) != 0 || WW_MUTEX_INHERITS_(flags))
#define WW_MUTEX_WORD_(flags)                                                           \
    (!WW_MUTEX_OWNED_(flags) ? 0u                                                       \
                             : 0x8u | ((flags) & 0xfu) << 5 | ((flags) & 0x100u) >> 1 | \
                                   (WW_MUTEX_INHERITS_(flags) ? 0x10u : 0u))
#define WW_MUTEX_DATA_(flags)                              \
    (WW_MUTEX_INHERITS_(flags) ? 0u                        \
                               : ((flags) & 0x30u) << 26 | \
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
 * Flag: the word is followed by a node word of the same size, which holds the number of the NUMA
 * node that its waiters are queued on; -1 (all bits set) is replaced by the caller's node. The
 * pair is aligned to its own size. A shared word with this flag is passed to the kernel as it is,
 * and the kernel supports 32-bit words only (Linux 6.16).
 */
#define WW_NUMA 4

/**
 * Flag: the waiters are queued on the node given by the memory policy of the word's page. Has no
 * effect on a private word. A shared word is passed to the kernel as it is, and the kernel
 * supports 32-bit words only (Linux 6.16).
 */
#define WW_MPOL 8

/**
 * Flag: only threads of this process use the word. Its waiters are queued in the process's own
 * table, and a call that need not sleep or wake a thread makes no system call.
 */
#define WW_PRIVATE 128

/**
 * Mask of all bits of an 8-bit word. A wait with it is found by every wake; a wake with it finds
 * every waiter.
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
 * The maximum number of words that `ww_futex_waitv` waits for.
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
 * Added to an operation: the operand is `1 << oparg`, with `oparg` taken modulo the word's width.
 */
#define WW_OP_ARG_SHIFT 8

/**
 * Comparison of `ww_futex_wake_op`: `old == cmparg`. All comparisons are signed, in the word's
 * width.
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
 * Flag for the `init` function of every lock: only threads of this process use the object. (0, the
 * default.)
 */
#define WW_PROCESS_PRIVATE 0

/**
 * Flag for the `init` function of every lock: the object lies in memory that several processes
 * map, and threads of all of them use it.
 */
#define WW_PROCESS_SHARED 256

/**
 * Kind of a mutex, for `ww_mutex_init`: a second lock by its holder deadlocks, and an unlock does
 * not check which thread calls it. (0, the default.)
 */
#define WW_MUTEX_NORMAL 0

/**
 * Kind of a mutex: a second lock by its holder succeeds, and as many unlocks are needed. An unlock
 * by another thread returns `EPERM`.
 */
#define WW_MUTEX_RECURSIVE 1

/**
 * Kind of a mutex: a second lock by its holder returns `EDEADLK`, an unlock by another thread
 * `EPERM`.
 */
#define WW_MUTEX_ERRORCHECK 2

/**
 * Flavour of a mutex, for `ww_mutex_init`: it chooses from what it observes whether to spin, to
 * sleep, and to hand off. (0, the default, and the one to use unless a measurement favours
 * another.)
 */
#define WW_MUTEX_ADAPTIVE 0

/**
 * Flavour of a mutex: a running thread may barge past sleeping waiters. Waiters stay awake for
 * some µs before they sleep, and a thread that has waited long is handed the mutex.
 */
#define WW_MUTEX_THROUGHPUT 16

/**
 * Flavour of a mutex: waiters sleep at once. For critical sections that are long or sleep. There
 * is no bound on how often other threads may overtake a waiter.
 */
#define WW_MUTEX_WAIT_WAKE 32

/**
 * Flavour of a mutex: the holder runs with the priority of the threads that wait for it, and the
 * kernel hands the mutex off in the order of priorities. For real-time threads; slow for all
 * others.
 */
#define WW_MUTEX_PRIO_INHERIT 48

/**
 * Preference of a reader/writer lock, for `ww_rwlock_init`: a reader waits only while a writer
 * holds the lock, so a thread may hold several read locks at once. (0, the default.) Modelled on
 * glibc's `PTHREAD_RWLOCK_PREFER_READER_NP`.
 */
#define WW_RWLOCK_PREFER_READER 0

/**
 * Preference of a reader/writer lock: a reader also waits while a writer waits. Modelled on
 * glibc's `PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP`.
 */
#define WW_RWLOCK_PREFER_WRITER 1

/**
 * Flag for `ww_event_init` and `ww_auto_event_init`: the event is initially set.
 */
#define WW_EVENT_SET 1

/**
 * What `ww_barrier_wait` returns to one thread of each round, as `PTHREAD_BARRIER_SERIAL_THREAD`.
 */
#define WW_BARRIER_SERIAL_THREAD -1

/**
 * The maximum value of a semaphore.
 */
#define WW_SEM_VALUE_MAX 2147483647

/**
 * The maximum count of a barrier.
 */
#define WW_BARRIER_COUNT_MAX 2147483647

/**
 * The maximum count of a latch.
 */
#define WW_LATCH_COUNT_MAX 1073741823

/**
 * Event, for `ww_stats_count`: a mutex or rwlock was found held, so that the thread had to spin or
 * sleep.
 */
#define WW_STATS_CONTENDED 0

/**
 * Event: a wait for a lock, a condition variable or a private futex slept in the kernel.
 */
#define WW_STATS_SLEEPS 1

/**
 * Event: a thread was woken, or kept from falling asleep, by an unlock, a signal or a wake.
 */
#define WW_STATS_WAKES 2

/**
 * Event: a woken waiter for a mutex had to sleep again, because another thread was faster.
 */
#define WW_STATS_SLEPT_AGAIN 3

/**
 * Event: a waiter was moved from one queue to another without being woken.
 */
#define WW_STATS_REQUEUES 4

/**
 * Event: a lock was handed off to a particular waiter, so that no other thread could take it.
 */
#define WW_STATS_HAND_OFFS 5

/**
 * Event: a broadcast woke fewer threads than were waiting.
 */
#define WW_STATS_HERDS_AVOIDED 6

/**
 * Event: such a broadcast left a waiter asleep.
 */
#define WW_STATS_HERD_WAITERS 7

/**
 * A word and the value that it is expected to hold: `struct futex_waitv` of futex2.
 *
 * `reserved` must be 0.
 */
struct ww_futex_waitv {
    /**
     * The expected value. The bits above the word's width must be 0.
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
 * A mutex: 8 bytes, all zero when it is unlocked, private, normal and adaptive. Initialise it with
 * `WW_MUTEX_INITIALIZER` or `ww_mutex_init`.
 *
 * The thread that locked and unlocked it last may destroy, free or unmap it, even while the
 * previous unlock is still returning. None of its functions may be called from a signal handler.
 * After `fork`, the child's copy is locked if the parent's was. The child may unlock what the
 * forking thread held, unless the mutex records its owner (recursive, error-checking,
 * priority-inheriting), because the child's thread is a different thread. If a process is killed
 * while it holds a shared mutex, the mutex stays locked; use a `ww_robust_mutex_t` to avoid that.
 */
struct ww_mutex {
    /**
     * Private to the library.
     */
    uint32_t words_[2];
};

/**
 * A mutex.
 */
typedef struct ww_mutex ww_mutex_t;

/**
 * A condition variable: 16 bytes, all zero when it is private and has no waiters. Initialise it
 * with `WW_COND_INITIALIZER` or `ww_cond_init`.
 *
 * It works with any `ww_mutex_t` of the same scope. All threads that wait at one time must use the
 * same mutex. Threads are signalled in order of arrival. A signal or broadcast that finds the
 * mutex held wakes no thread: it moves the waiters to the mutex, and the mutex's unlocks wake them
 * one by one. (For shared condition variables the kernel moves the waiters, as far as it can. With
 * a priority-inheriting mutex each signal wakes a thread, the one with the highest priority
 * first.)
 *
 * A private one may be freed as soon as all waiters have been signalled; a shared one only after
 * `ww_cond_destroy`. None of its functions may be called from a signal handler. The copy in a
 * child of `fork` has no waiters.
 */
struct ww_cond {
    /**
     * Private to the library.
     */
    uint64_t words_[2];
};

/**
 * A condition variable.
 */
typedef struct ww_cond ww_cond_t;

/**
 * A robust mutex: 40 bytes, all zero when it is unlocked and normal. Initialise it with
 * `WW_ROBUST_MUTEX_INITIALIZER` or `ww_robust_mutex_init`.
 *
 * The holder may die: its process is killed, or its thread ends without unlocking. The next lock
 * then returns `EOWNERDEAD`, and its caller holds the mutex. It must repair the protected data and
 * then call `ww_robust_mutex_consistent`. If it unlocks without that call, the mutex can never be
 * locked again (`ENOTRECOVERABLE`).
 *
 * It may lie in private or in shared memory; there is no difference. While a thread holds it, it
 * must stay mapped at its address, because the kernel finds the mutexes of a dead thread through a
 * list that leads through each of them. It works with a process-shared `ww_cond_t`
 * (`ww_cond_wait_robust`). None of its functions may be called from a signal handler. A forked
 * child holds none of its parent's robust mutexes.
 */
struct ww_robust_mutex {
    /**
     * Private to the library.
     */
    uint64_t words_[5];
};

/**
 * A robust mutex.
 */
typedef struct ww_robust_mutex ww_robust_mutex_t;

/**
 * A reader/writer lock: 8 bytes, all zero when it is unlocked, private, and prefers readers.
 * Initialise it with `WW_RWLOCK_INITIALIZER`, `WW_WRITER_RWLOCK_INITIALIZER` or `ww_rwlock_init`.
 *
 * Neither readers nor writers starve under either preference: a thread that has waited for 0.1 to
 * 10 ms requests its turn. Many readers on many CPUs do not slow each other down: a lock that is
 * mostly read becomes biased, and its readers then no longer write to it.
 *
 * The thread that locked and unlocked it last may destroy, free or unmap it. None of its functions
 * may be called from a signal handler. After `fork`, the child's copy is held as the parent's was.
 * If a process is killed while it holds a shared lock, the lock stays held.
 */
struct ww_rwlock {
    /**
     * Private to the library.
     */
    uint64_t word_;
};

/**
 * A reader/writer lock.
 */
typedef struct ww_rwlock ww_rwlock_t;

/**
 * A semaphore: 8 bytes, all zero when it is private and its value is 0. Initialise it with
 * `WW_SEM_INITIALIZER(value)` or `ww_sem_init`.
 *
 * Once a wait has returned, the semaphore may be freed, even while the post that ended the wait is
 * still returning. Signal handlers may call the post and trywait functions. A forked child has a
 * copy with the same value and no waiters.
 *
 * All its functions return 0 or an error number, where those of `sem_t` return -1 and set `errno`.
 */
struct ww_sem {
    /**
     * Private to the library.
     */
    uint64_t word_;
};

/**
 * A semaphore.
 */
typedef struct ww_sem ww_sem_t;

/**
 * A barrier: 16 bytes. Initialise it with `WW_BARRIER_INITIALIZER(count)` or `ww_barrier_init`.
 *
 * What any of the threads did before the barrier is visible to all of them after it. A private
 * barrier may be freed as soon as one thread has returned from the last round; a shared one only
 * after `ww_barrier_destroy`. None of its functions may be called from a signal handler. In a
 * forked child, the copy of a private barrier starts its round again.
 */
struct ww_barrier {
    /**
     * Private to the library.
     */
    uint64_t state_;
    /**
     * Private to the library.
     */
    uint32_t words_[2];
};

/**
 * A barrier.
 */
typedef struct ww_barrier ww_barrier_t;

/**
 * A latch: 4 bytes, all zero when it is private and open. Initialise it with
 * `WW_LATCH_INITIALIZER(count)` or `ww_latch_init`.
 *
 * What a thread did before it counted down is visible to every thread whose wait has returned.
 * Once all waits have returned, the latch may be freed, even while a `ww_latch_count_down` is
 * still returning. Signal handlers may call `ww_latch_count_down` and `ww_latch_trywait`. Modelled
 * on C++20's `std::latch`.
 */
struct ww_latch {
    /**
     * Private to the library.
     */
    uint32_t word_;
};

/**
 * A latch.
 */
typedef struct ww_latch ww_latch_t;

/**
 * An event that stays set until it is reset: 8 bytes, all zero when it is private and not set.
 * Initialise it with `WW_EVENT_INITIALIZER` or `ww_event_init`.
 *
 * What a thread did before a set is visible to every thread that passes. Once all waits have
 * returned, the event may be freed, even while a set is still returning. Modelled on Windows'
 * manual-reset event.
 */
struct ww_event {
    /**
     * Private to the library.
     */
    uint64_t word_;
};

/**
 * An event that stays set until it is reset.
 */
typedef struct ww_event ww_event_t;

/**
 * An event that resets itself: each set lets one thread pass. 8 bytes, all zero when it is private
 * and not set. Initialise it with `WW_AUTO_EVENT_INITIALIZER` or `ww_auto_event_init`.
 *
 * What a thread did before a set is visible to the thread that passes next. Once all waits have
 * returned, the event may be freed, even while a set is still returning. Modelled on Windows'
 * auto-reset event.
 */
struct ww_auto_event {
    /**
     * Private to the library.
     */
    uint64_t word_;
};

/**
 * An event that resets itself.
 */
typedef struct ww_auto_event ww_auto_event_t;

/**
 * A one-time initialisation: 4 bytes, all zero before it has run. Initialise it with
 * `WW_ONCE_INIT`.
 *
 * For the threads of one process. If a process forks while another of its threads runs the
 * routine, the child's next call runs it again.
 */
struct ww_once_flag {
    /**
     * Private to the library.
     */
    uint32_t word_;
};

/**
 * A one-time initialisation.
 */
typedef struct ww_once_flag ww_once_t;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Sleeps while the word holds `val`, until a wake whose mask shares a bit with `mask`.
 *
 * The check of the value and the start of the sleep are one atomic step: a wake that comes after
 * the word was changed is never missed.
 *
 * `mask` is usually one of `WW_MASK_U8` to `WW_MASK_U64`. `abs_timeout` is an absolute time, in
 * seconds and nanoseconds, on `clock` (`CLOCK_MONOTONIC` or `CLOCK_REALTIME`). NULL waits without
 * a timeout, and `clock` is then ignored. The wait never times out early.
 *
 * Returns 0 once woken. A wake-up may be spurious: check the word again.
 *
 * Errors:
 * - `EAGAIN`: the word did not hold `val`.
 * - `ETIMEDOUT`: the timeout expired.
 * - `EINTR`: a signal handler ran (without a timeout, only one installed without `SA_RESTART`), or
 *   the call was made from a handler that had interrupted this library.
 * - `EINVAL`: unknown flags; `clock` or `abs_timeout` is not valid; `mask` is 0; `val` or `mask`
 *   is wider than the word; `uaddr` is misaligned; with `WW_NUMA`, the node does not exist.
 * - `EFAULT`: `uaddr` is NULL.
 * - `ENOSYS`: the word is shared and has 64 bits, and either `mask` is not `WW_MASK_U64` or the
 *   kernel is older than 5.16.
 *
 * Blocks. Not a cancellation point. Modelled on futex2's futex_wait (Linux 6.7) and
 * FUTEX_WAIT_BITSET.
 *
 * # Safety
 * `uaddr` must be NULL or a mapped word of the size in `flags` (with `WW_NUMA`, a pair of them)
 * that stays mapped during the call and is changed by atomic operations only. `abs_timeout` must
 * be NULL or point to a time.
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
 * They are woken in order of arrival, real-time threads first, by priority. `INT_MAX` wakes all, 0
 * wakes none (unlike FUTEX_WAKE, which wakes one), and a negative number wakes one, as in the
 * kernel. With `WW_PRIVATE` and no waiters, the call makes no system call. The word itself is not
 * read. The waiters of a shared 64-bit word are found by every mask.
 *
 * Returns the number of threads woken.
 *
 * Errors:
 * - `EINVAL`: unknown flags; `mask` is 0 or wider than the word; `uaddr` is misaligned; with
 *   `WW_NUMA`, the node does not exist.
 * - `EFAULT`: `uaddr` is NULL, and the word is shared or has a node word.
 *
 * Does not block. Async-signal-safe. If the call is made from a handler that has interrupted this
 * library inside one of its own short critical sections, the wake is delivered when that section
 * ends, and the call returns 0, because the number is not known yet. Modelled on futex2's
 * futex_wake (Linux 6.7) and FUTEX_WAKE_BITSET.
 *
 * # Safety
 * A shared word must be mapped during the call. A private word need not be, unless `WW_NUMA` is
 * given.
 */
long ww_futex_wake(void *uaddr,
                   uint64_t mask,
                   int nr,
                   unsigned int flags);

/**
 * If the first word still holds its value: wakes up to `nr_wake` of its waiters, and moves up to
 * `nr_requeue` more of them to the second word without waking them.
 *
 * `pair` is an array of two entries. The first entry's `val` is compared; the second's is ignored.
 * The words may differ in size. A moved waiter keeps its mask and its timeout, and from then on it
 * is woken through the second word. Moving private waiters makes no system call.
 *
 * The comparison and the move are one atomic step for private words and for shared words of 32
 * bits. For a shared 64-bit word, the low half is compared in one step with the move, and the high
 * half just before. Waiters of shared 8 and 16-bit words cannot be moved, neither from nor to such
 * a word: they are woken instead. If anything other than a futex wakes the thread of a moved
 * waiter on a shared word, the waiter goes back to the first word and checks its value again. This
 * is the kernel's behaviour.
 *
 * Returns the number of waiters woken plus the number moved.
 *
 * Errors:
 * - `EAGAIN`: the first word did not hold its value.
 * - `EINVAL`: `flags` is not 0; `pair` is NULL; a count is negative; an entry has unknown flags, a
 *   `reserved` field that is not 0, a value wider than its word, or a misaligned address; one word
 *   is private and the other shared; with `WW_NUMA`, a node does not exist.
 * - `EFAULT`: the first address is NULL; or the second is NULL, and the words are shared.
 *
 * Does not block. Async-signal-safe, as `ww_futex_wake`. Modelled on futex2's futex_requeue (Linux
 * 6.7) and FUTEX_CMP_REQUEUE.
 *
 * # Safety
 * `pair` must be NULL or point to two entries, whose addresses are those of words as
 * `ww_futex_wait` requires them.
 */
long ww_futex_requeue(const struct ww_futex_waitv *pair,
                      unsigned int flags,
                      int nr_wake,
                      int nr_requeue);

/**
 * Sleeps while each of `nr` words (at most `WW_WAITV_MAX`) holds its value, until one of them is
 * woken.
 *
 * Words of different sizes, and private and shared words, may be mixed. `flags` must be 0; each
 * entry holds the flags of its word. `abs_timeout` and `clock` are those of `ww_futex_wait`.
 *
 * The kernel accepts 128 shared words. A word of 64 bits counts as two of them, and all private
 * words together count as one.
 *
 * A waiter for a shared 8 or 16-bit word may receive a wake that was meant for a neighbouring word
 * in the same 32 bits. To lose no wake, it forwards the wake: it wakes all threads that wait on
 * those 32 bits, whose waits may therefore end spuriously. If nothing shows that the wake was its
 * own, and such wakes follow each other quickly, the wait may go on for some milliseconds, 100 at
 * most, before it forwards the wake. If its process is killed during that time, the neighbour's
 * wake is lost. Several threads that wait in loops for words in the same 32 bits may be woken some
 * thousand times a second after one of them was woken, although nothing happens.
 *
 * Returns the index of a word that was woken. This is a hint: other words may have been woken too.
 *
 * Errors:
 * - `EAGAIN`: a word did not hold its value.
 * - `ETIMEDOUT`, `EINTR`: as `ww_futex_wait`.
 * - `ENOSYS`: a word is shared, and the kernel is older than 5.16.
 * - `ENOMEM`: private and shared words are mixed, and memory is short.
 * - `EINVAL`: `nr` is 0, or there are too many words; `waiters` is NULL; `flags` is not 0; `clock`
 *   or `abs_timeout` is not valid; an entry has unknown flags, a `reserved` field that is not 0, a
 *   value wider than its word, or a misaligned address.
 * - `EFAULT`: an address is NULL.
 *
 * Blocks. Not a cancellation point. Modelled on futex_waitv (Linux 5.16).
 *
 * # Safety
 * `waiters` must be NULL or point to `nr` entries, whose addresses are those of words as
 * `ww_futex_wait` requires them. `abs_timeout` must be NULL or point to a time.
 */
long ww_futex_waitv(const struct ww_futex_waitv *waiters,
                    unsigned int nr,
                    unsigned int flags,
                    const struct timespec *abs_timeout,
                    int clock);

/**
 * Changes the second word and wakes up to `nr` waiters of the first word. If the comparison holds
 * for the second word's old value, also wakes up to `nr2` waiters of the second word.
 *
 * That is: `old = *uaddr2; *uaddr2 = old OP oparg; wake uaddr; if (old CMP cmparg) wake uaddr2`.
 * The change is one atomic step. The wakes find every thread that waited before it. `op` is
 * `WW_OP_SET` and so on, plus `WW_OP_ARG_SHIFT` if `oparg` is a shift; `cmp` is `WW_OP_CMP_EQ` and
 * so on. Both words have the size and scope given in `flags`. `oparg` and `cmparg` are as wide as
 * the word, or are such a number sign-extended (-1 is all bits). A count of 0 wakes no thread, a
 * negative one wakes one.
 *
 * Returns the sum of both wakes.
 *
 * Errors:
 * - `ENOSYS`: unknown `op` or `cmp`. In both cases the word is unchanged (the kernel changes it
 *   before it detects an unknown comparison). Or: shared words with `WW_NUMA` or `WW_MPOL`.
 * - `EINVAL`: unknown flags; `oparg` or `cmparg` is wider than the word; an address is misaligned;
 *   with `WW_NUMA`, a node does not exist.
 * - `EFAULT`: `uaddr2` is NULL; or `uaddr` is NULL, and the words are shared.
 *
 * Does not block. Async-signal-safe, as `ww_futex_wake`. Modelled on FUTEX_WAKE_OP (Linux 2.6.14),
 * with operands as wide as the word.
 *
 * # Safety
 * `uaddr2` must be NULL or a word as `ww_futex_wait` requires it, and `uaddr` as `ww_futex_wake`
 * requires it.
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
 * futex(2) with its own arguments and return values, on 32-bit words.
 *
 * `op` is one of the `FUTEX_*` operations of linux/futex.h. With `FUTEX_PRIVATE_FLAG`, WAIT, WAKE,
 * REQUEUE, CMP_REQUEUE, WAKE_OP, WAIT_BITSET and WAKE_BITSET work on this process's own table,
 * together with the waiters of `ww_futex_wait` with `WW_SIZE_U32 | WW_PRIVATE`. Everything else,
 * that is, shared words and priority inheritance, goes to the kernel. A plain operation that finds
 * a priority-inheriting waiter on a private word fails with `EINVAL`, and so does the reverse, as
 * in the kernel.
 *
 * As in futex(2), `timeout` is relative for FUTEX_WAIT and absolute for FUTEX_WAIT_BITSET. For
 * REQUEUE, CMP_REQUEUE and WAKE_OP it is a number, `val2`: pass `WW_VAL2(n)`. FUTEX_WAKE with a
 * count of 0 wakes one thread.
 *
 * Returns what futex(2) returns, or -1 with futex(2)'s errno: `EAGAIN`, `ETIMEDOUT`, `EINTR`,
 * `EINVAL`, `EFAULT`, `ENOSYS`, and for priority inheritance any error of the kernel.
 * FUTEX_WAKE_OP with an unknown comparison fails with `ENOSYS` before it changes the word, not
 * after.
 *
 * WAIT and WAIT_BITSET block (and so do the kernel's own LOCK_PI and WAIT_REQUEUE_PI). No
 * operation is a cancellation point. The others do not block, and are async-signal-safe in the way
 * of `ww_futex_wake`.
 *
 * # Safety
 * As for futex(2): `uaddr`, `timeout` and `uaddr2` must be what `op` expects, or NULL where it
 * allows that. The words must be changed by atomic operations only.
 */
long ww_futex(void *uaddr,
              int op,
              uint32_t val,
              const struct timespec *timeout,
              void *uaddr2,
              uint32_t val3);

/**
 * Initialises an unlocked mutex. `flags` is a kind, a flavour and a scope, each 0 if left out:
 * `WW_MUTEX_RECURSIVE` or `WW_MUTEX_ERRORCHECK`, with `WW_MUTEX_THROUGHPUT`, `WW_MUTEX_WAIT_WAKE`
 * or `WW_MUTEX_PRIO_INHERIT`, with `WW_PROCESS_SHARED`.
 *
 * A static mutex needs no call: use `WW_MUTEX_INITIALIZER` or `WW_MUTEX_INITIALIZER_WITH(flags)`.
 *
 * Errors:
 * - `EINVAL`: `mutex` is NULL or misaligned; unknown flags.
 *
 * Does not block. Nothing is allocated. Modelled on `pthread_mutex_init`, with flags in place of
 * attribute objects.
 *
 * # Safety
 * `mutex` must be NULL or point to memory for a mutex that is not in use.
 */
int ww_mutex_init(ww_mutex_t *mutex,
                  unsigned int flags);

/**
 * Marks the mutex as no longer in use: later calls return `EINVAL`, where the library can detect
 * this, until it is initialised again. A mutex needs no other clean-up, and its memory may also be
 * freed without this call.
 *
 * Errors:
 * - `EBUSY`: a thread holds it or waits for it.
 * - `EINVAL`: `mutex` is NULL or misaligned; already destroyed.
 *
 * Does not block. Modelled on `pthread_mutex_destroy`.
 *
 * # Safety
 * `mutex` must be NULL or point to a mutex.
 */
int ww_mutex_destroy(ww_mutex_t *mutex);

/**
 * Locks the mutex, waiting as long as necessary. Signal handlers do not end the wait.
 *
 * Errors:
 * - `EDEADLK`: error-checking or priority-inheriting, and the caller holds it; or
 *   priority-inheriting, and a cycle of holders waiting for each other would form.
 * - `EAGAIN`: recursive, and locked 65,536 times.
 * - `EINVAL`: `mutex` is NULL or misaligned; destroyed.
 * - Priority-inheriting only: `ESRCH`, its holder has ended without unlocking it; `ENOMEM`;
 *   `ENOSYS`.
 *
 * Blocks. Not a cancellation point. Modelled on `pthread_mutex_lock`.
 *
 * # Safety
 * `mutex` must be NULL or point to a mutex.
 */
int ww_mutex_lock(ww_mutex_t *mutex);

/**
 * Locks the mutex if it can do so without waiting.
 *
 * Errors:
 * - `EBUSY`: a thread holds it; if it is not recursive, also if that thread is the caller.
 * - `EAGAIN`, `EINVAL` and the kernel's errors: as `ww_mutex_lock`.
 *
 * Does not block. Modelled on `pthread_mutex_trylock`.
 *
 * # Safety
 * `mutex` must be NULL or point to a mutex.
 */
int ww_mutex_trylock(ww_mutex_t *mutex);

/**
 * Locks the mutex, waiting until `abs_timeout` at the latest, an absolute time on
 * `CLOCK_REALTIME`.
 *
 * Otherwise the same as `ww_mutex_clocklock` with that clock.
 *
 * # Safety
 * `mutex` must be NULL or point to a mutex, `abs_timeout` NULL or point to a time.
 */
int ww_mutex_timedlock(ww_mutex_t *mutex,
                       const struct timespec *abs_timeout);

/**
 * Locks the mutex, waiting until `abs_timeout` at the latest, an absolute time on `clock`
 * (`CLOCK_MONOTONIC` or `CLOCK_REALTIME`). The time is checked only if the call must wait: an
 * available mutex is locked even if the time has passed.
 *
 * Errors:
 * - `ETIMEDOUT`: the timeout expired.
 * - `EINVAL`: `clock` is another clock; the call would wait, and `abs_timeout` is NULL or its
 *   nanoseconds are not in [0, 10^9).
 * - Those of `ww_mutex_lock`.
 *
 * Blocks. Not a cancellation point. Modelled on `pthread_mutex_clocklock` (POSIX 2024).
 *
 * # Safety
 * `mutex` must be NULL or point to a mutex, `abs_timeout` NULL or point to a time.
 */
int ww_mutex_clocklock(ww_mutex_t *mutex,
                       int clock,
                       const struct timespec *abs_timeout);

/**
 * Unlocks the mutex.
 *
 * Errors:
 * - `EPERM`: recursive, error-checking or priority-inheriting, and the caller does not hold it.
 *   (For other mutexes the caller must hold it, or have agreed with the thread that does. This is
 *   not checked.)
 * - `EINVAL`: `mutex` is NULL or misaligned; destroyed.
 *
 * Does not block. Modelled on `pthread_mutex_unlock`.
 *
 * # Safety
 * `mutex` must be NULL or point to a mutex. A normal mutex must be locked, and its holder must no
 * longer rely on holding it.
 */
int ww_mutex_unlock(ww_mutex_t *mutex);

/**
 * Unlocks the mutex. If threads wait, hands it off to the one that has waited longest, instead of
 * letting a running thread barge. No thread can use the mutex while that waiter wakes up, so use
 * this rarely. A priority-inheriting mutex is always handed off (by priority). A process-shared
 * one never is: for it, the call is `ww_mutex_unlock`.
 *
 * Errors: those of `ww_mutex_unlock`.
 *
 * Does not block. Modelled on WebKit's `Lock::unlockFairly`.
 *
 * # Safety
 * As for `ww_mutex_unlock`.
 */
int ww_mutex_unlock_fair(ww_mutex_t *mutex);

/**
 * Hands the mutex off to the thread that has waited longest, then locks it again after that
 * thread. Does nothing if no thread waits. For a holder that has held the mutex for a long time
 * and will go on. The protected data may have changed when this returns. A recursive,
 * error-checking or priority-inheriting mutex stays with its holder, and the call does nothing.
 *
 * Errors:
 * - `EINVAL`: `mutex` is NULL or misaligned.
 *
 * Blocks. Not a cancellation point.
 *
 * # Safety
 * `mutex` must be NULL or point to a mutex that the caller holds.
 */
int ww_mutex_bump(ww_mutex_t *mutex);

/**
 * Initialises a condition variable. `flags`: 0 or `WW_PROCESS_SHARED`. A static one needs no call:
 * use `WW_COND_INITIALIZER`.
 *
 * There is no clock attribute: `ww_cond_timedwait` uses `CLOCK_REALTIME`, `ww_cond_clockwait`
 * either clock.
 *
 * Errors:
 * - `EINVAL`: `cond` is NULL or misaligned; unknown flags.
 *
 * Does not block. Nothing is allocated. Modelled on `pthread_cond_init`.
 *
 * # Safety
 * `cond` must be NULL or point to memory for a condition variable that is not in use.
 */
int ww_cond_init(ww_cond_t *cond,
                 unsigned int flags);

/**
 * Waits until no thread uses the condition variable. A private one without waiters does not need
 * this call. For a shared one, the call waits until all signalled threads have left it.
 *
 * Errors:
 * - `EBUSY`: it is private, and threads wait on it.
 * - `EINVAL`: `cond` is NULL or misaligned.
 *
 * Blocks, if it is shared, until the signalled threads have left. Not a cancellation point.
 * Modelled on `pthread_cond_destroy`.
 *
 * # Safety
 * `cond` must be NULL or point to a condition variable.
 */
int ww_cond_destroy(ww_cond_t *cond);

/**
 * Unlocks `mutex`, waits to be signalled, and locks `mutex` again. Wake-ups may be spurious: check
 * the condition that you wait for again. A signal or broadcast finds every thread that is waiting
 * when it is sent.
 *
 * If a recursive mutex is locked more than once, the wait releases only one level, so the mutex
 * stays locked. A signal handler either does not end the wait or ends it spuriously; the call
 * never returns `EINTR`.
 *
 * Errors:
 * - `EPERM`: the mutex is recursive, error-checking or priority-inheriting, and the caller does
 *   not hold it.
 * - `EINVAL`: `cond` or `mutex` is NULL or misaligned; other threads wait here with another mutex.
 *   The mutex is still locked.
 * - `EDEADLK`, `ESRCH`, `ENOMEM` and the other errors of `ww_mutex_lock`: the mutex is
 *   priority-inheriting and could not be locked again. The caller does **not** hold it.
 *
 * Blocks. Not a cancellation point. Modelled on `pthread_cond_wait`.
 *
 * # Safety
 * `cond` must be NULL or point to a condition variable, `mutex` NULL or point to a mutex that the
 * caller holds. Both must live until all threads have returned from this call.
 */
int ww_cond_wait(ww_cond_t *cond,
                 ww_mutex_t *mutex);

/**
 * `ww_cond_wait` until `abs_timeout` at the latest, an absolute time on `CLOCK_REALTIME`.
 *
 * Otherwise the same as `ww_cond_clockwait` with that clock.
 *
 * # Safety
 * As for `ww_cond_wait`. `abs_timeout` must be NULL or point to a time.
 */
int ww_cond_timedwait(ww_cond_t *cond,
                      ww_mutex_t *mutex,
                      const struct timespec *abs_timeout);

/**
 * `ww_cond_wait` until `abs_timeout` at the latest, an absolute time on `clock` (`CLOCK_MONOTONIC`
 * or `CLOCK_REALTIME`).
 *
 * Errors:
 * - `ETIMEDOUT`: the timeout expired. The mutex is locked again. If the condition variable is
 *   private, the caller has consumed no signal; if it is shared, the caller may have consumed one.
 * - `EINVAL`: `clock` is another clock; `abs_timeout` is NULL or its nanoseconds are not in [0,
 *   10^9). Nothing has been done.
 * - Those of `ww_cond_wait`.
 *
 * Blocks. Not a cancellation point. Modelled on `pthread_cond_clockwait` (POSIX 2024).
 *
 * # Safety
 * As for `ww_cond_wait`. `abs_timeout` must be NULL or point to a time.
 */
int ww_cond_clockwait(ww_cond_t *cond,
                      ww_mutex_t *mutex,
                      int clock,
                      const struct timespec *abs_timeout);

/**
 * `ww_cond_wait` with a robust mutex, on a condition variable with `WW_PROCESS_SHARED`. A
 * broadcast wakes all threads that wait this way.
 *
 * Errors:
 * - `EOWNERDEAD`: **the mutex is locked again**, and the caller is the first to hold it since a
 *   holder died.
 * - `ENOTRECOVERABLE`: the mutex can never be locked again, and is not locked.
 * - `EPERM`: the caller does not hold the mutex.
 * - `ENOTSUP`: the condition variable is private. The mutex is still locked.
 * - `EINVAL`: `cond` or `mutex` is NULL or misaligned.
 *
 * Blocks. Not a cancellation point. Modelled on `pthread_cond_wait`. If a process was killed while
 * it waited on the condition variable, do not destroy the condition variable; initialise a new
 * one.
 *
 * # Safety
 * `cond` must be NULL or point to a condition variable, `mutex` NULL or point to a robust mutex.
 * Both must live until all threads have returned from this call.
 */
int ww_cond_wait_robust(ww_cond_t *cond,
                        ww_robust_mutex_t *mutex);

/**
 * `ww_cond_wait_robust` until `abs_timeout` at the latest, an absolute time on `clock`
 * (`CLOCK_MONOTONIC` or `CLOCK_REALTIME`).
 *
 * Errors:
 * - `ETIMEDOUT`: the timeout expired. The mutex is locked again. (`EOWNERDEAD` takes precedence.)
 * - `EINVAL`: `clock` is another clock; `abs_timeout` is NULL or its nanoseconds are not in [0,
 *   10^9). Nothing has been done.
 * - Those of `ww_cond_wait_robust`.
 *
 * Blocks. Not a cancellation point. Modelled on `pthread_cond_clockwait` (POSIX 2024).
 *
 * # Safety
 * As for `ww_cond_wait_robust`. `abs_timeout` must be NULL or point to a time.
 */
int ww_cond_clockwait_robust(ww_cond_t *cond,
                             ww_robust_mutex_t *mutex,
                             int clock,
                             const struct timespec *abs_timeout);

/**
 * Signals the thread that has waited longest, if any. The caller need not hold the mutex.
 *
 * Errors:
 * - `EINVAL`: `cond` is NULL or misaligned.
 *
 * Does not block. Modelled on `pthread_cond_signal`.
 *
 * # Safety
 * `cond` must be NULL or point to a condition variable.
 */
int ww_cond_signal(ww_cond_t *cond);

/**
 * Signals all waiting threads. Each of them continues once it gets the mutex. The caller need not
 * hold the mutex.
 *
 * Errors:
 * - `EINVAL`: `cond` is NULL or misaligned.
 *
 * Does not block. Modelled on `pthread_cond_broadcast`.
 *
 * # Safety
 * `cond` must be NULL or point to a condition variable.
 */
int ww_cond_broadcast(ww_cond_t *cond);

/**
 * Initialises an unlocked robust mutex. `flags`: `WW_MUTEX_RECURSIVE` or `WW_MUTEX_ERRORCHECK`,
 * and `WW_MUTEX_PRIO_INHERIT`. `WW_PROCESS_SHARED` is accepted and makes no difference.
 *
 * Errors:
 * - `EINVAL`: `mutex` is NULL or misaligned; unknown flags, or another flavour.
 *
 * Does not block. Nothing is allocated. Modelled on `pthread_mutex_init` with
 * `PTHREAD_MUTEX_ROBUST`.
 *
 * # Safety
 * `mutex` must be NULL or point to memory for a robust mutex that is not in use.
 */
int ww_robust_mutex_init(ww_robust_mutex_t *mutex,
                         unsigned int flags);

/**
 * Checks that the mutex may be freed. It needs no other clean-up.
 *
 * Errors:
 * - `EBUSY`: a thread holds it.
 * - `EINVAL`: `mutex` is NULL or misaligned.
 *
 * Does not block. Modelled on `pthread_mutex_destroy`.
 *
 * # Safety
 * `mutex` must be NULL or point to a robust mutex.
 */
int ww_robust_mutex_destroy(ww_robust_mutex_t *mutex);

/**
 * Locks the mutex, waiting as long as necessary. Signal handlers do not end the wait.
 *
 * Errors:
 * - `EOWNERDEAD`: **the caller holds it**, and is the first to do so since a holder died.
 * - `ENOTRECOVERABLE`: a caller that got `EOWNERDEAD` has unlocked it without
 *   `ww_robust_mutex_consistent`.
 * - `EDEADLK`: error-checking, and the caller holds it; or priority-inheriting, and the caller
 *   holds it or a cycle of holders waiting for each other would form.
 * - `EAGAIN`: recursive, and locked the maximum number of times, 2^32 - 1.
 * - `ENOTSUP`: not possible with this C library or kernel.
 * - `EINVAL`: `mutex` is NULL or misaligned.
 * - Priority-inheriting only: `ENOMEM`, and the kernel's errors.
 *
 * Blocks. Not a cancellation point. Modelled on `pthread_mutex_lock` of a robust mutex.
 *
 * # Safety
 * `mutex` must be NULL or point to a robust mutex that stays at its address until it is unlocked.
 */
int ww_robust_mutex_lock(ww_robust_mutex_t *mutex);

/**
 * Locks the mutex if it can do so without waiting.
 *
 * Errors:
 * - `EBUSY`: a thread holds it; if it is not recursive, also if that thread is the caller.
 * - `EOWNERDEAD` (the caller holds it) and the others except `EDEADLK`: as `ww_robust_mutex_lock`.
 *
 * Does not block. Modelled on `pthread_mutex_trylock` of a robust mutex.
 *
 * # Safety
 * As for `ww_robust_mutex_lock`.
 */
int ww_robust_mutex_trylock(ww_robust_mutex_t *mutex);

/**
 * Locks the mutex, waiting until `abs_timeout` at the latest, an absolute time on
 * `CLOCK_REALTIME`.
 *
 * Otherwise the same as `ww_robust_mutex_clocklock` with that clock.
 *
 * # Safety
 * As for `ww_robust_mutex_lock`. `abs_timeout` must be NULL or point to a time.
 */
int ww_robust_mutex_timedlock(ww_robust_mutex_t *mutex,
                              const struct timespec *abs_timeout);

/**
 * Locks the mutex, waiting until `abs_timeout` at the latest, an absolute time on `clock`
 * (`CLOCK_MONOTONIC` or `CLOCK_REALTIME`). The time is checked only if the call must wait.
 *
 * Errors:
 * - `ETIMEDOUT`: the timeout expired.
 * - `EINVAL`: `clock` is another clock; the call would wait, and `abs_timeout` is NULL or its
 *   nanoseconds are not in [0, 10^9).
 * - `EOWNERDEAD` (the caller holds it) and the others: as `ww_robust_mutex_lock`.
 *
 * Blocks. Not a cancellation point. Modelled on `pthread_mutex_clocklock` of a robust mutex.
 *
 * # Safety
 * As for `ww_robust_mutex_lock`. `abs_timeout` must be NULL or point to a time.
 */
int ww_robust_mutex_clocklock(ww_robust_mutex_t *mutex,
                              int clock,
                              const struct timespec *abs_timeout);

/**
 * Unlocks the mutex. If the caller's lock returned `EOWNERDEAD` and it has not called
 * `ww_robust_mutex_consistent` since, the mutex can never be locked again.
 *
 * Errors:
 * - `EPERM`: the caller does not hold it.
 * - `EINVAL`: `mutex` is NULL or misaligned.
 *
 * Does not block. Modelled on `pthread_mutex_unlock` of a robust mutex.
 *
 * # Safety
 * `mutex` must be NULL or point to a robust mutex. If the mutex records the caller's thread number
 * as its owner, the caller must have locked it. (A thread that has ended may have had that number
 * and left the mutex locked: it held more than 2048 robust mutexes, or it held this one in a
 * process of which this one is a fork.)
 */
int ww_robust_mutex_unlock(ww_robust_mutex_t *mutex);

/**
 * Declares that the protected data has been repaired after a holder's death. The caller still
 * holds the mutex.
 *
 * Errors:
 * - `EINVAL`: `mutex` is NULL or misaligned; the caller does not hold it, or no holder has died.
 *
 * Does not block. Modelled on `pthread_mutex_consistent`.
 *
 * # Safety
 * `mutex` must be NULL or point to a robust mutex.
 */
int ww_robust_mutex_consistent(ww_robust_mutex_t *mutex);

/**
 * Initialises an unlocked lock. `flags`: `WW_RWLOCK_PREFER_WRITER` to prefer writers,
 * `WW_PROCESS_SHARED`. A static one needs no call: use `WW_RWLOCK_INITIALIZER` or
 * `WW_WRITER_RWLOCK_INITIALIZER`.
 *
 * Errors:
 * - `EINVAL`: `rwlock` is NULL or misaligned; unknown flags.
 *
 * Does not block. Nothing is allocated. Modelled on `pthread_rwlock_init`.
 *
 * # Safety
 * `rwlock` must be NULL or point to memory for a lock that is not in use.
 */
int ww_rwlock_init(ww_rwlock_t *rwlock,
                   unsigned int flags);

/**
 * Checks that the lock may be freed. It needs no other clean-up.
 *
 * Errors:
 * - `EBUSY`: a thread holds it or waits for it.
 * - `EINVAL`: `rwlock` is NULL or misaligned.
 *
 * Does not block. Modelled on `pthread_rwlock_destroy`.
 *
 * # Safety
 * `rwlock` must be NULL or point to a lock.
 */
int ww_rwlock_destroy(ww_rwlock_t *rwlock);

/**
 * Locks for reading, waiting as long as necessary: while a writer holds the lock; with
 * `WW_RWLOCK_PREFER_WRITER` also while a writer waits. Signal handlers do not end the wait.
 *
 * A thread may hold several read locks at once, and must unlock as often. With
 * `WW_RWLOCK_PREFER_WRITER` it must not: it would deadlock if a writer had started to wait in
 * between.
 *
 * Errors:
 * - `EDEADLK`: the caller holds it for writing.
 * - `EAGAIN`: it has the maximum number of readers, 2^31 - 1.
 * - `EINVAL`: `rwlock` is NULL or misaligned.
 *
 * Blocks. Not a cancellation point. Modelled on `pthread_rwlock_rdlock`.
 *
 * # Safety
 * `rwlock` must be NULL or point to a lock.
 */
int ww_rwlock_rdlock(ww_rwlock_t *rwlock);

/**
 * Locks for reading if it can do so without waiting.
 *
 * Errors:
 * - `EBUSY`: the call would have to wait.
 * - `EAGAIN`: it has the maximum number of readers.
 * - `EINVAL`: `rwlock` is NULL or misaligned.
 *
 * Does not block. Modelled on `pthread_rwlock_tryrdlock`.
 *
 * # Safety
 * `rwlock` must be NULL or point to a lock.
 */
int ww_rwlock_tryrdlock(ww_rwlock_t *rwlock);

/**
 * Locks for reading, waiting until `abs_timeout` at the latest, an absolute time on
 * `CLOCK_REALTIME`.
 *
 * Otherwise the same as `ww_rwlock_clockrdlock` with that clock.
 *
 * # Safety
 * `rwlock` must be NULL or point to a lock, `abs_timeout` NULL or point to a time.
 */
int ww_rwlock_timedrdlock(ww_rwlock_t *rwlock,
                          const struct timespec *abs_timeout);

/**
 * Locks for reading, waiting until `abs_timeout` at the latest, an absolute time on `clock`
 * (`CLOCK_MONOTONIC` or `CLOCK_REALTIME`). The time is checked only if the call must wait.
 *
 * Errors:
 * - `ETIMEDOUT`: the timeout expired.
 * - `EINVAL`: `clock` is another clock; the call would wait, and `abs_timeout` is NULL or its
 *   nanoseconds are not in [0, 10^9).
 * - Those of `ww_rwlock_rdlock`.
 *
 * Blocks. Not a cancellation point. Modelled on `pthread_rwlock_clockrdlock` (POSIX 2024).
 *
 * # Safety
 * `rwlock` must be NULL or point to a lock, `abs_timeout` NULL or point to a time.
 */
int ww_rwlock_clockrdlock(ww_rwlock_t *rwlock,
                          int clock,
                          const struct timespec *abs_timeout);

/**
 * Locks for writing, waiting as long as necessary. Signal handlers do not end the wait.
 *
 * Errors:
 * - `EDEADLK`: the caller holds it for writing. (A caller that holds it for reading deadlocks.)
 * - `EINVAL`: `rwlock` is NULL or misaligned.
 *
 * Blocks. Not a cancellation point. Modelled on `pthread_rwlock_wrlock`.
 *
 * # Safety
 * `rwlock` must be NULL or point to a lock.
 */
int ww_rwlock_wrlock(ww_rwlock_t *rwlock);

/**
 * Locks for writing if it can do so without waiting.
 *
 * Errors:
 * - `EBUSY`: a thread holds it.
 * - `EINVAL`: `rwlock` is NULL or misaligned.
 *
 * Does not block, but may wait for a moment until readers on other CPUs notice. Modelled on
 * `pthread_rwlock_trywrlock`.
 *
 * # Safety
 * `rwlock` must be NULL or point to a lock.
 */
int ww_rwlock_trywrlock(ww_rwlock_t *rwlock);

/**
 * Locks for writing, waiting until `abs_timeout` at the latest, an absolute time on
 * `CLOCK_REALTIME`.
 *
 * Otherwise the same as `ww_rwlock_clockwrlock` with that clock.
 *
 * # Safety
 * `rwlock` must be NULL or point to a lock, `abs_timeout` NULL or point to a time.
 */
int ww_rwlock_timedwrlock(ww_rwlock_t *rwlock,
                          const struct timespec *abs_timeout);

/**
 * Locks for writing, waiting until `abs_timeout` at the latest, an absolute time on `clock`
 * (`CLOCK_MONOTONIC` or `CLOCK_REALTIME`). The time is checked only if the call must wait.
 *
 * Errors:
 * - `ETIMEDOUT`: the timeout expired.
 * - `EINVAL`: `clock` is another clock; the call would wait, and `abs_timeout` is NULL or its
 *   nanoseconds are not in [0, 10^9).
 * - Those of `ww_rwlock_wrlock`.
 *
 * Blocks. Not a cancellation point. Modelled on `pthread_rwlock_clockwrlock` (POSIX 2024).
 *
 * # Safety
 * `rwlock` must be NULL or point to a lock, `abs_timeout` NULL or point to a time.
 */
int ww_rwlock_clockwrlock(ww_rwlock_t *rwlock,
                          int clock,
                          const struct timespec *abs_timeout);

/**
 * Unlocks what the caller holds for reading or for writing.
 *
 * Errors:
 * - `EPERM`: no thread holds it. (Whether the caller does is not checked.)
 * - `EINVAL`: `rwlock` is NULL or misaligned.
 *
 * Does not block. Modelled on `pthread_rwlock_unlock`.
 *
 * # Safety
 * `rwlock` must be NULL or point to a lock. If the lock is held, the caller must hold it.
 */
int ww_rwlock_unlock(ww_rwlock_t *rwlock);

/**
 * Locks upgradably: readers may hold the lock at the same time, but no writer and no second
 * upgradable holder. For a thread that reads and may then want to write, with no other writer in
 * between (`ww_rwlock_upgrade`). Waits as long as necessary; signal handlers do not end the wait.
 *
 * Errors:
 * - `EINVAL`: `rwlock` is NULL or misaligned.
 *
 * Blocks. Not a cancellation point. A caller that holds the lock upgradably or for writing
 * deadlocks.
 *
 * # Safety
 * `rwlock` must be NULL or point to a lock.
 */
int ww_rwlock_upgradable_lock(ww_rwlock_t *rwlock);

/**
 * Locks upgradably if it can do so without waiting.
 *
 * Errors:
 * - `EBUSY`: the call would have to wait.
 * - `EINVAL`: `rwlock` is NULL or misaligned.
 *
 * Does not block.
 *
 * # Safety
 * `rwlock` must be NULL or point to a lock.
 */
int ww_rwlock_upgradable_trylock(ww_rwlock_t *rwlock);

/**
 * Locks upgradably, waiting until `abs_timeout` at the latest, an absolute time on `clock`
 * (`CLOCK_MONOTONIC` or `CLOCK_REALTIME`). The time is checked only if the call must wait.
 *
 * Errors:
 * - `ETIMEDOUT`: the timeout expired.
 * - `EINVAL`: `clock` is another clock; `rwlock` is NULL or misaligned; the call would wait, and
 *   `abs_timeout` is NULL or its nanoseconds are not in [0, 10^9).
 *
 * Blocks. Not a cancellation point.
 *
 * # Safety
 * `rwlock` must be NULL or point to a lock, `abs_timeout` NULL or point to a time.
 */
int ww_rwlock_upgradable_clocklock(ww_rwlock_t *rwlock,
                                   int clock,
                                   const struct timespec *abs_timeout);

/**
 * Unlocks what the caller holds upgradably. (`ww_rwlock_unlock` unlocks what is held for reading
 * or for writing.)
 *
 * Errors:
 * - `EPERM`: no thread holds it upgradably. (Whether the caller does is not checked.)
 * - `EINVAL`: `rwlock` is NULL or misaligned.
 *
 * Does not block.
 *
 * # Safety
 * `rwlock` must be NULL or point to a lock. If the lock is held upgradably, the caller must hold
 * it.
 */
int ww_rwlock_upgradable_unlock(ww_rwlock_t *rwlock);

/**
 * Turns an upgradable lock into a write lock once the readers have left, waiting as long as
 * necessary. No other writer gets the lock in between.
 *
 * Errors:
 * - `EPERM`: no thread holds it upgradably. (Whether the caller does is not checked.)
 * - `EINVAL`: `rwlock` is NULL or misaligned.
 *
 * Blocks. Not a cancellation point.
 *
 * # Safety
 * `rwlock` must be NULL or point to a lock. If the lock is held upgradably, the caller must hold
 * it.
 */
int ww_rwlock_upgrade(ww_rwlock_t *rwlock);

/**
 * `ww_rwlock_upgrade` if no thread holds the lock for reading. After an error, the lock is held as
 * before.
 *
 * Errors:
 * - `EBUSY`: a thread holds it for reading.
 * - `EPERM`, `EINVAL`: as `ww_rwlock_upgrade`.
 *
 * Does not block, but may wait for a moment until readers on other CPUs notice.
 *
 * # Safety
 * As for `ww_rwlock_upgrade`.
 */
int ww_rwlock_tryupgrade(ww_rwlock_t *rwlock);

/**
 * `ww_rwlock_upgrade` until `abs_timeout` at the latest, an absolute time on `clock`
 * (`CLOCK_MONOTONIC` or `CLOCK_REALTIME`). The time is checked only if the call must wait. After
 * an error, the lock is held as before.
 *
 * Errors:
 * - `ETIMEDOUT`: the timeout expired.
 * - `EINVAL`: `clock` is another clock; `rwlock` is NULL or misaligned; the call would wait, and
 *   `abs_timeout` is NULL or its nanoseconds are not in [0, 10^9).
 * - `EPERM`: as `ww_rwlock_upgrade`.
 *
 * Blocks. Not a cancellation point.
 *
 * # Safety
 * As for `ww_rwlock_upgrade`. `abs_timeout` must be NULL or point to a time.
 */
int ww_rwlock_clockupgrade(ww_rwlock_t *rwlock,
                           int clock,
                           const struct timespec *abs_timeout);

/**
 * Turns a write lock into a read lock. Readers may enter, and no writer gets the lock in between.
 *
 * Errors:
 * - `EPERM`: no thread holds it for writing. (Whether the caller does is not checked.)
 * - `EINVAL`: `rwlock` is NULL or misaligned.
 *
 * Does not block.
 *
 * # Safety
 * `rwlock` must be NULL or point to a lock. If the lock is held for writing, the caller must hold
 * it.
 */
int ww_rwlock_downgrade(ww_rwlock_t *rwlock);

/**
 * Turns a write lock into an upgradable lock. Readers may enter, and no writer gets the lock in
 * between.
 *
 * Errors:
 * - Those of `ww_rwlock_downgrade`.
 *
 * Does not block.
 *
 * # Safety
 * As for `ww_rwlock_downgrade`.
 */
int ww_rwlock_downgrade_to_upgradable(ww_rwlock_t *rwlock);

/**
 * Turns an upgradable lock into a read lock. Another thread may then hold it upgradably.
 *
 * Errors:
 * - `EPERM`: no thread holds it upgradably. (Whether the caller does is not checked.)
 * - `EINVAL`: `rwlock` is NULL or misaligned.
 *
 * Does not block.
 *
 * # Safety
 * `rwlock` must be NULL or point to a lock. If the lock is held upgradably, the caller must hold
 * it.
 */
int ww_rwlock_upgradable_downgrade(ww_rwlock_t *rwlock);

/**
 * Initialises a semaphore with this value. `flags`: 0 or `WW_PROCESS_SHARED`. A static one needs
 * no call: use `WW_SEM_INITIALIZER(value)`.
 *
 * Errors:
 * - `EINVAL`: `sem` is NULL or misaligned; unknown flags; the value is above `WW_SEM_VALUE_MAX`.
 *
 * Does not block. Nothing is allocated. Modelled on `sem_init`.
 *
 * # Safety
 * `sem` must be NULL or point to memory for a semaphore that is not in use.
 */
int ww_sem_init(ww_sem_t *sem,
                unsigned int flags,
                unsigned int value);

/**
 * Does nothing, because a semaphore needs no clean-up. Provided for symmetry.
 *
 * Errors:
 * - `EINVAL`: `sem` is NULL or misaligned.
 *
 * Does not block. Modelled on `sem_destroy`.
 *
 * # Safety
 * `sem` must be NULL or point to a semaphore.
 */
int ww_sem_destroy(ww_sem_t *sem);

/**
 * Decrements the value by one, waiting until that is possible.
 *
 * Errors:
 * - `EINTR`: a signal handler ran that was installed without `SA_RESTART`. The value is unchanged.
 *   Call again, unless the signal is what you waited for.
 * - `EINVAL`: `sem` is NULL or misaligned.
 *
 * Blocks. Not a cancellation point. Modelled on `sem_wait`, but returns the error number: where
 * `while (sem_wait(s) == -1 && errno == EINTR);` was, write `while (ww_sem_wait(s) == EINTR);`. If
 * the semaphore is process-shared and a process is killed that was just woken for it, the other
 * waiters check the value again within a second; before Linux 5.16 they sleep until the next post.
 *
 * # Safety
 * `sem` must be NULL or point to a semaphore.
 */
int ww_sem_wait(ww_sem_t *sem);

/**
 * Decrements the value by one if it can do so without waiting.
 *
 * Errors:
 * - `EAGAIN`: the value is 0.
 * - `EINVAL`: `sem` is NULL or misaligned.
 *
 * Does not block. Async-signal-safe. Modelled on `sem_trywait`, but returns the error number.
 *
 * # Safety
 * `sem` must be NULL or point to a semaphore.
 */
int ww_sem_trywait(ww_sem_t *sem);

/**
 * `ww_sem_wait` until `abs_timeout` at the latest, an absolute time on `CLOCK_REALTIME`.
 *
 * Otherwise the same as `ww_sem_clockwait` with that clock.
 *
 * # Safety
 * `sem` must be NULL or point to a semaphore, `abs_timeout` NULL or point to a time.
 */
int ww_sem_timedwait(ww_sem_t *sem,
                     const struct timespec *abs_timeout);

/**
 * `ww_sem_wait` until `abs_timeout` at the latest, an absolute time on `clock` (`CLOCK_MONOTONIC`
 * or `CLOCK_REALTIME`). The time is checked only if the call must wait.
 *
 * Errors:
 * - `ETIMEDOUT`: the timeout expired. The value is unchanged.
 * - `EINTR`: a signal handler ran; in most cases also one that was installed with `SA_RESTART`.
 * - `EINVAL`: `sem` is NULL or misaligned; `clock` is another clock; the call would wait, and
 *   `abs_timeout` is NULL or its nanoseconds are not in [0, 10^9).
 *
 * Blocks. Not a cancellation point. Modelled on `sem_clockwait` (POSIX 2024).
 *
 * # Safety
 * `sem` must be NULL or point to a semaphore, `abs_timeout` NULL or point to a time.
 */
int ww_sem_clockwait(ww_sem_t *sem,
                     int clock,
                     const struct timespec *abs_timeout);

/**
 * Increments the value by one, and wakes a waiter if there is one.
 *
 * Errors:
 * - `EOVERFLOW`: the value is `WW_SEM_VALUE_MAX`.
 * - `EINVAL`: `sem` is NULL or misaligned.
 *
 * Does not block. Async-signal-safe. Modelled on `sem_post`.
 *
 * # Safety
 * `sem` must be NULL or point to a semaphore.
 */
int ww_sem_post(ww_sem_t *sem);

/**
 * Increments the value by `count` in one step, and wakes up to that many waiters.
 *
 * Errors:
 * - `EOVERFLOW`: the value would rise above `WW_SEM_VALUE_MAX`. It is unchanged.
 * - `EINVAL`: `sem` is NULL or misaligned.
 *
 * Does not block. Async-signal-safe. Modelled on C++20's `std::counting_semaphore::release`.
 *
 * # Safety
 * `sem` must be NULL or point to a semaphore.
 */
int ww_sem_post_many(ww_sem_t *sem,
                     unsigned int count);

/**
 * Stores in `*value` the semaphore's value at some moment during the call; 0 if threads wait. It
 * may have changed before the caller sees it.
 *
 * Errors:
 * - `EINVAL`: `sem` or `value` is NULL or misaligned.
 *
 * Does not block. Async-signal-safe. Modelled on `sem_getvalue`.
 *
 * # Safety
 * `sem` must be NULL or point to a semaphore, `value` NULL or point to a writable `int`.
 */
int ww_sem_getvalue(ww_sem_t *sem,
                    int *value);

/**
 * Initialises a barrier for `count` threads. `flags`: 0 or `WW_PROCESS_SHARED`. A static one needs
 * no call: use `WW_BARRIER_INITIALIZER(count)`.
 *
 * Errors:
 * - `EINVAL`: `barrier` is NULL or misaligned; unknown flags; the count is 0 or above
 *   `WW_BARRIER_COUNT_MAX`.
 *
 * Does not block. Nothing is allocated. Modelled on `pthread_barrier_init`.
 *
 * # Safety
 * `barrier` must be NULL or point to memory for a barrier that is not in use.
 */
int ww_barrier_init(ww_barrier_t *barrier,
                    unsigned int flags,
                    unsigned int count);

/**
 * Checks that the barrier may be freed. For a shared barrier, also waits until no thread touches
 * it any more. A private barrier does not need this call.
 *
 * Errors:
 * - `EBUSY`: threads have arrived in a round that is not complete.
 * - `EINVAL`: `barrier` is NULL, misaligned, or all zeros.
 *
 * Blocks, if it is shared, until the other threads have returned from their last round. Not a
 * cancellation point. Modelled on `pthread_barrier_destroy`.
 *
 * # Safety
 * `barrier` must be NULL or point to a barrier.
 */
int ww_barrier_destroy(ww_barrier_t *barrier);

/**
 * Waits until the barrier's number of threads have arrived. Then all of them continue, and the
 * barrier is ready for the next round.
 *
 * Returns `WW_BARRIER_SERIAL_THREAD`, which is negative, to the last thread of each round, and 0
 * to the others. Signal handlers do not end the wait.
 *
 * Errors:
 * - `EINVAL`: `barrier` is NULL, misaligned, or all zeros.
 *
 * Blocks. Not a cancellation point. Modelled on `pthread_barrier_wait`.
 *
 * # Safety
 * `barrier` must be NULL or point to a barrier.
 */
int ww_barrier_wait(ww_barrier_t *barrier);

/**
 * `ww_barrier_wait` until `abs_timeout` at the latest, an absolute time on `CLOCK_REALTIME`.
 *
 * Otherwise the same as `ww_barrier_clockwait` with that clock.
 *
 * # Safety
 * `barrier` must be NULL or point to a barrier, `abs_timeout` NULL or point to a time.
 */
int ww_barrier_timedwait(ww_barrier_t *barrier,
                         const struct timespec *abs_timeout);

/**
 * `ww_barrier_wait` until `abs_timeout` at the latest, an absolute time on `clock`
 * (`CLOCK_MONOTONIC` or `CLOCK_REALTIME`). POSIX has no such function.
 *
 * Errors:
 * - `ETIMEDOUT`: the timeout expired before the last thread arrived. The caller no longer counts
 *   as having arrived.
 * - `EINVAL`: `barrier` is NULL, misaligned, or all zeros; `clock` is another clock; `abs_timeout`
 *   is NULL or its nanoseconds are not in [0, 10^9).
 *
 * Blocks. Not a cancellation point.
 *
 * # Safety
 * `barrier` must be NULL or point to a barrier, `abs_timeout` NULL or point to a time.
 */
int ww_barrier_clockwait(ww_barrier_t *barrier,
                         int clock,
                         const struct timespec *abs_timeout);

/**
 * Initialises a latch that is open after `count` counts; with 0 it is open at once. `flags`: 0 or
 * `WW_PROCESS_SHARED`. A static one needs no call: use `WW_LATCH_INITIALIZER(count)`.
 *
 * Errors:
 * - `EINVAL`: `latch` is NULL or misaligned; unknown flags; the count is above
 *   `WW_LATCH_COUNT_MAX`.
 *
 * Does not block. Nothing is allocated.
 *
 * # Safety
 * `latch` must be NULL or point to memory for a latch that is not in use.
 */
int ww_latch_init(ww_latch_t *latch,
                  unsigned int flags,
                  unsigned int count);

/**
 * Does nothing, because a latch needs no clean-up. Provided for symmetry.
 *
 * Errors:
 * - `EINVAL`: `latch` is NULL or misaligned.
 *
 * Does not block.
 *
 * # Safety
 * `latch` must be NULL or point to a latch.
 */
int ww_latch_destroy(ww_latch_t *latch);

/**
 * Decrements the latch by `count`, and releases all waiting threads if it reaches 0.
 *
 * Errors:
 * - `EINVAL`: `latch` is NULL or misaligned; `count` is larger than what is left. The latch is
 *   unchanged.
 *
 * Does not block. Async-signal-safe.
 *
 * # Safety
 * `latch` must be NULL or point to a latch.
 */
int ww_latch_count_down(ww_latch_t *latch,
                        unsigned int count);

/**
 * Decrements the latch by one, and waits until it is open.
 *
 * Errors:
 * - `EINVAL`: `latch` is NULL or misaligned; the latch was already open. The call does not wait.
 *
 * Blocks. Not a cancellation point.
 *
 * # Safety
 * `latch` must be NULL or point to a latch.
 */
int ww_latch_arrive_and_wait(ww_latch_t *latch);

/**
 * Waits until the latch is open. Signal handlers do not end the wait.
 *
 * Errors:
 * - `EINVAL`: `latch` is NULL or misaligned.
 *
 * Blocks. Not a cancellation point.
 *
 * # Safety
 * `latch` must be NULL or point to a latch.
 */
int ww_latch_wait(ww_latch_t *latch);

/**
 * Returns 0 if the latch is open.
 *
 * Errors:
 * - `EAGAIN`: it is not open.
 * - `EINVAL`: `latch` is NULL or misaligned.
 *
 * Does not block. Async-signal-safe.
 *
 * # Safety
 * `latch` must be NULL or point to a latch.
 */
int ww_latch_trywait(ww_latch_t *latch);

/**
 * `ww_latch_wait` until `abs_timeout` at the latest, an absolute time on `CLOCK_REALTIME`.
 *
 * Otherwise the same as `ww_latch_clockwait` with that clock.
 *
 * # Safety
 * `latch` must be NULL or point to a latch, `abs_timeout` NULL or point to a time.
 */
int ww_latch_timedwait(ww_latch_t *latch,
                       const struct timespec *abs_timeout);

/**
 * `ww_latch_wait` until `abs_timeout` at the latest, an absolute time on `clock`
 * (`CLOCK_MONOTONIC` or `CLOCK_REALTIME`). The time is checked only if the call must wait.
 *
 * Errors:
 * - `ETIMEDOUT`: the timeout expired.
 * - `EINVAL`: `latch` is NULL or misaligned; `clock` is another clock; the call would wait, and
 *   `abs_timeout` is NULL or its nanoseconds are not in [0, 10^9).
 *
 * Blocks. Not a cancellation point.
 *
 * # Safety
 * `latch` must be NULL or point to a latch, `abs_timeout` NULL or point to a time.
 */
int ww_latch_clockwait(ww_latch_t *latch,
                       int clock,
                       const struct timespec *abs_timeout);

/**
 * Initialises an event. `flags`: `WW_EVENT_SET` if it is initially set, `WW_PROCESS_SHARED`. A
 * static one needs no call: use `WW_EVENT_INITIALIZER`.
 *
 * Errors:
 * - `EINVAL`: `event` is NULL or misaligned; unknown flags.
 *
 * Does not block. Nothing is allocated.
 *
 * # Safety
 * `event` must be NULL or point to memory for an event that is not in use.
 */
int ww_event_init(ww_event_t *event,
                  unsigned int flags);

/**
 * Does nothing, because an event needs no clean-up. Provided for symmetry.
 *
 * Errors:
 * - `EINVAL`: `event` is NULL or misaligned.
 *
 * Does not block.
 *
 * # Safety
 * `event` must be NULL or point to an event.
 */
int ww_event_destroy(ww_event_t *event);

/**
 * Sets the event. All threads that wait at this moment pass, even if the event is reset at once,
 * and so does every thread that arrives while it is set.
 *
 * Errors:
 * - `EINVAL`: `event` is NULL or misaligned.
 *
 * Does not block. Async-signal-safe.
 *
 * # Safety
 * `event` must be NULL or point to an event.
 */
int ww_event_set(ww_event_t *event);

/**
 * Resets the event: threads that arrive from now on wait.
 *
 * Errors:
 * - `EINVAL`: `event` is NULL or misaligned.
 *
 * Does not block. Async-signal-safe.
 *
 * # Safety
 * `event` must be NULL or point to an event.
 */
int ww_event_reset(ww_event_t *event);

/**
 * Waits until the event is set, if only for a moment. Signal handlers do not end the wait.
 *
 * Errors:
 * - `EINVAL`: `event` is NULL or misaligned.
 *
 * Blocks. Not a cancellation point.
 *
 * # Safety
 * `event` must be NULL or point to an event.
 */
int ww_event_wait(ww_event_t *event);

/**
 * Returns 0 if the event is set.
 *
 * Errors:
 * - `EAGAIN`: it is not set.
 * - `EINVAL`: `event` is NULL or misaligned.
 *
 * Does not block. Async-signal-safe.
 *
 * # Safety
 * `event` must be NULL or point to an event.
 */
int ww_event_trywait(ww_event_t *event);

/**
 * `ww_event_wait` until `abs_timeout` at the latest, an absolute time on `CLOCK_REALTIME`.
 *
 * Otherwise the same as `ww_event_clockwait` with that clock.
 *
 * # Safety
 * `event` must be NULL or point to an event, `abs_timeout` NULL or point to a time.
 */
int ww_event_timedwait(ww_event_t *event,
                       const struct timespec *abs_timeout);

/**
 * `ww_event_wait` until `abs_timeout` at the latest, an absolute time on `clock`
 * (`CLOCK_MONOTONIC` or `CLOCK_REALTIME`). The time is checked only if the call must wait.
 *
 * Errors:
 * - `ETIMEDOUT`: the timeout expired.
 * - `EINVAL`: `event` is NULL or misaligned; `clock` is another clock; the call would wait, and
 *   `abs_timeout` is NULL or its nanoseconds are not in [0, 10^9).
 *
 * Blocks. Not a cancellation point.
 *
 * # Safety
 * `event` must be NULL or point to an event, `abs_timeout` NULL or point to a time.
 */
int ww_event_clockwait(ww_event_t *event,
                       int clock,
                       const struct timespec *abs_timeout);

/**
 * Initialises an event that resets itself. `flags`: `WW_EVENT_SET` if it is initially set,
 * `WW_PROCESS_SHARED`. A static one needs no call: use `WW_AUTO_EVENT_INITIALIZER`.
 *
 * Errors:
 * - `EINVAL`: `event` is NULL or misaligned; unknown flags.
 *
 * Does not block. Nothing is allocated.
 *
 * # Safety
 * `event` must be NULL or point to memory for an event that is not in use.
 */
int ww_auto_event_init(ww_auto_event_t *event,
                       unsigned int flags);

/**
 * Does nothing, because an event needs no clean-up. Provided for symmetry.
 *
 * Errors:
 * - `EINVAL`: `event` is NULL or misaligned.
 *
 * Does not block.
 *
 * # Safety
 * `event` must be NULL or point to an event.
 */
int ww_auto_event_destroy(ww_auto_event_t *event);

/**
 * Lets one thread pass. While threads wait, each set lets another one of them pass. If no thread
 * waits, the next thread to arrive passes, and further sets have no effect.
 *
 * Errors:
 * - `EINVAL`: `event` is NULL or misaligned.
 *
 * Does not block. Async-signal-safe.
 *
 * # Safety
 * `event` must be NULL or point to an event.
 */
int ww_auto_event_set(ww_auto_event_t *event);

/**
 * Cancels a set that has not let a thread pass yet.
 *
 * Errors:
 * - `EINVAL`: `event` is NULL or misaligned.
 *
 * Does not block. Async-signal-safe.
 *
 * # Safety
 * `event` must be NULL or point to an event.
 */
int ww_auto_event_reset(ww_auto_event_t *event);

/**
 * Waits until the event is set, and resets it. Signal handlers do not end the wait.
 *
 * Errors:
 * - `EINVAL`: `event` is NULL or misaligned.
 *
 * Blocks. Not a cancellation point.
 *
 * # Safety
 * `event` must be NULL or point to an event.
 */
int ww_auto_event_wait(ww_auto_event_t *event);

/**
 * Resets the event and returns 0, if it is set.
 *
 * Errors:
 * - `EAGAIN`: it is not set.
 * - `EINVAL`: `event` is NULL or misaligned.
 *
 * Does not block. Async-signal-safe.
 *
 * # Safety
 * `event` must be NULL or point to an event.
 */
int ww_auto_event_trywait(ww_auto_event_t *event);

/**
 * `ww_auto_event_wait` until `abs_timeout` at the latest, an absolute time on `CLOCK_REALTIME`.
 *
 * Otherwise the same as `ww_auto_event_clockwait` with that clock.
 *
 * # Safety
 * `event` must be NULL or point to an event, `abs_timeout` NULL or point to a time.
 */
int ww_auto_event_timedwait(ww_auto_event_t *event,
                            const struct timespec *abs_timeout);

/**
 * `ww_auto_event_wait` until `abs_timeout` at the latest, an absolute time on `clock`
 * (`CLOCK_MONOTONIC` or `CLOCK_REALTIME`). The time is checked only if the call must wait.
 *
 * Errors:
 * - `ETIMEDOUT`: the timeout expired.
 * - `EINVAL`: `event` is NULL or misaligned; `clock` is another clock; the call would wait, and
 *   `abs_timeout` is NULL or its nanoseconds are not in [0, 10^9).
 *
 * Blocks. Not a cancellation point.
 *
 * # Safety
 * `event` must be NULL or point to an event, `abs_timeout` NULL or point to a time.
 */
int ww_auto_event_clockwait(ww_auto_event_t *event,
                            int clock,
                            const struct timespec *abs_timeout);

/**
 * Calls `routine` unless one has completed with this `once`; if another thread is running one,
 * waits for it. When this returns, the routine's effects are visible to the caller. If the routine
 * has completed before, the call costs one load.
 *
 * If `routine` is left other than by a return (a C++ exception, `pthread_exit`), it counts as not
 * called, and one of the waiting threads calls its own. A `routine` that calls `ww_once` with the
 * same `once` deadlocks.
 *
 * Errors:
 * - `EINVAL`: `once` is NULL or misaligned; `routine` is NULL.
 *
 * Blocks. Not a cancellation point. Must not be called from a signal handler. Modelled on
 * `pthread_once`.
 *
 * # Safety
 * `once` must be NULL or point to a `ww_once_t`. `routine` must be NULL or a function that may be
 * called.
 */
int ww_once(ww_once_t *once,
            void (*routine)(void));

/**
 * `ww_once` for a function that takes an argument. If calls differ in their function or argument,
 * those of the first caller are used.
 *
 * Errors:
 * - `EINVAL`: `once` is NULL or misaligned; `routine` is NULL.
 *
 * Blocks. Not a cancellation point. Must not be called from a signal handler. Modelled on C++11's
 * `std::call_once`.
 *
 * # Safety
 * As for `ww_once`. `argument` must be what `routine` expects.
 */
int ww_once_call(ww_once_t *once,
                 void (*routine)(void *argument),
                 void *argument);

/**
 * Returns the current number of buckets in the process's table of private waiters; 0 before the
 * first wait.
 *
 * Does not block. Async-signal-safe.
 */
size_t ww_table_buckets(void);

/**
 * Grows the waiter table to at least `buckets` buckets, so that no thread has to grow it later.
 *
 * About one for each thread that waits at the same time is right. The table grows towards that by
 * itself and never shrinks. The environment variable `WAITWORD_BUCKETS` sets the initial number.
 *
 * Returns the resulting number of buckets.
 *
 * Errors:
 * - `ENOMEM`: out of memory. The table is unchanged and still works.
 *
 * May block for a moment while another thread changes the table. Not async-signal-safe.
 */
long ww_table_reserve(size_t buckets);

/**
 * Returns how many bytes of address space are used by the waiter table, the smaller tables that it
 * has replaced, and the memory that threads sleep on.
 *
 * Does not block. Async-signal-safe.
 */
size_t ww_table_mapped_bytes(void);

/**
 * Returns how long a private wait spins before it sleeps, in nanoseconds; 0 if it sleeps at once.
 *
 * The default is about as long as a sleep and a wake-up take. The environment variable
 * `WAITWORD_SPIN_NS` or `ww_set_spin_budget_ns` sets it. Does not block.
 */
uint64_t ww_spin_budget_ns(void);

/**
 * Sets how long a private wait spins before it sleeps, in nanoseconds, for all threads of this
 * process from their next wait on; 0 means to sleep at once. A value above one second is taken as
 * one second. Does not block.
 */
void ww_set_spin_budget_ns(uint64_t nanoseconds);

/**
 * Begins a short critical section in which the kernel is asked not to preempt the calling thread
 * (a time slice extension: rseq, Linux 7.0, glibc 2.41; `waitword doctor` shows whether they are
 * there).
 *
 * If the thread's time slice ends in the section, it runs on for a few microseconds, so that it
 * does not keep others waiting for a whole time slice. Meant for a section of less than about a
 * microsecond, in which the thread holds a lock that others need soon and makes no system call.
 *
 * Returns 1 if it asked, and 0 if a section around this one has asked already or if there are no
 * extensions. Pass the result to `ww_time_slice_end`, in the same thread, after the unlock:
 *
 *     int asked = ww_time_slice_extend();
 *     ww_mutex_lock(&mutex);
 *     ...
 *     ww_mutex_unlock(&mutex);
 *     ww_time_slice_end(asked);
 *
 * Does not block. A thread's first call may make one system call. Async-signal-safe.
 */
int ww_time_slice_extend(void);

/**
 * Ends a section that `ww_time_slice_extend` has begun, given its result. If the thread was given
 * more time, it yields its CPU here.
 *
 * If a section is never ended, the request lasts until the kernel next interrupts the thread. Does
 * not block. Async-signal-safe.
 */
void ww_time_slice_end(int asked);

/**
 * Returns the version of the library that the program runs with, in the format of `WW_VERSION`
 * (the version of the header that it was compiled with): major * 1000000 + minor * 1000 + patch.
 */
unsigned int ww_version(void);

/**
 * Starts to count what the objects of this library have to do, in all threads of the process.
 *
 * Only waits and wakes are counted: an uncontended lock or unlock runs the same code whether
 * counting is on or off, and counts as nothing. A wait or a wake costs one atomic addition more.
 * After a fork the child starts at zero.
 *
 * Does not block. May be called at any time, even while objects are in use.
 */
void ww_stats_enable(void);

/**
 * Stops counting. The counts stay as they are.
 *
 * Does not block. Async-signal-safe.
 */
void ww_stats_disable(void);

/**
 * Returns how often this event (`WW_STATS_CONTENDED` ...) has happened since the first
 * `ww_stats_enable`; 0 for an unknown event. Other threads go on counting meanwhile.
 *
 * Does not block.
 */
uint64_t ww_stats_count(unsigned int event);

/**
 * Begins to record why the threads of this process wait for the objects of this library: which
 * thread kept them, where, and what it did meanwhile. The command `waitword` shows that.
 *
 * `directory` is the absolute name of an existing directory, which gets three files. Waits shorter
 * than `threshold_ns` nanoseconds are not recorded; 10000 is the time that it takes to wake a
 * thread. A recording that has begun before ends. The environment variable `WAITWORD_RECORD`
 * begins one when the library is loaded.
 *
 * Returns 0, or an error number, and then nothing is recorded:
 * - `EINVAL`: `directory` is not absolute, or too long.
 * - `EBUSY`: another thread begins a recording.
 * - `EOPNOTSUPP`: this kernel's pages are not of 4096 bytes.
 * - others: the files cannot be made.
 *
 * May block for some milliseconds. Not async-signal-safe.
 *
 * # Safety
 * `directory` must be NULL, which is refused (`EINVAL`), or point to a string.
 */
int ww_record_start(const char *directory,
                    uint64_t threshold_ns);

/**
 * Ends the recording, if there is one. What was recorded is in its files.
 *
 * May block for some milliseconds. Not async-signal-safe.
 */
void ww_record_stop(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* WAITWORD_H */
