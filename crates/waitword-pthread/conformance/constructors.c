/* Threads that a library starts and joins while it is being loaded: each of them first calls one
 * of the functions that the drop-in exports. `dlopen` holds a lock of the dynamic loader
 * meanwhile, and glibc's functions do not take it. Source: dlopen(3), pthreads(7).
 *
 * CONFORMANCE_EARLY: a library of the program loads it, before main (`constructors_early.c`).
 * CONFORMANCE_DEEPBIND: it looks up functions first in the libraries that it is itself linked
 * with.
 * CONFORMANCE_SERVED_BY: part of the name of the library in which it finds them. */
#include "conformance.h"
#include "constructors_load.h"

static void works_first(const char *operation) {
    const char *error = getenv("CONFORMANCE_EARLY") != NULL ? NULL : load_plugin(operation);
    if (error != NULL) FAIL("%s", error);
    const char *worked = getenv("CONFORMANCE_WORKED");
    CHECK(worked != NULL && strcmp(worked, operation) == 0);
}

#define ON(objects, function) \
    CONFORMANCE_CASE(function##_##objects, 10, 0) { works_first(#function "_" #objects); }

/* The variants of each kind. Process-shared objects are the C library's even where the others
 * are not. */
#define ON_MUTEX(function) ON(private, function) ON(shared, function) ON(inheriting, function)
#define ON_NEW_MUTEX(function) ON_MUTEX(function)
#define ON_LOCKED_MUTEX(function) ON_MUTEX(function)
#define ON_COND(function) ON_MUTEX(function)
#define ON_NEW_COND(function) ON_MUTEX(function)
#define ON_CANCELLED(function) ON_MUTEX(function)
#define ON_RWLOCK(function) ON(private, function) ON(shared, function)
#define ON_NEW_RWLOCK(function) ON_RWLOCK(function)
#define ON_LOCKED_RWLOCK(function) ON_RWLOCK(function)
#define ON_SEM(function) ON_RWLOCK(function)
#define ON_NEW_SEM(function) ON_RWLOCK(function)
#define ON_BARRIER(function) ON_RWLOCK(function)
#define ON_NEW_BARRIER(function) ON_RWLOCK(function)
#define ON_FUTEX(function) ON_RWLOCK(function)
#define ON_SPIN(function) ON(private, function)
#define ON_NEW_SPIN(function) ON(private, function)
#define ON_LOCKED_SPIN(function) ON(private, function)
#define ON_ONCE(function) ON(private, function)
#define ON_C11(function) ON(private, function)
#define ON_NEW_C11(function) ON(private, function)
#define ON_LOCKED_C11(function) ON(private, function)

#define OPERATION(function, kind, first, second) ON_##kind(function)
#include "constructors.h"
