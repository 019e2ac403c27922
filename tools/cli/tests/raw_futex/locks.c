/* The program of the environment's tests. The argument selects what it does. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile long counter;

static void lock_often(int times)
{
	for (int i = 0; i < times; i++) {
		pthread_mutex_lock(&mutex);
		counter++;
		pthread_mutex_unlock(&mutex);
	}
}

static void *twenty_thousand(void *unused)
{
	lock_often(20000);
	return unused;
}

static void *one(void *unused)
{
	pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex);
	return unused;
}

static void contend(void)
{
	pthread_t threads[4], late;
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, twenty_thousand, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	pthread_mutex_lock(&mutex);
	pthread_create(&late, NULL, one, NULL);
	usleep(300000);
	pthread_mutex_unlock(&mutex);
	pthread_join(late, NULL);
	printf("counted %ld\n", counter);
}

static pthread_mutex_t inheriting;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static volatile int waits, signalled;

static void *one_inheriting(void *unused)
{
	pthread_mutex_lock(&inheriting);
	pthread_mutex_unlock(&inheriting);
	return unused;
}

static void *wait_inheriting(void *unused)
{
	pthread_mutex_lock(&inheriting);
	waits = 1;
	while (!signalled)
		pthread_cond_wait(&condition, &inheriting);
	pthread_mutex_unlock(&inheriting);
	return unused;
}

/* One thread waits for a priority-inheriting mutex, and another one waits with that mutex on a
 * condition variable. */
static void inherit(void)
{
	pthread_mutexattr_t attributes;
	pthread_t late, waiter;
	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&inheriting, &attributes);
	pthread_mutex_lock(&inheriting);
	pthread_create(&late, NULL, one_inheriting, NULL);
	usleep(300000);
	pthread_mutex_unlock(&inheriting);
	pthread_join(late, NULL);
	pthread_create(&waiter, NULL, wait_inheriting, NULL);
	while (!waits)
		usleep(1000);
	pthread_mutex_lock(&inheriting);
	signalled = 1;
	pthread_cond_signal(&condition);
	pthread_mutex_unlock(&inheriting);
	pthread_join(waiter, NULL);
}

/* Back-to-back critical sections of some microseconds, for half a second. */
static void *again_and_again(void *until)
{
	struct timespec now;
	do {
		pthread_mutex_lock(&mutex);
		for (volatile int i = 0; i < 1000; i++)
			;
		pthread_mutex_unlock(&mutex);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec * 1000 + now.tv_nsec / 1000000 < *(long *)until);
	return NULL;
}

static void compete(void)
{
	pthread_t threads[3];
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	long until = now.tv_sec * 1000 + now.tv_nsec / 1000000 + 500;
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, again_and_again, &until);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
}

/* In each of five rounds, locks twice for reading and once for writing: an initialised lock and one
 * of zeros. */
static void read_and_write(void)
{
	static pthread_rwlock_t zeros = PTHREAD_RWLOCK_INITIALIZER;
	pthread_rwlock_t made, *locks[] = { &zeros, &made };
	int errors = 0;
	pthread_rwlock_init(&made, NULL);
	for (int i = 0; i < 10; i++) {
		pthread_rwlock_t *lock = locks[i % 2];
		errors += pthread_rwlock_rdlock(lock) || pthread_rwlock_tryrdlock(lock);
		errors += pthread_rwlock_trywrlock(lock) != EBUSY;
		errors += pthread_rwlock_unlock(lock) || pthread_rwlock_unlock(lock);
		errors += pthread_rwlock_wrlock(lock) || pthread_rwlock_wrlock(lock) != EDEADLK;
		errors += pthread_rwlock_unlock(lock) || pthread_rwlock_unlock(lock) != EPERM;
	}
	errors += pthread_rwlock_destroy(&made);
	printf("%d errors\n", errors);
}

static uint32_t word;

static void *wake(void *unused)
{
	usleep(1000);
	while (syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0) == 0)
		;
	return unused;
}

static void wait_thrice(void)
{
	for (int i = 0; i < 3; i++) {
		pthread_t thread;
		pthread_create(&thread, NULL, wake, NULL);
		while (syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0))
			;
		pthread_join(thread, NULL);
	}
}

/* Wakes the waiter again some microseconds after its last wake-up, once it waits again. */
static void *wake_often(void *unused)
{
	for (int i = 0; i < 1000; i++) {
		for (volatile int spin = 0; spin < 5000; spin++)
			;
		while (syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0) == 0)
			;
	}
	return unused;
}

static void wait_often(void)
{
	pthread_t thread;
	pthread_create(&thread, NULL, wake_often, NULL);
	for (int i = 0; i < 1000; i++)
		while (syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0))
			;
	pthread_join(thread, NULL);
}

static void fork_twice(void)
{
	lock_often(1000);
	pid_t child = fork();
	if (child == 0) {
		lock_often(7);
		exit(0);
	}
	waitpid(child, NULL, 0);
	child = fork();
	if (child == 0) {
		lock_often(9);
		_exit(0);
	}
	waitpid(child, NULL, 0);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	if (!strcmp(what, "contend"))
		contend();
	else if (!strcmp(what, "inherit"))
		inherit();
	else if (!strcmp(what, "rwlock"))
		read_and_write();
	else if (!strcmp(what, "compete"))
		compete();
	else if (!strcmp(what, "wait"))
		wait_thrice();
	else if (!strcmp(what, "wait-often"))
		wait_often();
	else if (!strcmp(what, "fork"))
		fork_twice();
	else if (!strcmp(what, "clear")) {
		clearenv();
		lock_often(1);
		if (chdir("/"))
			return 1;
	} else if (!strcmp(what, "owner")) {
		pthread_mutex_lock(&mutex);
		printf("%s\n", mutex.__data.__owner ? "the C library's" : "ours");
		pthread_mutex_unlock(&mutex);
	} else
		return 1;
	return 0;
}
