/* Each of sixteen threads repeatedly locks one of 32 recursive mutexes, twice, under a read lock.
 * In every second section the holder yields or sleeps, like a latch holder in a database's page
 * cache. Prints the same in every run.
 *
 *   holders yield|sleep TURNS */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define THREADS 16
#define MUTEXES 32

static struct {
    pthread_mutex_t mutex;
    long counted;
} __attribute__((aligned(64))) all[MUTEXES];
static pthread_rwlock_t tree = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t start;
static long turns;
static int sleeps;

static void check(int error, const char *what) {
    if (error != 0) {
        fprintf(stderr, "%s: %s\n", what, strerror(error));
        exit(1);
    }
}

static unsigned draw(unsigned *state) {
    *state ^= *state << 13, *state ^= *state >> 17, *state ^= *state << 5;
    return *state;
}

static void work(int count) {
    for (volatile int i = 0; i < count; i++) {
    }
}

static void *take_turns(void *number) {
    unsigned state = 2463534242u + 977 * (unsigned)(long)number;
    pthread_barrier_wait(&start);
    for (long turn = 0; turn < turns; turn++) {
        pthread_mutex_t *mutex;
        unsigned which = draw(&state) % MUTEXES;
        check(pthread_rwlock_rdlock(&tree), "rdlock");
        mutex = &all[which].mutex;
        check(pthread_mutex_lock(mutex), "lock");
        check(pthread_mutex_lock(mutex), "second lock");
        all[which].counted++;
        work(50 + draw(&state) % 100);
        if (turn % 2 == 0) {
            if (sleeps) {
                nanosleep(&(struct timespec){.tv_nsec = 1000}, NULL);
            } else {
                sched_yield();
            }
        }
        check(pthread_mutex_unlock(mutex), "unlock");
        check(pthread_mutex_unlock(mutex), "second unlock");
        check(pthread_rwlock_unlock(&tree), "rwlock_unlock");
        work(50 + draw(&state) % 100);
    }
    return NULL;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

int main(int count, char **arguments) {
    pthread_mutexattr_t recursive;
    pthread_t threads[THREADS];
    double started;
    long sum = 0;
    sleeps = count == 3 && strcmp(arguments[1], "sleep") == 0;
    if (count != 3 || (!sleeps && strcmp(arguments[1], "yield") != 0) ||
        (turns = atol(arguments[2])) <= 0) {
        fprintf(stderr, "usage: holders yield|sleep TURNS\n");
        return 2;
    }
    check(pthread_mutexattr_init(&recursive), "mutexattr_init");
    check(pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE), "settype");
    for (int i = 0; i < MUTEXES; i++)
        check(pthread_mutex_init(&all[i].mutex, &recursive), "mutex_init");
    check(pthread_barrier_init(&start, NULL, THREADS + 1), "barrier_init");
    for (long i = 0; i < THREADS; i++)
        check(pthread_create(&threads[i], NULL, take_turns, (void *)i), "create");
    pthread_barrier_wait(&start);
    started = now();
    for (int i = 0; i < THREADS; i++) check(pthread_join(threads[i], NULL), "join");
    started = now() - started;
    for (int i = 0; i < MUTEXES; i++) sum += all[i].counted;
    printf("turns %ld\n", sum);
    fprintf(stderr, "seconds %f\n", started);
    return sum != THREADS * turns;
}
