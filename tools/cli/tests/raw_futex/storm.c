/* Threads pass tokens through a word, as in Drepper's paper. A timer's signal handler interrupts
 * all of them and wakes waiters. Children are forked all the while. A thread that is not woken
 * hangs, and the test's watchdog reports it. */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THREADS 6
#define ROUNDS 20000

static uint32_t tokens, hint;
static int running = THREADS;

static long futex(uint32_t *word, int op, uint32_t value, struct timespec *time)
{
	return syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, time, NULL, 0);
}

static void give(void)
{
	__atomic_add_fetch(&tokens, 1, __ATOMIC_SEQ_CST);
	futex(&tokens, FUTEX_WAKE, 1, NULL);
}

static void take(void)
{
	for (;;) {
		uint32_t seen = __atomic_load_n(&tokens, __ATOMIC_SEQ_CST);
		while (seen) {
			if (__atomic_compare_exchange_n(&tokens, &seen, seen - 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
				return;
		}
		if (futex(&tokens, FUTEX_WAIT, 0, NULL) && errno != EAGAIN && errno != EINTR) {
			perror("wait");
			abort();
		}
	}
}

/* The interrupted thread may be in the middle of its own wait or wake. */
static void on_timer(int number)
{
	int before = errno;
	(void)number;
	futex(&hint, FUTEX_WAKE, INT_MAX, NULL);
	give();
	uint32_t seen = __atomic_load_n(&tokens, __ATOMIC_SEQ_CST);
	while (seen && !__atomic_compare_exchange_n(&tokens, &seen, seen - 1, 0, __ATOMIC_SEQ_CST,
						    __ATOMIC_SEQ_CST))
		;
	errno = before;
}

static void *work(void *unused)
{
	for (int i = 0; i < ROUNDS; i++) {
		give();
		take();
		if (i % 500 == 0) {
			struct timespec little = { 0, 100000 };
			futex(&hint, FUTEX_WAIT, 0, &little);
		}
	}
	__atomic_sub_fetch(&running, 1, __ATOMIC_SEQ_CST);
	/* A handler that gives a token and takes it back may leave a thread asleep without its
	 * token: give one more. */
	give();
	return unused;
}

int main(void)
{
	pthread_t threads[THREADS];
	struct sigaction action = { .sa_handler = on_timer, .sa_flags = SA_RESTART };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	struct itimerspec often = { { 0, 300000 }, { 0, 300000 } };
	timer_t timer;
	int children = 0;

	sigaction(SIGUSR1, &action, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, work, NULL);
	timer_create(CLOCK_MONOTONIC, &event, &timer);
	timer_settime(timer, 0, &often, NULL);
	while (__atomic_load_n(&running, __ATOMIC_SEQ_CST) > 0) {
		sigset_t all, before;
		int status;
		sigfillset(&all);
		pthread_sigmask(SIG_BLOCK, &all, &before);
		pid_t child = fork();
		if (child == 0) {
			/* There are no waiters in the child, and waiting works. */
			struct timespec little = { 0, 1000000 };
			uint32_t mine = 0;
			int good = futex(&tokens, FUTEX_WAKE, INT_MAX, NULL) == 0 &&
				   futex(&mine, FUTEX_WAIT, 0, &little) == -1 && errno == ETIMEDOUT;
			_exit(good ? 0 : 1);
		}
		pthread_sigmask(SIG_SETMASK, &before, NULL);
		while (waitpid(child, &status, 0) < 0)
			;
		if (status) {
			printf("a child: %x\n", status);
			return 1;
		}
		children++;
		/* Gives the token that a sleeper may lack after a handler's own give and take. */
		give();
	}
	timer_delete(timer);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	printf("%d children, all came through\n", children > 0);
	return 0;
}
