/* Uses a lock of each kind, waiting threads, a raw futex, and nothing else. */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t sem;
static int turn, word;

static void *other(void *unused)
{
	for (int i = 0; i < 100; i++) {
		pthread_mutex_lock(&mutex);
		while (turn != 1)
			pthread_cond_wait(&changed, &mutex);
		turn = 0;
		pthread_cond_broadcast(&changed);
		pthread_mutex_unlock(&mutex);
		pthread_rwlock_rdlock(&rwlock);
		pthread_rwlock_unlock(&rwlock);
	}
	sem_wait(&sem);
	pthread_barrier_wait(&barrier);
	return unused;
}

int main(void)
{
	const struct timespec soon = { .tv_nsec = 1000000 };
	pthread_t thread;
	sem_init(&sem, 0, 0);
	pthread_barrier_init(&barrier, NULL, 2);
	pthread_create(&thread, NULL, other, NULL);
	for (int i = 0; i < 100; i++) {
		pthread_mutex_lock(&mutex);
		turn = 1;
		pthread_cond_signal(&changed);
		while (turn != 0)
			pthread_cond_wait(&changed, &mutex);
		pthread_mutex_unlock(&mutex);
		pthread_rwlock_wrlock(&rwlock);
		pthread_rwlock_unlock(&rwlock);
	}
	syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &soon);
	sem_post(&sem);
	pthread_barrier_wait(&barrier);
	pthread_join(thread, NULL);
	printf("done, %s\n", getauxval(AT_SECURE) ? "with another's rights" : "as its caller");
	return 0;
}
