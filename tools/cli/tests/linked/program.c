/* Threads that wait for locks of libwaitword, which others keep for 5 ms, for so many rounds.
 *
 *   program ROUNDS              a recording only if the environment or another process wants one
 *   program ROUNDS DIRECTORY    records there by itself */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <waitword.h>

static ww_mutex_t mutex = WW_MUTEX_INITIALIZER;
static ww_rwlock_t rwlock = WW_RWLOCK_INITIALIZER;
static ww_mutex_t queue = WW_MUTEX_INITIALIZER;
static ww_cond_t filled = WW_COND_INITIALIZER;
static ww_sem_t tokens = WW_SEM_INITIALIZER(0);
static int items;

static void doze(void) { usleep(5000); }

__attribute__((noinline)) void sleeps_with_the_mutex(void) {
    ww_mutex_lock(&mutex);
    doze();
    ww_mutex_unlock(&mutex);
    usleep(500);
}
__attribute__((noinline)) void wants_the_mutex(void) {
    ww_mutex_lock(&mutex);
    ww_mutex_unlock(&mutex);
    usleep(500);
}
__attribute__((noinline)) void sleeps_with_the_rwlock(void) {
    ww_rwlock_wrlock(&rwlock);
    doze();
    ww_rwlock_unlock(&rwlock);
    usleep(500);
}
__attribute__((noinline)) void wants_to_read(void) {
    ww_rwlock_rdlock(&rwlock);
    ww_rwlock_unlock(&rwlock);
    usleep(500);
}
__attribute__((noinline)) void gives(void) {
    doze();
    ww_mutex_lock(&queue);
    items++;
    ww_cond_signal(&filled);
    ww_mutex_unlock(&queue);
    ww_sem_post(&tokens);
}
__attribute__((noinline)) void waits_for_an_item(void) {
    ww_mutex_lock(&queue);
    while (items == 0)
        ww_cond_wait(&filled, &queue);
    items--;
    ww_mutex_unlock(&queue);
}
__attribute__((noinline)) void waits_for_a_token(void) {
    ww_sem_wait(&tokens);
    /* No tail call: the function stays on the stack. */
    __asm__ volatile("");
}

typedef void step(void);
static step *const steps[] = {sleeps_with_the_mutex, wants_the_mutex,   sleeps_with_the_rwlock,
                              wants_to_read,         waits_for_an_item, waits_for_a_token,
                              gives};
static int rounds;
static void *repeat(void *which) {
    for (int round = 0; round < rounds; round++)
        (*(step *const *)which)();
    return NULL;
}
int main(int argc, char **argv) {
    pthread_t threads[sizeof steps / sizeof *steps];
    rounds = atoi(argv[1]);
    if (argc > 2) {
        int refused = ww_record_start("relative", 0);
        int error = ww_record_start(argv[2], 10000);
        printf("%d %s\n", refused, strerror(error));
    }
    for (size_t n = 0; n < sizeof steps / sizeof *steps; n++)
        if (pthread_create(&threads[n], NULL, repeat, (void *)&steps[n]))
            return 4;
    for (size_t n = 0; n < sizeof steps / sizeof *steps; n++)
        pthread_join(threads[n], NULL);
    ww_record_stop();
    return 7;
}
