/* Cancellation at each function that waits: those of the drop-in, and others of the C library that
 * a program uses beside them. Compiled as C, cleanup handlers are found by the C library's list and
 * `longjmp`. Compiled as C++, they and destructors are found by unwinding the stack.
 *
 * Prints a line for each failure, and last how many of how many were right. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static mtx_t c11_mutex;
static cnd_t c11_condition;
static sem_t semaphore, shared_semaphore;
static pthread_t sleeper;
static int pipe_ends[2];
static const struct timespec day = {86400, 0};
static struct timespec far_realtime, far_monotonic;

/* What the cancelled thread has left behind. */
static int handlers, destructors, number;

static void lock(void) { pthread_mutex_lock(&mutex); }
static void mutex_wait(void) { pthread_cond_wait(&condition, &mutex); }
static void mutex_timedwait(void) { pthread_cond_timedwait(&condition, &mutex, &far_realtime); }
static void mutex_clockwait(void) {
    pthread_cond_clockwait(&condition, &mutex, CLOCK_MONOTONIC, &far_monotonic);
}
static void c11_lock(void) { mtx_lock(&c11_mutex); }
static void c11_wait(void) { cnd_wait(&c11_condition, &c11_mutex); }
static void c11_timedwait(void) { cnd_timedwait(&c11_condition, &c11_mutex, &far_realtime); }
static void c11_unlock(void) { mtx_unlock(&c11_mutex); }
static void unlock(void) { pthread_mutex_unlock(&mutex); }
static void nothing(void) {}
static void wait_sem(void) { sem_wait(&semaphore); }
static void timedwait_sem(void) { sem_timedwait(&semaphore, &far_realtime); }
static void clockwait_sem(void) { sem_clockwait(&semaphore, CLOCK_MONOTONIC, &far_monotonic); }
static void wait_shared_sem(void) { sem_wait(&shared_semaphore); }
static void timedwait_shared_sem(void) { sem_timedwait(&shared_semaphore, &far_realtime); }
static void wait_for_end(void) { pthread_join(sleeper, NULL); }
static void wait_for_end_until(void) { pthread_timedjoin_np(sleeper, NULL, &far_realtime); }
static void sleep_a_day(void) { nanosleep(&day, NULL); }
static void wait_for_signal(void) { pause(); }
static void read_pipe(void) {
    char byte;
    if (read(pipe_ends[0], &byte, 1) != 1) abort();
}
static void test(void) {
    for (;;) {
        struct timespec step = {0, 1000000};
        pthread_testcancel();
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
        nanosleep(&step, NULL);
        pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    }
}

/* A point: what comes before the wait, the wait, what its cleanup handler does. */
static const struct point {
    const char *name;
    void (*before)(void), (*wait)(void), (*after)(void);
} points[] = {
    {"pthread_cond_wait", lock, mutex_wait, unlock},
    {"pthread_cond_timedwait", lock, mutex_timedwait, unlock},
    {"pthread_cond_clockwait", lock, mutex_clockwait, unlock},
    {"cnd_wait", c11_lock, c11_wait, c11_unlock},
    {"cnd_timedwait", c11_lock, c11_timedwait, c11_unlock},
    {"sem_wait", nothing, wait_sem, nothing},
    {"sem_timedwait", nothing, timedwait_sem, nothing},
    {"sem_clockwait", nothing, clockwait_sem, nothing},
    {"sem_wait, shared", nothing, wait_shared_sem, nothing},
    {"sem_timedwait, shared", nothing, timedwait_shared_sem, nothing},
    {"pthread_join", nothing, wait_for_end, nothing},
    {"pthread_timedjoin_np", nothing, wait_for_end_until, nothing},
    {"pthread_testcancel", nothing, test, nothing},
    {"nanosleep", nothing, sleep_a_day, nothing},
    {"pause", nothing, wait_for_signal, nothing},
    {"read", nothing, read_pipe, nothing},
};

#ifdef __cplusplus
struct Counted {
    ~Counted() { destructors++; }
};
#endif

static void handler(void *point) {
    handlers++;
    ((const struct point *)point)->after();
}

struct run {
    const struct point *point;
    int type;
};

static void *run(void *argument) {
    const struct run *run = (const struct run *)argument;
    __atomic_store_n(&number, (int)syscall(SYS_gettid), __ATOMIC_SEQ_CST);
    pthread_setcanceltype(run->type, NULL);
#ifdef __cplusplus
    Counted counted;
#endif
    run->point->before();
    pthread_cleanup_push(handler, (void *)run->point);
    run->point->wait();
    pthread_cleanup_pop(0);
    return NULL;
}

static void *sleep_for_ever(void *unused) {
    for (;;) pause();
    return unused;
}

/* Whether the thread has slept for some milliseconds. */
static void until_asleep(int thread) {
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
    for (int asleep = 0; asleep < 6;) {
        int file = open(path, O_RDONLY);
        if (file < 0) return;
        ssize_t length = read(file, text, sizeof text - 1);
        close(file);
        text[length > 0 ? length : 0] = 0;
        const char *end = strrchr(text, ')');
        asleep = end != NULL && end[2] == 'S' ? asleep + 1 : 0;
        usleep(1000);
    }
}

/* The error, or NULL. */
static const char *cancel_at(const struct point *point, int type) {
    struct run it = {point, type};
    pthread_t thread;
    void *result = NULL;
    handlers = destructors = number = 0;
    if (pthread_create(&thread, NULL, run, &it) != 0) return "no thread";
    while (__atomic_load_n(&number, __ATOMIC_SEQ_CST) == 0) usleep(100);
    if (point->wait != test) until_asleep(number);
    if (pthread_cancel(thread) != 0) return "pthread_cancel failed";
    if (pthread_join(thread, &result) != 0) return "pthread_join failed";
    if (result != PTHREAD_CANCELED) return "it returned";
    if (handlers != 1) return "the cleanup handler did not run once";
#ifdef __cplusplus
    if (destructors != 1) return "the destructor did not run once";
#endif
    /* POSIX: the handler is called with the mutex locked, so it could unlock it. */
    if (pthread_mutex_trylock(&mutex) != 0) return "the mutex is still locked";
    pthread_mutex_unlock(&mutex);
    if (mtx_trylock(&c11_mutex) != thrd_success) return "C11's mutex is still locked";
    mtx_unlock(&c11_mutex);
    return NULL;
}

int main(void) {
    const int count = sizeof points / sizeof *points;
    int right = 0;
    alarm(60);
    setvbuf(stdout, NULL, _IONBF, 0);
    clock_gettime(CLOCK_REALTIME, &far_realtime);
    clock_gettime(CLOCK_MONOTONIC, &far_monotonic);
    far_realtime.tv_sec += 86400;
    far_monotonic.tv_sec += 86400;
    mtx_init(&c11_mutex, mtx_plain);
    cnd_init(&c11_condition);
    sem_init(&semaphore, 0, 0);
    sem_init(&shared_semaphore, 1, 0);
    if (pipe(pipe_ends) != 0 || pthread_create(&sleeper, NULL, sleep_for_ever, NULL) != 0) return 2;
    for (int n = 0; n < count; n++) {
        for (int asynchronous = 0; asynchronous < 2; asynchronous++) {
            const char *type = asynchronous ? "asynchronous" : "deferred";
            const char *wrong = cancel_at(
                &points[n], asynchronous ? PTHREAD_CANCEL_ASYNCHRONOUS : PTHREAD_CANCEL_DEFERRED);
            right += wrong == NULL;
            if (wrong != NULL) printf("FAIL %s, %s: %s\n", points[n].name, type, wrong);
        }
    }
    printf("%d of %d\n", right, 2 * count);
    return right == 2 * count ? 0 : 1;
}
