/* Four threads that sleep with the same mutex in turn: each has to wait for it first. Stays. */
#include <pthread.h>
#include <unistd.h>
#include <waitword.h>

static ww_mutex_t mutex = WW_MUTEX_INITIALIZER;

__attribute__((noinline)) void sleeps_in_turn(void) {
    ww_mutex_lock(&mutex);
    usleep(5000);
    ww_mutex_unlock(&mutex);
}
static void *repeat(void *argument) {
    for (;;) sleeps_in_turn();
    return argument;
}
int main(void) {
    pthread_t thread;
    for (int n = 0; n < 4; n++)
        if (pthread_create(&thread, NULL, repeat, NULL)) return 1;
    for (;;) pause();
}
