/* Prints the answers of futex(2) and futex2, one line per call. The lines must be the same on the C
 * library alone and under the drop-in. In the spirit of the kernel's own futex tests (wouldblock,
 * timeout, requeue, uninitialized heap, waitv). */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PRIVATE FUTEX_PRIVATE_FLAG
#define U32 2u
#define U32_PRIVATE (U32 | 128u)
#define NR_WAITV 449
#define NR_WAKE 454
#define NR_WAIT 455
#define NR_REQUEUE 456

struct entry { uint64_t val, uaddr; uint32_t flags, reserved; };

static long futex(void *word, int op, uint32_t val, const void *time, void *second, uint32_t val3)
{
	errno = 0;
	return syscall(SYS_futex, word, op, val, time, second, val3);
}

static void show(const char *what, long answer)
{
	int error = errno;
	printf("%s: %ld %s\n", what, answer, answer < 0 ? strerrorname_np(error) : "");
}
#define SHOW(call) do { errno = 0; show(#call, (call)); } while (0)

static struct timespec after(int clock, long milliseconds)
{
	struct timespec time;
	clock_gettime(clock, &time);
	long nanoseconds = time.tv_nsec + milliseconds * 1000000;
	time.tv_sec += nanoseconds / 1000000000;
	time.tv_nsec = nanoseconds % 1000000000;
	return time;
}

static uint32_t one, two, shared_word, *mapped;

/* A waiter with its own thread. */
struct waiter {
	pthread_t thread;
	int op;
	uint32_t bits;
	uint32_t *word;
	long answer;
	int error;
};
static int started;

static void *wait_in_thread(void *argument)
{
	struct waiter *waiter = argument;
	__atomic_add_fetch(&started, 1, __ATOMIC_SEQ_CST);
	errno = 0;
	waiter->answer = futex(waiter->word, waiter->op, 0, NULL, NULL, waiter->bits);
	waiter->error = errno;
	return NULL;
}

static void start(struct waiter *waiters, int count, uint32_t *word, int op, uint32_t bits)
{
	started = 0;
	for (int i = 0; i < count; i++) {
		waiters[i] = (struct waiter){ .op = op, .word = word, .bits = bits };
		pthread_create(&waiters[i].thread, NULL, wait_in_thread, &waiters[i]);
	}
	while (__atomic_load_n(&started, __ATOMIC_SEQ_CST) < count)
		usleep(1000);
	usleep(100000);
}

static void end(const char *what, struct waiter *waiters, int count)
{
	for (int i = 0; i < count; i++) {
		pthread_join(waiters[i].thread, NULL);
		if (waiters[i].answer || waiters[i].error)
			printf("%s: waiter: %ld %d\n", what, waiters[i].answer, waiters[i].error);
	}
}

static void answers_of_waits(void)
{
	struct timespec zero = { 0, 0 }, soon = { 0, 20000000 };
	struct timespec bad = { 0, 1000000000 }, negative = { -1, 0 };
	struct timespec until, past = { 1, 0 };

	one = 0;
	SHOW(futex(&one, FUTEX_WAIT | PRIVATE, 1, NULL, NULL, 0));
	SHOW(futex(&one, FUTEX_WAIT | PRIVATE, 1, &zero, NULL, 0));
	SHOW(futex(&one, FUTEX_WAIT | PRIVATE, 0, &zero, NULL, 0));
	SHOW(futex(&one, FUTEX_WAIT | PRIVATE, 0, &soon, NULL, 0));
	SHOW(futex(&one, FUTEX_WAIT | PRIVATE, 1, &bad, NULL, 0));
	SHOW(futex(&one, FUTEX_WAIT | PRIVATE, 1, &negative, NULL, 0));
	SHOW(futex(&one, FUTEX_WAIT_BITSET | PRIVATE, 0, &past, NULL, 1));
	SHOW(futex(&one, FUTEX_WAIT_BITSET | PRIVATE, 0, &past, NULL, 0));
	until = after(CLOCK_MONOTONIC, 20);
	SHOW(futex(&one, FUTEX_WAIT_BITSET | PRIVATE, 0, &until, NULL, ~0u));
	until = after(CLOCK_REALTIME, 20);
	SHOW(futex(&one, FUTEX_WAIT_BITSET | PRIVATE | FUTEX_CLOCK_REALTIME, 0, &until, NULL, ~0u));
	SHOW(futex(&one, FUTEX_WAIT | PRIVATE | FUTEX_CLOCK_REALTIME, 0, &soon, NULL, 0));
	SHOW(futex((char *)&one + 1, FUTEX_WAIT | PRIVATE, 0, NULL, NULL, 0));
	SHOW(futex((char *)&one + 2, FUTEX_WAKE | PRIVATE, 1, NULL, NULL, 0));
	SHOW(futex(&one, 77 | PRIVATE, 0, NULL, NULL, 0));
	SHOW(futex(&one, FUTEX_FD | PRIVATE, 0, NULL, NULL, 0));
	/* The kernel serves shared words. */
	SHOW(futex(&one, FUTEX_WAIT, 1, NULL, NULL, 0));
	SHOW(futex(&one, FUTEX_WAIT, 0, &soon, NULL, 0));
	SHOW(futex(NULL, FUTEX_WAKE, 1, NULL, NULL, 0));
}

static void bad_addresses(void)
{
	long page = sysconf(_SC_PAGESIZE);
	char *none = mmap(NULL, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *gone = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *read_only = mmap(NULL, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint32_t add_one = 1u << 28 | 1 << 12;
	struct timespec zero = { 0, 0 };

	munmap(gone, page);
	SHOW(futex(NULL, FUTEX_WAIT | PRIVATE, 0, NULL, NULL, 0));
	SHOW(futex(none, FUTEX_WAIT | PRIVATE, 0, NULL, NULL, 0));
	SHOW(futex(gone, FUTEX_WAIT | PRIVATE, 0, NULL, NULL, 0));
	SHOW(futex(gone + 1, FUTEX_WAIT | PRIVATE, 0, NULL, NULL, 0));
	SHOW(futex((void *)-4096L, FUTEX_WAIT | PRIVATE, 0, NULL, NULL, 0));
	SHOW(futex(&one, FUTEX_WAIT | PRIVATE, 0, gone, NULL, 0));
	SHOW(futex(&one, FUTEX_WAIT | PRIVATE, 0, (void *)8, NULL, 0));
	SHOW(futex(none, FUTEX_WAKE | PRIVATE, 1, NULL, NULL, 0));
	SHOW(futex(NULL, FUTEX_WAKE | PRIVATE, 1, NULL, NULL, 0));
	SHOW(futex(none, FUTEX_CMP_REQUEUE | PRIVATE, 1, (void *)1L, &one, 0));
	SHOW(futex(&one, FUTEX_CMP_REQUEUE | PRIVATE, -1, (void *)1L, &two, 0));
	SHOW(futex(none, FUTEX_REQUEUE | PRIVATE, 1, (void *)1L, &one, 0));
	SHOW(futex(&one, FUTEX_WAKE_OP | PRIVATE, 1, (void *)1L, gone, add_one));
	SHOW(futex(&one, FUTEX_WAKE_OP | PRIVATE, 1, (void *)1L, read_only, add_one));
	SHOW(futex(read_only, FUTEX_WAIT | PRIVATE, 0, &zero, NULL, 0));
	SHOW(syscall(NR_WAITV, gone, 1, 0, NULL, 0));
	SHOW(syscall(NR_WAITV, NULL, 1, 0, NULL, 0));
	SHOW(syscall(NR_REQUEUE, gone, 0, 1, 1));
	/* Untouched memory counts as mapped. */
	uint32_t *untouched = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	SHOW(futex(untouched, FUTEX_WAIT | PRIVATE, 1, NULL, NULL, 0));
	munmap(none, page);
	munmap(read_only, page);
	munmap(untouched, page);
}

static void counts(void)
{
	struct waiter waiters[10];
	one = two = 0;

	SHOW(futex(&one, FUTEX_WAKE | PRIVATE, 1, NULL, NULL, 0));
	start(waiters, 10, &one, FUTEX_WAIT | PRIVATE, 0);
	/* A shared wake does not find private waiters. */
	SHOW(futex(&one, FUTEX_WAKE, INT_MAX, NULL, NULL, 0));
	SHOW(futex(&one, FUTEX_WAKE | PRIVATE, 0, NULL, NULL, 0));
	SHOW(futex(&one, FUTEX_WAKE | PRIVATE, 2, NULL, NULL, 0));
	SHOW(futex(&one, FUTEX_CMP_REQUEUE | PRIVATE, 1, (void *)2L, &two, 1));
	SHOW(futex(&one, FUTEX_CMP_REQUEUE | PRIVATE, 1, (void *)2L, &two, 0));
	SHOW(futex(&one, FUTEX_REQUEUE | PRIVATE, 0, (void *)1L, &two, 0));
	SHOW(futex(&two, FUTEX_WAKE | PRIVATE, INT_MAX, NULL, NULL, 0));
	SHOW(futex(&one, FUTEX_WAKE_OP | PRIVATE, 1, (void *)1L, &two, 1u << 28 | 5 << 12));
	SHOW(two);
	SHOW(futex(&one, FUTEX_WAKE | PRIVATE, INT_MAX, NULL, NULL, 0));
	end("counts", waiters, 10);

	two = 0;
	start(waiters, 3, &one, FUTEX_WAIT_BITSET | PRIVATE, 2);
	SHOW(futex(&one, FUTEX_WAKE_BITSET | PRIVATE, INT_MAX, NULL, NULL, 1));
	SHOW(futex(&one, FUTEX_WAKE_BITSET | PRIVATE, INT_MAX, NULL, NULL, 0));
	SHOW(futex(&one, FUTEX_WAKE_BITSET | PRIVATE, INT_MAX, NULL, NULL, 3));
	end("bitset", waiters, 3);

	shared_word = 0;
	start(waiters, 2, &shared_word, FUTEX_WAIT, 0);
	SHOW(futex(&shared_word, FUTEX_WAKE | PRIVATE, 5, NULL, NULL, 0));
	SHOW(futex(&shared_word, FUTEX_WAKE, 5, NULL, NULL, 0));
	end("shared", waiters, 2);
}

static struct entry entry(uint32_t *word, uint64_t value, uint32_t flags)
{
	return (struct entry){ .uaddr = (uintptr_t)word, .val = value, .flags = flags };
}

static void *wake_later(void *word)
{
	usleep(100000);
	while (futex(word, FUTEX_WAKE | (word == mapped ? 0 : PRIVATE), 1, NULL, NULL, 0) == 0)
		usleep(1000);
	return NULL;
}

static void futex2(void)
{
	struct timespec until, past = { 1, 0 };
	struct entry list[129];
	pthread_t thread;

	one = two = 0;
	SHOW(syscall(NR_WAIT, &one, 1UL, ~0u, U32_PRIVATE, NULL, CLOCK_MONOTONIC));
	SHOW(syscall(NR_WAIT, &one, 0UL, 0UL, U32_PRIVATE, NULL, CLOCK_MONOTONIC));
	SHOW(syscall(NR_WAIT, &one, 0UL, 1UL << 32, U32_PRIVATE, NULL, CLOCK_MONOTONIC));
	SHOW(syscall(NR_WAIT, &one, 1UL << 32, 1UL, U32_PRIVATE, NULL, CLOCK_MONOTONIC));
	SHOW(syscall(NR_WAIT, &one, 0UL, 1UL, U32_PRIVATE, &past, CLOCK_BOOTTIME));
	SHOW(syscall(NR_WAIT, &one, 0UL, 1UL, U32_PRIVATE, &past, CLOCK_REALTIME));
	SHOW(syscall(NR_WAIT, &one, 0UL, 1UL, 3u | 128u, &past, CLOCK_REALTIME));
	SHOW(syscall(NR_WAIT, &one, 0UL, 1UL, 0u | 128u, &past, CLOCK_REALTIME));
	SHOW(syscall(NR_WAIT, &one, 0UL, 1UL, 1024u, &past, CLOCK_REALTIME));
	SHOW(syscall(NR_WAIT, NULL, 0UL, 1UL, U32_PRIVATE, &past, CLOCK_REALTIME));
	SHOW(syscall(NR_WAKE, &one, 1UL, 1, U32_PRIVATE));
	SHOW(syscall(NR_WAKE, &one, 0UL, 1, U32_PRIVATE));
	SHOW(syscall(NR_WAKE, &one, 1UL, 1, U32));

	struct waiter waiters[4];
	start(waiters, 4, &one, FUTEX_WAIT | PRIVATE, 0);
	SHOW(syscall(NR_WAKE, &one, 1UL, 0, U32_PRIVATE));
	SHOW(syscall(NR_WAKE, &one, 1UL, 1, U32_PRIVATE));
	list[0] = entry(&one, 0, U32_PRIVATE);
	list[1] = entry(&two, 0, U32_PRIVATE);
	SHOW(syscall(NR_REQUEUE, list, 1, 1, 1));
	SHOW(syscall(NR_REQUEUE, list, 0, 1, 1));
	SHOW(syscall(NR_REQUEUE, list, 0, -1, 1));
	list[0].val = 7;
	SHOW(syscall(NR_REQUEUE, list, 0, 1, 1));
	SHOW(futex(&two, FUTEX_WAKE | PRIVATE, INT_MAX, NULL, NULL, 0));
	SHOW(futex(&one, FUTEX_WAKE | PRIVATE, INT_MAX, NULL, NULL, 0));
	end("futex2", waiters, 4);

	for (int i = 0; i < 129; i++)
		list[i] = entry(&one, 0, U32_PRIVATE);
	SHOW(syscall(NR_WAITV, list, 0, 0, NULL, CLOCK_MONOTONIC));
	SHOW(syscall(NR_WAITV, list, 129, 0, NULL, CLOCK_MONOTONIC));
	SHOW(syscall(NR_WAITV, list, 1, 1, NULL, CLOCK_MONOTONIC));
	until = after(CLOCK_MONOTONIC, 20);
	SHOW(syscall(NR_WAITV, list, 128, 0, &until, CLOCK_MONOTONIC));
	SHOW(syscall(NR_WAITV, list, 1, 0, &until, CLOCK_BOOTTIME));
	list[1] = entry(&two, 9, U32_PRIVATE);
	SHOW(syscall(NR_WAITV, list, 2, 0, &until, CLOCK_MONOTONIC));
	list[1] = entry(&two, 0, 128u);
	SHOW(syscall(NR_WAITV, list, 2, 0, &until, CLOCK_MONOTONIC));
	list[1] = entry(NULL, 0, U32_PRIVATE);
	SHOW(syscall(NR_WAITV, list, 2, 0, &until, CLOCK_MONOTONIC));
	list[1] = entry(&two, 0, U32_PRIVATE);
	list[1].reserved = 1;
	SHOW(syscall(NR_WAITV, list, 2, 0, &until, CLOCK_MONOTONIC));
	list[1] = entry((uint32_t *)((char *)&two + 1), 0, U32_PRIVATE);
	SHOW(syscall(NR_WAITV, list, 2, 0, &until, CLOCK_MONOTONIC));

	/* Woken by the first word, or by the second; with private and shared words in one list. */
	list[1] = entry(&two, 0, U32_PRIVATE);
	pthread_create(&thread, NULL, wake_later, &two);
	SHOW(syscall(NR_WAITV, list, 2, 0, NULL, CLOCK_MONOTONIC));
	pthread_join(thread, NULL);
	list[1] = entry(mapped, 0, U32);
	pthread_create(&thread, NULL, wake_later, &one);
	SHOW(syscall(NR_WAITV, list, 2, 0, NULL, CLOCK_MONOTONIC));
	pthread_join(thread, NULL);
	pthread_create(&thread, NULL, wake_later, mapped);
	SHOW(syscall(NR_WAITV, list, 2, 0, NULL, CLOCK_MONOTONIC));
	pthread_join(thread, NULL);
}

static void on_signal(int number) { (void)number; }

static void *interrupt_later(void *thread)
{
	usleep(100000);
	pthread_kill(*(pthread_t *)thread, SIGUSR1);
	return NULL;
}

static void signals(void)
{
	struct sigaction action = { .sa_handler = on_signal };
	pthread_t self = pthread_self(), thread;

	one = 0;
	sigaction(SIGUSR1, &action, NULL);
	pthread_create(&thread, NULL, interrupt_later, &self);
	SHOW(futex(&one, FUTEX_WAIT | PRIVATE, 0, NULL, NULL, 0));
	pthread_join(thread, NULL);
	struct timespec long_time = { 60, 0 };
	pthread_create(&thread, NULL, interrupt_later, &self);
	SHOW(futex(&one, FUTEX_WAIT | PRIVATE, 0, &long_time, NULL, 0));
	pthread_join(thread, NULL);
}

/* Ends the process with this status, without calling a function. */
static inline __attribute__((always_inline)) void exit_at_once(long status)
{
#ifdef __x86_64__
	__asm__ volatile("syscall" : : "a"(SYS_exit), "D"(status));
#else
	register long number __asm__("x8") = SYS_exit, argument __asm__("x0") = status;
	__asm__ volatile("svc 0" : : "r"(number), "r"(argument));
#endif
}

/* All other system calls reach the kernel unchanged. */
static void all_else(void)
{
	int status;
	SHOW(syscall(SYS_getpid) == getpid());
	SHOW(syscall(-1L));
	SHOW(syscall(1L << 32 | SYS_getpid) == getpid());
	SHOW(syscall(450, -1L, -1L, -1L, -1L));
	SHOW(syscall(SYS_close, -1));
	/* All six arguments. */
	char *six = (char *)syscall(SYS_mmap, NULL, 4096L, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0L);
	SHOW(six != MAP_FAILED && (six[4095] = 1));
	/* The child runs on its parent's stack. It must not call a function, or it would
	 * overwrite its parent's return address. */
	volatile int count = 0;
#ifdef SYS_vfork
	pid_t child = syscall(SYS_vfork);
#else
	pid_t child = syscall(SYS_clone, CLONE_VM | CLONE_VFORK | SIGCHLD, 0, 0, 0, 0);
#endif
	if (child == 0) {
		count++;
		exit_at_once(3);
	}
	waitpid(child, &status, 0);
	SHOW(child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 3 && count == 1);
	child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (child == 0) {
		one = 0;
		struct timespec zero = { 0, 0 };
		_exit(futex(&one, FUTEX_WAIT | PRIVATE, 0, &zero, NULL, 0) == -1 && errno == ETIMEDOUT ? 4 : 5);
	}
	waitpid(child, &status, 0);
	SHOW(child > 0 ? WEXITSTATUS(status) : -1);
	/* The kernel serves PI operations, and puts the thread's number into the word. */
	one = 0;
	SHOW(futex(&one, FUTEX_LOCK_PI | PRIVATE, 0, NULL, NULL, 0));
	SHOW(one == (uint32_t)gettid());
	SHOW(futex(&one, FUTEX_LOCK_PI | PRIVATE, 0, NULL, NULL, 0));
	SHOW(futex(&one, FUTEX_UNLOCK_PI | PRIVATE, 0, NULL, NULL, 0));
	SHOW(futex(&one, FUTEX_UNLOCK_PI | PRIVATE, 0, NULL, NULL, 0));
	/* A call that succeeds leaves errno alone. */
	errno = 12345;
	syscall(SYS_futex, &one, FUTEX_WAKE | PRIVATE, 1, NULL, NULL, 0);
	SHOW(errno == 0);
	errno = 12345;
	syscall(SYS_futex, &one, FUTEX_WAKE | PRIVATE, 1, NULL, NULL, 0);
	printf("errno %d\n", errno);
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	mapped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	answers_of_waits();
	bad_addresses();
	counts();
	futex2();
	signals();
	all_else();
	return 0;
}
