/* Operations with priority inheritance and plain operations on the same private words, one line per
 * call. The lines must be the same on the C library alone and under the drop-in. Each case has one
 * waiter, calls that find it, and a last call that makes it return, on the kernel alone, too. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PRIVATE FUTEX_PRIVATE_FLAG
#define U32_PRIVATE 130u
#define NR_WAITV 449
#define NR_WAKE 454
#define NR_REQUEUE 456
#define LOCK_PI2 13
#define ALL ((void *)(long)INT_MAX)
#define NONE ((void *)0L)
#define ONE ((void *)1L)
#define ADD_0 (1u << 28 | 5u << 24)

struct entry { uint64_t val, uaddr; uint32_t flags, reserved; };

static uint32_t word, mutex, elsewhere;

static long futex(uint32_t *first, int op, uint32_t val, const void *time, uint32_t *second,
		  uint32_t val3)
{
	errno = 0;
	return syscall(SYS_futex, first, op | PRIVATE, val, time, second, val3);
}

static long requeue2(uint32_t *from, uint32_t *to, int wake, int moved)
{
	struct entry entries[] = { { *from, (uintptr_t)from, U32_PRIVATE, 0 },
				   { *to, (uintptr_t)to, U32_PRIVATE, 0 } };
	return syscall(NR_REQUEUE, entries, 0, wake, moved);
}

static long waitv(uint32_t *first, uint32_t *second)
{
	struct entry entries[] = { { *first, (uintptr_t)first, U32_PRIVATE, 0 },
				   { *second, (uintptr_t)second, U32_PRIVATE, 0 } };
	return syscall(NR_WAITV, entries, 2, 0, NULL, 0);
}

static pid_t main_thread, waiting_thread;

/* Describes a word's value, without numbers that differ from run to run. */
static const char *held(uint32_t value)
{
	static char text[64];
	uint32_t owner = value & FUTEX_TID_MASK;
	const char *name = owner == 0 ? "free" : owner == (uint32_t)main_thread ? "main's" :
		owner == (uint32_t)waiting_thread ? "the waiter's" : "?";
	snprintf(text, sizeof text, "%s%s", name, value & FUTEX_WAITERS ? " waited for" : "");
	return text;
}

#define SHOW(call) do { \
	errno = 0; \
	long answer_ = (call); \
	int error_ = errno; \
	printf("  %s: %ld %s", #call, answer_, answer_ < 0 ? strerrorname_np(error_) : ""); \
	printf(" [%s]", held(word)); \
	printf("\n"); \
} while (0)

/* A wait, in a thread of its own. */
struct wait {
	const char *name;
	long (*wait)(void);
};
static long answer_of_wait;
static int error_of_wait, may_go_on;

static void *run_wait(void *argument)
{
	const struct wait *wait = argument;
	__atomic_store_n(&waiting_thread, gettid(), __ATOMIC_SEQ_CST);
	errno = 0;
	answer_of_wait = wait->wait();
	error_of_wait = errno;
	while (!__atomic_load_n(&may_go_on, __ATOMIC_SEQ_CST))
		usleep(1000);
	/* Unlocks whichever of the two words it holds now. */
	if ((word & FUTEX_TID_MASK) == (uint32_t)waiting_thread)
		futex(&word, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0);
	if ((mutex & FUTEX_TID_MASK) == (uint32_t)waiting_thread)
		futex(&mutex, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0);
	return NULL;
}

/* Waits until the thread was seen asleep in the kernel, in whatever call, three times in a row. */
static void until_asleep(pid_t thread)
{
	char path[64], line[256];
	snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)thread);
	for (int asleep = 0; asleep < 3;) {
		usleep(2000);
		int file = open(path, O_RDONLY);
		ssize_t length = read(file, line, sizeof line - 1);
		close(file);
		line[length > 0 ? length : 0] = 0;
		char *after_name = strrchr(line, ')');
		asleep = after_name != NULL && after_name[2] == 'S' ? asleep + 1 : 0;
	}
}

static pthread_t begin(const struct wait *wait)
{
	pthread_t thread;
	printf("%s\n", wait->name);
	waiting_thread = 0;
	may_go_on = 0;
	pthread_create(&thread, NULL, run_wait, (void *)wait);
	while (__atomic_load_n(&waiting_thread, __ATOMIC_SEQ_CST) == 0)
		usleep(1000);
	until_asleep(waiting_thread);
	return thread;
}

static void end(pthread_t thread)
{
	__atomic_store_n(&may_go_on, 1, __ATOMIC_SEQ_CST);
	pthread_join(thread, NULL);
	printf("  back: %ld %s\n", answer_of_wait,
	       answer_of_wait < 0 ? strerrorname_np(error_of_wait) : "");
}

static long wait_plain(void) { return futex(&word, FUTEX_WAIT, word, NULL, NULL, 0); }
static long wait_masked(void) { return futex(&word, FUTEX_WAIT_BITSET, word, NULL, NULL, 3); }
static long wait_elsewhere(void) { return futex(&elsewhere, FUTEX_WAIT, 0, NULL, NULL, 0); }
static long wait_for_two(void) { return waitv(&elsewhere, &word); }
static long wait_to_lock(void) { return futex(&word, FUTEX_LOCK_PI, 0, NULL, NULL, 0); }
static long wait_to_lock2(void) { return futex(&word, LOCK_PI2, 0, NULL, NULL, 0); }
static long wait_requeue(void)
{
	return futex(&word, FUTEX_WAIT_REQUEUE_PI, word, NULL, &mutex, 0);
}

/* ---- A plain waiter, and operations with priority inheritance ---- */

static void inheriting_find(int held_by_main)
{
	struct timespec past = { 1, 0 };

	SHOW(futex(&word, FUTEX_CMP_REQUEUE_PI, 1, NONE, &mutex, word));
	SHOW(futex(&word, FUTEX_CMP_REQUEUE_PI, 1, ALL, &mutex, word));
	SHOW(futex(&word, FUTEX_CMP_REQUEUE_PI, 1, ALL, &mutex, word + 1));
	SHOW(futex(&word, FUTEX_CMP_REQUEUE_PI, 0, ALL, &mutex, word));
	SHOW(futex(&elsewhere, FUTEX_CMP_REQUEUE_PI, 1, ALL, &word, 0));
	SHOW(futex(&word, FUTEX_LOCK_PI, 0, &past, NULL, 0));
	SHOW(futex(&word, LOCK_PI2, 0, &past, NULL, 0));
	SHOW(futex(&word, FUTEX_TRYLOCK_PI, 0, NULL, NULL, 0));
	SHOW(futex(&word, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0));
	SHOW(futex(&word, FUTEX_WAIT_REQUEUE_PI, word, &past, &mutex, 0));
	/* The waiter is still there. */
	SHOW(futex(&word, FUTEX_WAKE, 1, NULL, NULL, 0));
	if (held_by_main)
		SHOW(futex(&word, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0));
}

static void plain_waiters(void)
{
	static const struct wait waits[] = {
		{ "WAIT", wait_plain }, { "WAIT_BITSET", wait_masked }, { "futex_waitv", wait_for_two },
	};
	for (int held_by_main = 0; held_by_main < 2; held_by_main++) {
		for (unsigned i = 0; i < sizeof waits / sizeof *waits; i++) {
			if (held_by_main)
				SHOW(futex(&word, FUTEX_LOCK_PI, 0, NULL, NULL, 0));
			pthread_t thread = begin(&waits[i]);
			inheriting_find(held_by_main);
			end(thread);
		}
		if (held_by_main)
			SHOW(futex(&word, FUTEX_LOCK_PI, 0, NULL, NULL, 0));
		pthread_t thread = begin(&(struct wait){ "WAIT, moved", wait_elsewhere });
		SHOW(futex(&elsewhere, FUTEX_CMP_REQUEUE, 0, ONE, &word, 0));
		inheriting_find(held_by_main);
		end(thread);
	}
}

/* ---- A waiter with priority inheritance, and plain operations ---- */

static void plain_find(void)
{
	SHOW(futex(&word, FUTEX_WAKE, 1, NULL, NULL, 0));
	SHOW(futex(&word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0));
	SHOW(futex(&word, FUTEX_WAKE_BITSET, 1, NULL, NULL, 2));
	SHOW(futex(&word, FUTEX_REQUEUE, 0, NONE, &elsewhere, 0));
	SHOW(futex(&word, FUTEX_REQUEUE, 0, ONE, &elsewhere, 0));
	SHOW(futex(&word, FUTEX_CMP_REQUEUE, 1, NONE, &elsewhere, word));
	SHOW(futex(&word, FUTEX_CMP_REQUEUE, 1, ALL, &elsewhere, word + 1));
	SHOW(futex(&elsewhere, FUTEX_REQUEUE, 1, ALL, &word, 0));
	SHOW(futex(&word, FUTEX_WAKE_OP, 1, ONE, &elsewhere, ADD_0));
	SHOW(futex(&elsewhere, FUTEX_WAKE_OP, 1, ONE, &word, ADD_0));
	SHOW(syscall(NR_WAKE, &word, ~0u, 1, U32_PRIVATE));
	SHOW(syscall(NR_WAKE, &word, ~0u, 0, U32_PRIVATE));
	SHOW(requeue2(&word, &elsewhere, 0, 1));
	SHOW(requeue2(&elsewhere, &word, 1, 1));
}

static void inheriting_waiters(void)
{
	pthread_t thread;

	for (int two = 0; two < 2; two++) {
		SHOW(futex(&word, FUTEX_LOCK_PI, 0, NULL, NULL, 0));
		thread = begin(two ? &(struct wait){ "LOCK_PI2", wait_to_lock2 }
				   : &(struct wait){ "LOCK_PI", wait_to_lock });
		plain_find();
		SHOW(futex(&word, FUTEX_CMP_REQUEUE_PI, 1, ALL, &mutex, word));
		SHOW(futex(&word, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0));
		end(thread);
	}
	thread = begin(&(struct wait){ "WAIT_REQUEUE_PI", wait_requeue });
	plain_find();
	SHOW(futex(&word, FUTEX_LOCK_PI, 0, &(struct timespec){ 1, 0 }, NULL, 0));
	SHOW(futex(&word, FUTEX_CMP_REQUEUE_PI, 1, ALL, &elsewhere, word));
	SHOW(futex(&word, FUTEX_CMP_REQUEUE_PI, 1, ALL, &mutex, word));
	end(thread);
	/* Moved to a word that is held, and then found there. */
	thread = begin(&(struct wait){ "WAIT_REQUEUE_PI, moved", wait_requeue });
	SHOW(futex(&mutex, FUTEX_LOCK_PI, 0, NULL, NULL, 0));
	SHOW(futex(&word, FUTEX_CMP_REQUEUE_PI, 1, ALL, &mutex, word));
	SHOW(futex(&word, FUTEX_WAKE, 1, NULL, NULL, 0));
	SHOW(futex(&mutex, FUTEX_WAKE, 1, NULL, NULL, 0));
	SHOW(futex(&mutex, FUTEX_REQUEUE, 1, ONE, &elsewhere, 0));
	SHOW(futex(&mutex, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0));
	end(thread);
}

int main(void)
{
	main_thread = gettid();
	setvbuf(stdout, NULL, _IOLBF, 0);
	/* Before and after the process has waited with priority inheritance. */
	SHOW(futex(&word, FUTEX_WAKE, 1, NULL, NULL, 0));
	plain_waiters();
	inheriting_waiters();
	plain_waiters();
	SHOW(futex(&word, FUTEX_WAKE, 1, NULL, NULL, 0));
	return 0;
}
