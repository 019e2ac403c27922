/* Threads that can be cancelled at any moment make raw futex calls. A cancelled thread must not be
 * unwound in the middle of a call. Other threads go on using the same word. */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static uint32_t word;

static long futex(int op, struct timespec *time)
{
	int value = op == FUTEX_WAIT ? 0 : INT_MAX;
	return syscall(SYS_futex, &word, op | FUTEX_PRIVATE_FLAG, value, time, NULL, 0);
}

static void *calls(void *unused)
{
	int before;
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &before);
	for (;;) {
		struct timespec little = { 0, 200000 };
		futex(FUTEX_WAIT, &little);
		futex(FUTEX_WAKE, NULL);
	}
	return unused;
}

/* No thread ever wakes this one. */
static void *wait_for_ever(void *unused)
{
	static uint32_t lonely;
	int before;
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &before);
	for (;;)
		syscall(SYS_futex, &lonely, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
	return unused;
}

int main(void)
{
	for (int round = 0; round < 20; round++) {
		pthread_t thread;
		void *answer;
		pthread_create(&thread, NULL, wait_for_ever, NULL);
		usleep(round * 1000);
		pthread_cancel(thread);
		pthread_join(thread, &answer);
		if (answer != PTHREAD_CANCELED)
			printf("not cancelled\n");
	}
	for (int round = 0; round < 100; round++) {
		pthread_t threads[3];
		for (int i = 0; i < 3; i++)
			pthread_create(&threads[i], NULL, calls, NULL);
		usleep(round % 10 * 300);
		for (int i = 0; i < 3; i++)
			pthread_cancel(threads[i]);
		for (int i = 0; i < 3; i++) {
			void *answer;
			pthread_join(threads[i], &answer);
			if (answer != PTHREAD_CANCELED)
				printf("not cancelled\n");
		}
		/* No waiter may be left in the queue. */
		long woken = futex(FUTEX_WAKE, NULL);
		if (woken)
			printf("%ld were left\n", woken);
	}
	printf("the table is whole\n");
	return 0;
}
