/* Functions of a library that has no unwind tables: an unwinder cannot get past them. `once.c`
 * is linked with it. */
#include <pthread.h>

/* Not a tail call, which would leave no frame. */
#define CALL(function, argument)           \
    do {                                   \
        function(argument);                \
        __asm__ volatile("" ::: "memory"); \
    } while (0)

void (*untabled_leave)(void *);

void untabled_routine(void) { CALL(untabled_leave, NULL); }

void untabled_call(void (*function)(void *), void *argument) { CALL(function, argument); }

/* The same with a cleanup handler. */
void (*untabled_handler)(void *);

void untabled_routine_with_handler(void) {
    pthread_cleanup_push(untabled_handler, NULL);
    CALL(untabled_leave, NULL);
    pthread_cleanup_pop(0);
}

void untabled_call_with_handler(void (*function)(void *), void *argument) {
    pthread_cleanup_push(untabled_handler, argument);
    CALL(function, argument);
    pthread_cleanup_pop(0);
}
