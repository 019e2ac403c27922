/* The example of docs/gdb.md: a thread that holds locks waits for a word that nobody changes. */
#include "threads.h"

#include <stdint.h>
#include <waitword.h>

ww_mutex_t queue_lock = WW_MUTEX_INITIALIZER;
ww_mutex_t log_lock = WW_RECURSIVE_MUTEX_INITIALIZER;
ww_cond_t filled = WW_COND_INITIALIZER;
ww_mutex_t jobs = WW_MUTEX_INITIALIZER;
ww_robust_mutex_t journal = WW_ROBUST_MUTEX_INITIALIZER;
uint32_t reply = 0;

static void sender(void)
{
    ww_mutex_lock(&queue_lock);
    ww_mutex_lock(&log_lock);
    ww_robust_mutex_lock(&journal);
    ww_futex_wait(&reply, 0, UINT32_MAX, WW_SIZE_U32 | WW_PRIVATE, NULL, CLOCK_MONOTONIC);
}

static void receiver(void) { ww_mutex_lock(&queue_lock); }
static void logger(void) { ww_mutex_lock(&log_lock); }
static void writer(void) { ww_robust_mutex_lock(&journal); }

static void worker(void)
{
    ww_mutex_lock(&jobs);
    ww_cond_wait(&filled, &jobs);
}

int main(int arguments, char *argument[])
{
    (void)argument;
    begin("sender", sender);
    begin("receiver", receiver);
    begin("receiver", receiver);
    begin("logger", logger);
    begin("writer", writer);
    begin("worker", worker);
    known_state(arguments);
    return 0;
}
