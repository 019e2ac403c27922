/* A program of waitword.h in a known state: thread `holder` holds locks, and each other thread
 * waits for something else. Then gdb prints each type and `info waitword`. */
#include "threads.h"

#include <stdint.h>
#include <sys/mman.h>
#include <waitword.h>

ww_mutex_t plain = WW_MUTEX_INITIALIZER;
ww_mutex_t owned = WW_RECURSIVE_MUTEX_INITIALIZER;
ww_mutex_t inherited = WW_PRIO_INHERIT_MUTEX_INITIALIZER;
ww_mutex_t queue_lock = WW_MUTEX_INITIALIZER;
ww_mutex_t destroyed = WW_ERRORCHECK_MUTEX_INITIALIZER;
ww_cond_t filled = WW_COND_INITIALIZER;
ww_robust_mutex_t sturdy = WW_ROBUST_MUTEX_INITIALIZER;
ww_robust_mutex_t also_sturdy = WW_ROBUST_MUTEX_INITIALIZER;
ww_rwlock_t book = WW_RWLOCK_INITIALIZER;
ww_rwlock_t shelf = WW_WRITER_RWLOCK_INITIALIZER;
ww_sem_t tokens = WW_SEM_INITIALIZER(0);
ww_barrier_t meeting = WW_BARRIER_INITIALIZER(3);
ww_latch_t countdown = WW_LATCH_INITIALIZER(2);
ww_event_t ready = WW_EVENT_INITIALIZER;
ww_auto_event_t bell = WW_AUTO_EVENT_INITIALIZER;
ww_once_t settings = WW_ONCE_INIT;
struct ww_futex_waitv pair[2];
uint32_t word32 = 32;
uint64_t word64 = 64;
uint8_t word8 = 8;
uint16_t word16 = 16;
uint32_t shared32 = 33;

static void wait_for(void *word, uint64_t value, uint64_t mask, unsigned flags)
{
    ww_futex_wait(word, value, mask, flags, NULL, CLOCK_MONOTONIC);
}

static void hold(void)
{
    wait_for(&word32, 32, UINT32_MAX, WW_SIZE_U32 | WW_PRIVATE);
}

static void holder(void)
{
    ww_mutex_lock(&plain);
    ww_mutex_lock(&owned);
    ww_mutex_lock(&owned);
    ww_mutex_lock(&inherited);
    ww_robust_mutex_lock(&sturdy);
    ww_robust_mutex_lock(&also_sturdy);
    ww_rwlock_wrlock(&book);
    ww_rwlock_rdlock(&shelf);
    ww_once(&settings, hold);
}

static void at_plain(void) { ww_mutex_lock(&plain); }
static void at_owned(void) { ww_mutex_lock(&owned); }
static void at_inherited(void) { ww_mutex_lock(&inherited); }
static void at_sturdy(void) { ww_robust_mutex_lock(&sturdy); }
static void reader(void) { ww_rwlock_rdlock(&book); }
static void at_tokens(void) { ww_sem_wait(&tokens); }
static void at_meeting(void) { ww_barrier_wait(&meeting); }
static void at_countdown(void) { ww_latch_wait(&countdown); }
static void at_ready(void) { ww_event_wait(&ready); }
static void at_bell(void) { ww_auto_event_wait(&bell); }
static void at_settings(void) { ww_once(&settings, hold); }
static void at_word64(void) { wait_for(&word64, 64, UINT64_MAX, WW_SIZE_U64 | WW_PRIVATE); }
static void at_shared32(void) { wait_for(&shared32, 33, UINT32_MAX, WW_SIZE_U32); }
static void at_pair(void) { ww_futex_waitv(pair, 2, 0, NULL, CLOCK_MONOTONIC); }

static void at_filled(void)
{
    ww_mutex_lock(&queue_lock);
    ww_cond_wait(&filled, &queue_lock);
}

int main(int arguments, char *argument[])
{
    pair[0] = (struct ww_futex_waitv){8, (uintptr_t)&word8, WW_SIZE_U8 | WW_PRIVATE, 0};
    pair[1] = (struct ww_futex_waitv){16, (uintptr_t)&word16, WW_SIZE_U16 | WW_PRIVATE, 0};
    ww_mutex_destroy(&destroyed);
    begin("holder", holder);
    begin("B", at_plain);
    begin("C", at_plain);
    begin("D", at_owned);
    begin("E", at_inherited);
    begin("F", at_sturdy);
    begin("G", at_filled);
    begin("reader", reader);
    begin("sem", at_tokens);
    begin("barrier", at_meeting);
    begin("latch", at_countdown);
    begin("event", at_ready);
    begin("auto", at_bell);
    begin("once", at_settings);
    begin("word64", at_word64);
    begin("shared32", at_shared32);
    begin("any", at_pair);
    (void)argument;
    known_state(arguments);
    return 0;
}
