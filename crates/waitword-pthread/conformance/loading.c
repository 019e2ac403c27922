/* Locks at unusual times: in constructors and destructors, in libraries that are loaded later,
 * in threads that end, at exit, after the main thread has ended. Sources: POSIX, dlopen(3),
 * exit(3), pthread_exit(3p), pthread_key_create(3p). */
#include "conformance.h"
#include <dlfcn.h>

int library_works(void);

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static int stage;

/* Before main, and before any constructor of a library that was loaded later: priority 101 is
 * the first. */
static pthread_mutex_t early = PTHREAD_MUTEX_INITIALIZER;
static int early_result = -1;
__attribute__((constructor(101))) static void first_of_all(void) {
    early_result = pthread_mutex_lock(&early);
    if (early_result == 0) early_result = pthread_mutex_trylock(&early) == EBUSY ? 0 : -2;
    if (early_result == 0) early_result = pthread_mutex_unlock(&early);
}

CASE(in_constructors) {
    OK(early_result);
    EQ(library_works(), 42);
}

static void load_and_use(void) {
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 32);
    CHECK(length > 0);
    path[length] = 0;
    strcpy(strrchr(path, '/'), "/plugin.so");
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) FAIL("%s", dlerror());
    int (*works)(void);
    *(void **)&works = dlsym(library, "library_works");
    CHECK(works != NULL && works != library_works);
    EQ(works(), 42);
    OK(dlclose(library));
}

CASE(in_a_library_loaded_later) {
    for (int turn = 0; turn < 20; turn++) load_and_use();
}

static void *load(void *unused) {
    (void)unused;
    for (int turn = 0; turn < 10; turn++) {
        OK(pthread_mutex_lock(&mutex));
        load_and_use();
        OK(pthread_mutex_unlock(&mutex));
    }
    return NULL;
}

CASE(loaded_by_threads) {
    struct thread threads[3];
    for (int each = 0; each < 3; each++) start(&threads[each], load, NULL);
    for (int each = 0; each < 3; each++) join(&threads[each]);
}

/* ---- Ends ---- */

static pthread_key_t key;
static int destroyed;
static void lock_in_destructor(void *value) {
    OK(pthread_mutex_lock(&mutex));
    ADD(destroyed, 1);
    OK(pthread_cond_signal(&condition));
    /* It even waits. */
    struct timespec soon = after_ms(CLOCK_REALTIME, 2);
    pthread_cond_timedwait(&condition, &mutex, &soon);
    OK(pthread_mutex_unlock(&mutex));
    if ((long)value > 1) OK(pthread_setspecific(key, (void *)((long)value - 1)));
}

static void *with_a_key(void *unused) {
    (void)unused;
    OK(pthread_setspecific(key, (void *)3));
    return NULL;
}

CASE(in_destructors_of_thread_data) {
    struct thread threads[4];
    OK(pthread_key_create(&key, lock_in_destructor));
    for (int each = 0; each < 4; each++) start(&threads[each], with_a_key, NULL);
    for (int each = 0; each < 4; each++) join(&threads[each]);
    EQ(destroyed, 12);
}

static void at_the_end(void) {
    struct timespec soon = after_ms(CLOCK_REALTIME, 5);
    OK(pthread_mutex_lock(&mutex));
    EQ(pthread_cond_timedwait(&condition, &mutex, &soon), ETIMEDOUT);
    OK(pthread_mutex_unlock(&mutex));
    EQ(library_works(), 42);
    stage++;
}

static void check_the_end(void) {
    if (stage != 1) _exit(7);
}

CASE(in_exit_handlers) {
    CHILD(child, {
        OK(atexit(check_the_end));
        OK(atexit(at_the_end));
        exit(0);
    });
    EQ(end_of(child), 0);
}

static void *wait_forever(void *unused) {
    (void)unused;
    OK(pthread_mutex_lock(&mutex));
    stage = 1;
    for (;;) OK(pthread_cond_wait(&condition, &mutex));
}

/* Other threads wait, hold locks and spin when the process exits: it ends, and its handlers lock
 * meanwhile. */
CASE(exit_while_others_wait) {
    for (int turn = 0; turn < 20; turn++) {
        CHILD(child, {
            struct thread threads[4];
            for (int each = 0; each < 4; each++) start(&threads[each], wait_forever, NULL);
            if (turn % 2) until_asleep(&threads[3]);
            OK(atexit(at_the_end));
            stage = 0;
            exit(5);
        });
        EQ(end_of(child), 5);
    }
}

static void *outlive_main(void *unused) {
    (void)unused;
    pause_ms(20);
    for (int turn = 0; turn < 100; turn++) {
        OK(pthread_mutex_lock(&mutex));
        OK(pthread_cond_broadcast(&condition));
        OK(pthread_mutex_unlock(&mutex));
    }
    EQ(library_works(), 42);
    exit(6);
}

CASE(after_the_main_thread) {
    CHILD(child, {
        struct thread thread;
        start(&thread, outlive_main, NULL);
        pthread_exit(NULL);
    });
    EQ(end_of(child), 6);
}

/* Thousands of threads come and go, each with a wait of its own. */
static void *come_and_go(void *unused) {
    struct timespec soon = after_ms(CLOCK_REALTIME, 0);
    (void)unused;
    OK(pthread_mutex_lock(&mutex));
    pthread_cond_timedwait(&condition, &mutex, &soon);
    OK(pthread_cond_signal(&condition));
    OK(pthread_mutex_unlock(&mutex));
    return NULL;
}

CASE(threads_come_and_go) {
    struct thread threads[16];
    for (int turn = 0; turn < 100; turn++) {
        for (int each = 0; each < 16; each++) start(&threads[each], come_and_go, NULL);
        for (int each = 0; each < 16; each++) join(&threads[each]);
    }
}

/* A thread with the smallest stack allowed. */
CASE(on_a_small_stack) {
    pthread_attr_t attributes;
    pthread_t threads[8];
    OK(pthread_attr_init(&attributes));
    OK(pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN));
    for (int each = 0; each < 8; each++)
        OK(pthread_create(&threads[each], &attributes, come_and_go, NULL));
    for (int each = 0; each < 8; each++) OK(pthread_join(threads[each], NULL));
}

/* exec with waiting threads: the new program starts from nothing. */
PART(start_again) { EQ(library_works(), 42); }

CASE(exec_while_others_wait) {
    CHILD(child, {
        struct thread threads[4];
        for (int each = 0; each < 4; each++) start(&threads[each], wait_forever, NULL);
        until_asleep(&threads[0]);
        execl("/proc/self/exe", "part", "start_again", (char *)NULL);
        _exit(9);
    });
    EQ(end_of(child), 0);
}
