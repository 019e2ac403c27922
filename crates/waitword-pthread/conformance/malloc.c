/* A program with its own malloc that uses pthread locks, as allocators do: no lock operation may
 * allocate, and locks work before the C library is ready. Source: malloc(3), "Replacing malloc"
 * in the glibc manual. */
#include "conformance.h"

static pthread_mutex_t heap_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t statistics_lock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_once_t made = PTHREAD_ONCE_INIT;
static long allocations, depth;
static __thread int inside;

/* So large that nothing has to be freed. */
enum { ARENA = 256 << 20 };
static char *arena;
static size_t used;

static void make_arena(void) {
    arena = (char *)mmap(NULL, ARENA, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (arena == MAP_FAILED) _exit(8);
}

static void *allocate(size_t size, size_t alignment) {
    /* A lock that allocates would recurse into this function. */
    if (inside++ != 0) ADD(depth, 1);
    pthread_once(&made, make_arena);
    if (pthread_mutex_lock(&heap_lock) != 0) _exit(8);
    size_t start = (used + 16 + alignment - 1) & ~(alignment - 1);
    char *memory = arena + start;
    *(size_t *)(void *)(memory - 16) = size;
    used = start + size;
    if (used > ARENA) _exit(8);
    if (pthread_mutex_unlock(&heap_lock) != 0) _exit(8);
    if (pthread_rwlock_wrlock(&statistics_lock) != 0) _exit(8);
    allocations++;
    if (pthread_rwlock_unlock(&statistics_lock) != 0) _exit(8);
    inside--;
    return memory;
}

void *malloc(size_t size) { return allocate(size, 16); }
void free(void *memory) {
    if (memory == NULL) return;
    inside++;
    if (pthread_rwlock_rdlock(&statistics_lock) != 0) _exit(8);
    if (pthread_rwlock_unlock(&statistics_lock) != 0) _exit(8);
    inside--;
}
void *calloc(size_t count, size_t size) { return allocate(count * size, 16); }
void *realloc(void *memory, size_t size) {
    void *moved = allocate(size, 16);
    if (memory != NULL) {
        size_t before = *(size_t *)(void *)((char *)memory - 16);
        memcpy(moved, memory, before < size ? before : size);
    }
    return moved;
}
void *memalign(size_t alignment, size_t size) {
    return allocate(size, alignment < 16 ? 16 : alignment);
}
void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
int posix_memalign(void **memory, size_t alignment, size_t size) {
    *memory = memalign(alignment, size);
    return 0;
}

static void *allocate_on(void *unused) {
    (void)unused;
    for (int turn = 0; turn < 5000; turn++) {
        char *memory = (char *)malloc(64);
        CHECK(memory != NULL);
        memset(memory, turn, 64);
        free(memory);
    }
    return NULL;
}

CASE(locks_in_malloc) {
    struct thread threads[4];
    for (int each = 0; each < 4; each++) start(&threads[each], allocate_on, NULL);
    for (int each = 0; each < 4; each++) join(&threads[each]);
    CHECK(allocations >= 20000);
    EQ(depth, 0);
}

/* Waits of all kinds while allocations are counted: no wait allocates. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t sem;
static int go;

static void *wait_for_all(void *unused) {
    (void)unused;
    OK(pthread_mutex_lock(&mutex));
    while (!go) OK(pthread_cond_wait(&condition, &mutex));
    OK(pthread_mutex_unlock(&mutex));
    OK(pthread_rwlock_rdlock(&rwlock));
    OK(pthread_rwlock_unlock(&rwlock));
    OK(sem_wait(&sem));
    pthread_barrier_wait(&barrier);
    return NULL;
}

CASE(waits_allocate_nothing) {
    struct thread threads[8];
    OK(sem_init(&sem, 0, 0));
    OK(pthread_barrier_init(&barrier, NULL, 9));
    OK(pthread_rwlock_wrlock(&rwlock));
    for (int each = 0; each < 8; each++) start(&threads[each], wait_for_all, NULL);
    for (int each = 0; each < 8; each++) until_asleep(&threads[each]);
    long before = allocations;
    OK(pthread_mutex_lock(&mutex));
    go = 1;
    OK(pthread_cond_broadcast(&condition));
    OK(pthread_mutex_unlock(&mutex));
    pause_ms(10);
    OK(pthread_rwlock_unlock(&rwlock));
    for (int each = 0; each < 8; each++) OK(sem_post(&sem));
    pthread_barrier_wait(&barrier);
    EQ(allocations, before);
    for (int each = 0; each < 8; each++) join(&threads[each]);
    EQ(depth, 0);
}

CASE(fork_in_a_storm_of_allocations) {
    struct thread threads[4];
    for (int each = 0; each < 4; each++) start(&threads[each], allocate_on, NULL);
    for (int turn = 0; turn < 30; turn++) {
        OK(pthread_mutex_lock(&heap_lock));
        OK(pthread_rwlock_wrlock(&statistics_lock));
        /* The system call fork, which AArch64 has by this name only. */
        pid_t child = (pid_t)syscall(SYS_clone, (long)SIGCHLD, 0L, 0L, 0L, 0L);
        /* A child that unlocks glibc's rwlock leaves it to readers that wait in the parent, so
         * allocators initialise theirs again. */
        if (child == 0)
            statistics_lock = (pthread_rwlock_t)PTHREAD_RWLOCK_INITIALIZER;
        else
            OK(pthread_rwlock_unlock(&statistics_lock));
        OK(pthread_mutex_unlock(&heap_lock));
        if (child == 0) {
            allocate_on(NULL);
            _exit(0);
        }
        EQ(end_of(child), 0);
    }
    for (int each = 0; each < 4; each++) join(&threads[each]);
}
