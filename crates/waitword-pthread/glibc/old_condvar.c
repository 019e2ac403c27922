/* A program that was linked before 2003 uses condition variables of version GLIBC_2.2.5, and all
 * zeros as their initialiser. The drop-in's functions have no version, so the dynamic linker binds
 * such a program to them too, and the object has had its 48 bytes since then. (The C library's own
 * functions of that version keep a pointer to another object there.)
 *
 * Threads take turns by three such variables: initialised statically, by the old function, and in
 * zeroed memory. Prints the number of turns. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define OLD(name, ...)               \
    extern int old_##name(__VA_ARGS__); \
    __asm__(".symver old_" #name ", pthread_cond_" #name "@GLIBC_2.2.5")

OLD(init, pthread_cond_t *, const pthread_condattr_t *);
OLD(destroy, pthread_cond_t *);
OLD(wait, pthread_cond_t *, pthread_mutex_t *);
OLD(timedwait, pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
OLD(signal, pthread_cond_t *);
OLD(broadcast, pthread_cond_t *);

enum { THREADS = 4, TURNS = 1000 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t *turned;
static int turn;

static void *take_turns(void *argument) {
    int me = (int)(long)argument;
    for (int n = 0; n < TURNS; n++) {
        pthread_mutex_lock(&mutex);
        while (turn % THREADS != me)
            if (old_wait(turned, &mutex) != 0) exit(2);
        turn++;
        if (old_broadcast(turned) != 0) exit(3);
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

static int run(pthread_cond_t *variable) {
    pthread_t threads[THREADS];
    struct timespec past = {1, 0};
    turned = variable;
    turn = 0;
    for (long n = 0; n < THREADS; n++) pthread_create(&threads[n], NULL, take_turns, (void *)n);
    for (int n = 0; n < THREADS; n++) pthread_join(threads[n], NULL);
    pthread_mutex_lock(&mutex);
    if (old_timedwait(variable, &mutex, &past) != ETIMEDOUT) exit(4);
    pthread_mutex_unlock(&mutex);
    if (old_signal(variable) != 0 || old_destroy(variable) != 0) exit(5);
    return turn;
}

int main(void) {
    static pthread_cond_t initialised = PTHREAD_COND_INITIALIZER;
    pthread_cond_t by_function, *zeroed = (pthread_cond_t *)calloc(1, sizeof *zeroed);
    alarm(60);
    if (old_init(&by_function, NULL) != 0) return 6;
    printf("%d turns\n", run(&initialised) + run(&by_function) + run(zeroed));
    free(zeroed);
    return 0;
}
