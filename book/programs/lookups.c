/*
 * Looks names up, like a resolver or a proxy: a cache in front of a server that takes its time.
 * Eight threads share the cache. The "server" is a second process that answers each question after
 * two milliseconds, and answers up to eight at a time.
 *
 *     lookups [TIMES]    does it all again and again, each time with an empty cache
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 8, LOOKUPS = 60, NAMES = 200 };

static int to_server[THREADS];
static struct {
    pthread_mutex_t lock;
    int known[NAMES]; /* 0: not yet */
} cache = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Asks the server, and waits for its answer. */
static int ask(int thread, int name)
{
    int answer;
    if (write(to_server[thread], &name, sizeof name) != sizeof name ||
        read(to_server[thread], &answer, sizeof answer) != sizeof answer) {
        perror("server");
        exit(1);
    }
    return answer;
}

// ANCHOR: look_up
static int look_up(int thread, int name)
{
    pthread_mutex_lock(&cache.lock);
    int answer = cache.known[name];
    if (answer == 0) {
        answer = ask(thread, name);
        cache.known[name] = answer;
    }
    pthread_mutex_unlock(&cache.lock);
    return answer;
}
// ANCHOR_END: look_up

static void *work(void *argument)
{
    int thread = (int)(long)argument;
    unsigned seed = thread + 1;
    for (int i = 0; i < LOOKUPS; i++) {
        int name = rand_r(&seed) % NAMES;
        if (look_up(thread, name) != name + 1) {
            fprintf(stderr, "wrong answer\n");
            exit(1);
        }
    }
    return NULL;
}

/* One connection of the server. */
static void *serve(void *argument)
{
    int connection = (int)(long)argument;
    const struct timespec pause = {.tv_nsec = 2000000};
    int name;
    while (read(connection, &name, sizeof name) == sizeof name) {
        int answer = name + 1;
        nanosleep(&pause, NULL);
        if (write(connection, &answer, sizeof answer) != sizeof answer)
            break;
    }
    return NULL;
}

static void start_server(void)
{
    int ends[THREADS][2];
    for (int i = 0; i < THREADS; i++)
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends[i]) != 0) {
            perror("socketpair");
            exit(1);
        }
    if (fork() == 0) {
        pthread_t connections[THREADS];
        for (int i = 0; i < THREADS; i++) {
            close(ends[i][0]);
            pthread_create(&connections[i], NULL, serve, (void *)(long)ends[i][1]);
        }
        for (int i = 0; i < THREADS; i++)
            pthread_join(connections[i], NULL);
        _exit(0);
    }
    for (int i = 0; i < THREADS; i++) {
        close(ends[i][1]);
        to_server[i] = ends[i][0];
    }
}

static void look_all_up(void)
{
    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    memset(cache.known, 0, sizeof cache.known);
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    clock_gettime(CLOCK_MONOTONIC, &end);
    double seconds = (end.tv_sec - start.tv_sec) + (end.tv_nsec - start.tv_nsec) / 1e9;
    printf("%d lookups in %.3f s\n", THREADS * LOOKUPS, seconds);
}

int main(int argc, char **argv)
{
    setlinebuf(stdout);
    start_server();
    for (int times = argc > 1 ? atoi(argv[1]) : 1; times > 0; times--)
        look_all_up();
    return 0;
}
