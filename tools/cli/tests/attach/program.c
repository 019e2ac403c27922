/* Threads that wait for each other, for ever. A line on stdout each time that a lock was had after
 * a wait, so that a test sees that the program goes on.
 *
 *   contended    a mutex, an rwlock and a raw futex, each kept by a thread that sleeps
 *   idle         no thread locks anything, until SIGUSR1; then "contended"
 *   filtered     as "contended", but no file can be opened any more
 *   forks        as "contended", in a child too, which is forked at SIGUSR1 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static int word;

/* 5 ms. */
static void doze(void) { usleep(5000); }

__attribute__((noinline)) void sleeps_with_the_mutex(void) {
    pthread_mutex_lock(&mutex);
    doze();
    pthread_mutex_unlock(&mutex);
    usleep(500);
}
__attribute__((noinline)) void wants_the_mutex(void) {
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    if (write(1, "had\n", 4) != 4)
        _exit(3);
    usleep(500);
}
__attribute__((noinline)) void sleeps_with_the_rwlock(void) {
    pthread_rwlock_wrlock(&rwlock);
    doze();
    pthread_rwlock_unlock(&rwlock);
    usleep(500);
}
__attribute__((noinline)) void wants_to_read(void) {
    pthread_rwlock_rdlock(&rwlock);
    pthread_rwlock_unlock(&rwlock);
    usleep(500);
}
__attribute__((noinline)) void wakes(void) {
    doze();
    __atomic_add_fetch(&word, 1, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
__attribute__((noinline)) void sleeps_on_a_word(void) {
    int seen = __atomic_load_n(&word, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

typedef void step(void);
static step *const steps[] = {sleeps_with_the_mutex, wants_the_mutex, sleeps_with_the_rwlock,
                              wants_to_read, wakes, sleeps_on_a_word};
static void *repeat(void *which) {
    for (;;)
        (*(step *const *)which)();
    return NULL;
}
static void contend(void) {
    pthread_t thread;
    for (size_t n = 0; n < sizeof steps / sizeof *steps; n++)
        if (pthread_create(&thread, NULL, repeat, (void *)&steps[n]))
            _exit(4);
}
static void say(const char *text) {
    if (write(1, text, strlen(text)) < 0)
        _exit(3);
}
static void open_no_files(void) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof code / sizeof *code, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, 2, &filter))
        _exit(5);
}
int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "contended";
    sigset_t set;
    int number;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!strcmp(mode, "filtered"))
        open_no_files();
    if (strcmp(mode, "idle"))
        contend();
    else
        say("had\n");
    while (!sigwait(&set, &number)) {
        if (!strcmp(mode, "idle"))
            contend();
        else if (fork() == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            /* A thread of the parent's may have them. */
            pthread_mutex_init(&mutex, NULL);
            pthread_rwlock_init(&rwlock, NULL);
            contend();
        }
    }
}
