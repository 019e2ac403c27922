// Locks and waits, with deadlines, on process-shared objects in a file that a hostile process has
// mapped, too, and overwrites. Meanwhile two threads take turns on private objects, and their count
// must be exact.
//
// The hostile process overwrites the file's first page, which holds an object in each 64 bytes. It
// leaves the second page alone.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define MUST(call)                                           \
    do {                                                     \
        int answer_ = (call);                                \
        if (answer_ != 0) {                                  \
            fprintf(stderr, "%s: %d\n", #call, answer_);     \
            exit(1);                                         \
        }                                                    \
    } while (0)

enum { MUTEXES = 4, RWLOCKS = 2, CONDS = 2, THREADS = 4, SECONDS = 2 };

union slot {
    pthread_mutex_t mutex;
    pthread_rwlock_t rwlock;
    pthread_cond_t cond;
    sem_t sem;
    char bytes[64];
};

struct scribbled {
    union slot mutexes[MUTEXES], rwlocks[RWLOCKS], sem, conds[CONDS];
};

struct kept {
    atomic_int ready;
};

static struct scribbled *scribbled;
static struct kept *kept;
static pthread_mutex_t private_mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool over;

static uint64_t next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state >> 11;
}

/// A time within two milliseconds. It may have passed when it is used.
static struct timespec soon(clockid_t clock, uint64_t *dice)
{
    struct timespec time;
    clock_gettime(clock, &time);
    time.tv_nsec += next(dice) % 2000000;
    if (time.tv_nsec >= 1000000000) {
        time.tv_sec += 1;
        time.tv_nsec -= 1000000000;
    }
    return time;
}

static void operate(uint64_t *dice)
{
    clockid_t clock = next(dice) % 2 ? CLOCK_MONOTONIC : CLOCK_REALTIME;
    struct timespec until = soon(clock, dice);
    pthread_mutex_t *mutex = &scribbled->mutexes[next(dice) % MUTEXES].mutex;
    pthread_rwlock_t *rwlock = &scribbled->rwlocks[next(dice) % RWLOCKS].rwlock;
    pthread_cond_t *cond = &scribbled->conds[next(dice) % CONDS].cond;
    switch (next(dice) % 8) {
    case 0:
        if (pthread_mutex_clocklock(mutex, clock, &until) == 0)
            pthread_mutex_unlock(mutex);
        break;
    case 1:
        if (pthread_mutex_trylock(mutex) == 0)
            pthread_mutex_unlock(mutex);
        // Sometimes also unlock a mutex that another thread may hold.
        if (next(dice) % 16 == 0)
            pthread_mutex_unlock(mutex);
        break;
    case 2:
        if (pthread_rwlock_clockrdlock(rwlock, clock, &until) == 0)
            pthread_rwlock_unlock(rwlock);
        break;
    case 3:
        if (pthread_rwlock_clockwrlock(rwlock, clock, &until) == 0)
            pthread_rwlock_unlock(rwlock);
        break;
    case 4:
        sem_post(&scribbled->sem.sem);
        sem_clockwait(&scribbled->sem.sem, clock, &until);
        sem_clockwait(&scribbled->sem.sem, clock, &until);
        break;
    case 5:
        pthread_cond_signal(cond);
        break;
    case 6:
        pthread_cond_broadcast(cond);
        break;
    default:
        // A mutex of ours makes the condition variable ours, too. Otherwise only the hostile
        // process turns condition variables into ours.
        if (pthread_mutex_lock(&private_mutex) == 0) {
            pthread_cond_clockwait(cond, &private_mutex, clock, &until);
            pthread_mutex_unlock(&private_mutex);
        }
    }
}

static void *operates(void *number)
{
    uint64_t dice = ((uintptr_t)number + 1) * 0x9e3779b97f4a7c15u;
    while (!atomic_load(&over))
        operate(&dice);
    return NULL;
}

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    uint64_t turns, taken[2];
} game = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, {0, 0}};

/// Takes every second turn. Ends within a second after `over` is set.
static void *plays(void *number)
{
    uintptr_t mine = (uintptr_t)number;
    MUST(pthread_mutex_lock(&game.mutex));
    while (!atomic_load(&over)) {
        if (game.turns % 2 == mine) {
            game.turns += 1;
            game.taken[mine] += 1;
            MUST(pthread_cond_signal(&game.changed));
        } else {
            struct timespec until;
            clock_gettime(CLOCK_MONOTONIC, &until);
            until.tv_sec += 1;
            int answer =
                pthread_cond_clockwait(&game.changed, &game.mutex, CLOCK_MONOTONIC, &until);
            if (answer != 0 && answer != ETIMEDOUT)
                MUST(answer);
        }
    }
    MUST(pthread_mutex_unlock(&game.mutex));
    return NULL;
}

static void make_shared(void)
{
    const int types[MUTEXES] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE,
                                PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_ADAPTIVE_NP};
    pthread_mutexattr_t mutex;
    pthread_rwlockattr_t rwlock;
    pthread_condattr_t cond;
    MUST(pthread_mutexattr_init(&mutex));
    MUST(pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED));
    for (int number = 0; number < MUTEXES; number++) {
        MUST(pthread_mutexattr_settype(&mutex, types[number]));
        MUST(pthread_mutex_init(&scribbled->mutexes[number].mutex, &mutex));
    }
    MUST(pthread_rwlockattr_init(&rwlock));
    MUST(pthread_rwlockattr_setpshared(&rwlock, PTHREAD_PROCESS_SHARED));
    for (int number = 0; number < RWLOCKS; number++) {
        MUST(pthread_rwlockattr_setkind_np(&rwlock,
                                           number ? PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP
                                                  : PTHREAD_RWLOCK_PREFER_READER_NP));
        MUST(pthread_rwlock_init(&scribbled->rwlocks[number].rwlock, &rwlock));
    }
    MUST(pthread_condattr_init(&cond));
    MUST(pthread_condattr_setpshared(&cond, PTHREAD_PROCESS_SHARED));
    for (int number = 0; number < CONDS; number++)
        MUST(pthread_cond_init(&scribbled->conds[number].cond, &cond));
    MUST(sem_init(&scribbled->sem.sem, 1, 1));
}

int main(int count, char **arguments)
{
    if (count != 2)
        return 2;
    // Longer than anything here takes on a loaded machine.
    alarm(60);
    int file = open(arguments[1], O_RDWR | O_CLOEXEC);
    char *memory = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file < 0 || memory == MAP_FAILED) {
        perror(arguments[1]);
        return 2;
    }
    scribbled = (struct scribbled *)memory;
    kept = (struct kept *)(memory + 4096);
    make_shared();
    pthread_t threads[THREADS], players[2];
    for (uintptr_t number = 0; number < 2; number++)
        MUST(pthread_create(&players[number], NULL, plays, (void *)number));
    for (uintptr_t number = 0; number < THREADS; number++)
        MUST(pthread_create(&threads[number], NULL, operates, (void *)number));
    atomic_store(&kept->ready, 1);
    sleep(SECONDS);
    atomic_store(&over, 1);
    for (int number = 0; number < 2; number++)
        MUST(pthread_join(players[number], NULL));
    for (int number = 0; number < THREADS; number++)
        MUST(pthread_join(threads[number], NULL));
    if (game.turns != game.taken[0] + game.taken[1] || game.turns < 100) {
        fprintf(stderr, "%ju turns were counted, %ju and %ju taken\n", (uintmax_t)game.turns,
                (uintmax_t)game.taken[0], (uintmax_t)game.taken[1]);
        return 1;
    }
    printf("%ju turns\n", (uintmax_t)game.turns);
    return 0;
}
