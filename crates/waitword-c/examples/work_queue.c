/*
 * A bounded work queue: producers wait while it is full, consumers while it is empty. It has one
 * mutex and two condition variables, 40 bytes of locks in all, and needs no call to initialise or
 * destroy them.
 *
 * The calls are those of pthreads under other names, and return 0 or an error number as they do.
 * The consumers here also give up if nothing has arrived for a while, on the monotonic clock.
 *
 *     cc work_queue.c $(pkg-config --cflags --libs waitword) -pthread && ./a.out
 */
#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <waitword.h>

enum { LENGTH = 16, PRODUCERS = 3, CONSUMERS = 3, JOBS_EACH = 1000 };

struct queue {
    ww_mutex_t mutex; /* guards everything below */
    ww_cond_t not_empty, not_full;
    long jobs[LENGTH];
    unsigned first, count;
    bool closed;
};

static struct queue queue = {
    .mutex = WW_MUTEX_INITIALIZER,
    .not_empty = WW_COND_INITIALIZER,
    .not_full = WW_COND_INITIALIZER,
};

/* For calls that must not fail: the mutex is a plain one, and this program has no bugs. */
static void must(int error)
{
    if (error) {
        fprintf(stderr, "work_queue: %s\n", strerror(error));
        exit(1);
    }
}

static void queue_push(struct queue *q, long job)
{
    must(ww_mutex_lock(&q->mutex));
    while (q->count == LENGTH)
        must(ww_cond_wait(&q->not_full, &q->mutex));
    q->jobs[(q->first + q->count++) % LENGTH] = job;
    must(ww_mutex_unlock(&q->mutex));
    must(ww_cond_signal(&q->not_empty));
}

/* Returns 0 and the next job; ECANCELED if the queue is closed and no job is left; ETIMEDOUT if no
 * job arrived in time. */
static int queue_pop(struct queue *q, long *job, const struct timespec *deadline)
{
    int error = 0;
    must(ww_mutex_lock(&q->mutex));
    while (q->count == 0 && !q->closed && error != ETIMEDOUT) {
        error = ww_cond_clockwait(&q->not_empty, &q->mutex, CLOCK_MONOTONIC, deadline);
        if (error != ETIMEDOUT)
            must(error);
    }
    /* The state of the queue decides, whatever ended the wait. */
    if (q->count > 0) {
        *job = q->jobs[q->first];
        q->first = (q->first + 1) % LENGTH;
        q->count--;
        error = 0;
    } else if (q->closed) {
        error = ECANCELED;
    }
    must(ww_mutex_unlock(&q->mutex));
    if (error == 0)
        must(ww_cond_signal(&q->not_full));
    return error;
}

static void queue_close(struct queue *q)
{
    must(ww_mutex_lock(&q->mutex));
    q->closed = true;
    /* With the mutex held, no thread wakes in vain: each continues once it gets the mutex. */
    must(ww_cond_broadcast(&q->not_empty));
    must(ww_mutex_unlock(&q->mutex));
}

static void *produce(void *unused)
{
    for (long job = 1; job <= JOBS_EACH; job++)
        queue_push(&queue, job);
    return unused;
}

static void *consume(void *sum)
{
    for (;;) {
        struct timespec deadline;
        clock_gettime(CLOCK_MONOTONIC, &deadline);
        deadline.tv_sec += 30;
        long job = 0;
        int error = queue_pop(&queue, &job, &deadline);
        if (error == ECANCELED)
            return NULL;
        must(error);
        *(long *)sum += job;
    }
}

int main(void)
{
    pthread_t producers[PRODUCERS], consumers[CONSUMERS];
    long sums[CONSUMERS] = {0}, sum = 0;
    for (int i = 0; i < CONSUMERS; i++)
        must(pthread_create(&consumers[i], NULL, consume, &sums[i]));
    for (int i = 0; i < PRODUCERS; i++)
        must(pthread_create(&producers[i], NULL, produce, NULL));
    for (int i = 0; i < PRODUCERS; i++)
        must(pthread_join(producers[i], NULL));
    queue_close(&queue);
    for (int i = 0; i < CONSUMERS; i++) {
        must(pthread_join(consumers[i], NULL));
        sum += sums[i];
    }
    const long expected = PRODUCERS * (JOBS_EACH * (JOBS_EACH + 1L) / 2);
    printf("work_queue: %d jobs done, their sum is %ld\n", PRODUCERS * JOBS_EACH, sum);
    return sum != expected;
}
