/* Two threads that each hold a mutex which they had to wait for, and want the other's. Prints the
 * two threads and `ready`, and stays. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <waitword.h>

static ww_mutex_t mutexes[2];
static long ids[2];
static int held;

static void check(int error) {
    if (error) _exit(1);
}
__attribute__((noinline)) void takes_the_first(int which) { check(ww_mutex_lock(&mutexes[which])); }
__attribute__((noinline)) void wants_the_second(int which) {
    check(ww_mutex_lock(&mutexes[!which]));
    _exit(2);
}
static void *run(void *argument) {
    int which = argument != NULL;
    ids[which] = syscall(SYS_gettid);
    takes_the_first(which);
    __atomic_fetch_add(&held, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&held, __ATOMIC_SEQ_CST) < 2) usleep(100);
    wants_the_second(which);
    return NULL;
}
/* Whether the thread sleeps in a futex call. (If it runs, there is no number.) */
static int sleeps(long id) {
    char name[64];
    long call = 0;
    snprintf(name, sizeof name, "/proc/self/task/%ld/syscall", id);
    FILE *file = fopen(name, "r");
    check(file == NULL);
    int is_asleep = fscanf(file, "%ld", &call) == 1 && call == SYS_futex;
    fclose(file);
    return is_asleep;
}
int main(int argc, char **argv) {
    pthread_t thread;
    check(argc != 2);
    for (int which = 0; which < 2; which++) {
        check(ww_mutex_init(&mutexes[which], (unsigned int)strtoul(argv[1], NULL, 0)));
        check(ww_mutex_lock(&mutexes[which]));
        check(pthread_create(&thread, NULL, run, which ? &ids : NULL));
        /* It waits for `main`. */
        while (!__atomic_load_n(&ids[which], __ATOMIC_SEQ_CST) || !sleeps(ids[which])) usleep(100);
        check(ww_mutex_unlock(&mutexes[which]));
    }
    while (__atomic_load_n(&held, __ATOMIC_SEQ_CST) < 2) usleep(100);
    usleep(10000);
    while (!sleeps(ids[0]) || !sleeps(ids[1])) usleep(100);
    printf("%ld %ld ready\n", ids[0], ids[1]);
    fflush(stdout);
    for (;;) pause();
}
