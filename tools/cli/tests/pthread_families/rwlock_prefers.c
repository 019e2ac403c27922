/* Which class (readers or writers) each kind of rwlock prefers, and that neither class starves or
 * deadlocks. */
#include "served.h"

static pthread_rwlock_t lock;
static volatile int has_written, has_read;

static void *write_once(void *unused)
{
    GIVES(0, pthread_rwlock_wrlock(&lock));
    set(&has_written);
    GIVES(0, pthread_rwlock_unlock(&lock));
    return unused;
}

static void *read_once(void *unused)
{
    GIVES(0, pthread_rwlock_rdlock(&lock));
    set(&has_read);
    GIVES(0, pthread_rwlock_unlock(&lock));
    return unused;
}

static void make(int kind)
{
    pthread_rwlockattr_t attributes;
    pthread_rwlockattr_init(&attributes);
    pthread_rwlockattr_setkind_np(&attributes, kind);
    GIVES(0, pthread_rwlock_init(&lock, &attributes));
    has_written = has_read = 0;
}

/* Kinds 0 and 1: a reader can read again while a writer waits, however long the writer has
 * waited. */
static void recursion(int kind)
{
    make(kind);
    GIVES(0, pthread_rwlock_rdlock(&lock));
    pthread_t writer = start(write_once, NULL);
    for (int i = 0; i < 30; i++) {
        sleep_ms(2);
        GIVES(0, pthread_rwlock_rdlock(&lock));
    }
    GIVES(0, has_written);
    for (int i = 0; i < 31; i++)
        GIVES(0, pthread_rwlock_unlock(&lock));
    join(writer);
    GIVES(1, has_written);
    GIVES(0, pthread_rwlock_destroy(&lock));
}

/* Kind 2: a waiting writer keeps readers out. */
static void writers_first(void)
{
    make(PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    GIVES(0, pthread_rwlock_rdlock(&lock));
    pthread_t writer = start(write_once, NULL);
    int kept_out = 0;
    for (int i = 0; i < 10000 && !kept_out; i++) {
        if (pthread_rwlock_tryrdlock(&lock) == EBUSY)
            kept_out = 1;
        else
            pthread_rwlock_unlock(&lock);
        sleep_ms(1);
    }
    GIVES(1, kept_out);
    pthread_t reader = start(read_once, NULL);
    sleep_ms(20);
    GIVES(0, has_read);
    GIVES(0, pthread_rwlock_unlock(&lock));
    join(writer);
    join(reader);
    GIVES(0, pthread_rwlock_destroy(&lock));
}

static volatile int enough;

static void *read_all_the_time(void *unused)
{
    while (!enough) {
        pthread_rwlock_rdlock(&lock);
        sleep_ms(3);
        pthread_rwlock_unlock(&lock);
    }
    return unused;
}

/* Readers overlap all the time. With glibc's default a writer starves; with ours it does not. */
static void a_writer_among_readers(void)
{
    make(PTHREAD_RWLOCK_PREFER_READER_NP);
    enough = 0;
    pthread_t readers[4];
    for (int i = 0; i < 4; i++)
        readers[i] = start(read_all_the_time, NULL);
    sleep_ms(10);
    pthread_t writer = start(write_once, NULL);
    GIVES(1, comes(&has_written));
    enough = 1;
    for (int i = 0; i < 4; i++)
        join(readers[i]);
    join(writer);
    GIVES(0, pthread_rwlock_destroy(&lock));
}

int main(void)
{
    recursion(PTHREAD_RWLOCK_PREFER_READER_NP);
    recursion(PTHREAD_RWLOCK_PREFER_WRITER_NP);
    writers_first();
    if (ours())
        a_writer_among_readers();
    return report("rwlock_prefers");
}
