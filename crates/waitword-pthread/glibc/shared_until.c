/* Waits for process-shared objects, which stay the C library's, until a time. A program that was
 * linked with glibc 2.28 or 2.29 does that by these functions only: those with a clock came later.
 *
 * Prints the number of waits that timed out and of those that succeeded. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mutex;
static pthread_rwlock_t rwlock;
static pthread_cond_t condition;
static sem_t semaphore;
static struct timespec until;
static int timed_out;

static void expect_time_out(int error) { timed_out += error == ETIMEDOUT; }

static void *wait_for_all(void *unused) {
    expect_time_out(pthread_mutex_timedlock(&mutex, &until));
    expect_time_out(pthread_rwlock_timedrdlock(&rwlock, &until));
    expect_time_out(pthread_rwlock_timedwrlock(&rwlock, &until));
    expect_time_out(sem_timedwait(&semaphore, &until) == -1 ? errno : 0);
    return unused;
}

int main(void) {
    pthread_mutexattr_t of_mutex;
    pthread_rwlockattr_t of_rwlock;
    pthread_condattr_t of_condition;
    pthread_t thread;
    int taken = 0;
    alarm(60);
    pthread_mutexattr_init(&of_mutex);
    pthread_mutexattr_setpshared(&of_mutex, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&mutex, &of_mutex);
    pthread_rwlockattr_init(&of_rwlock);
    pthread_rwlockattr_setpshared(&of_rwlock, PTHREAD_PROCESS_SHARED);
    pthread_rwlock_init(&rwlock, &of_rwlock);
    pthread_condattr_init(&of_condition);
    pthread_condattr_setpshared(&of_condition, PTHREAD_PROCESS_SHARED);
    pthread_cond_init(&condition, &of_condition);
    sem_init(&semaphore, 1, 0);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 50000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;

    pthread_mutex_lock(&mutex);
    pthread_rwlock_wrlock(&rwlock);
    pthread_create(&thread, NULL, wait_for_all, NULL);
    pthread_join(thread, NULL);
    expect_time_out(pthread_cond_timedwait(&condition, &mutex, &until));
    pthread_mutex_unlock(&mutex);
    pthread_rwlock_unlock(&rwlock);

    sem_post(&semaphore);
    taken += pthread_mutex_timedlock(&mutex, &until) == 0;
    taken += pthread_rwlock_timedrdlock(&rwlock, &until) == 0;
    pthread_rwlock_unlock(&rwlock);
    taken += pthread_rwlock_timedwrlock(&rwlock, &until) == 0;
    taken += sem_timedwait(&semaphore, &until) == 0;
    printf("%d timed out, %d taken\n", timed_out, taken);
    return timed_out == 5 && taken == 4 ? 0 : 1;
}
