/* The two fences of every "announce, fence, check" pair, and why they are needed, with the
 * processor's store buffers in the model.
 *
 * The code: private/bucket.rs (a waiter's count, and the count at the target of a requeue),
 * park/interrupt.rs (the parker of a thread that may be interrupted), lock/interrupter.rs (the
 * end time of its wait), lock/rwlock/visible_readers.rs (a reader's slot).
 *
 * Why: Spin's memory is sequentially consistent; a processor's is not. A store stays in the store
 * buffer of its CPU for a while, where only that CPU sees it. So each of two threads can read the
 * other's variable before its own store is visible:
 *
 *     waiter                            waker
 *     mine = 1     (count, parker,      theirs = 1   (the word, a request,
 *                   slot)                             a writer's lock)
 *     fence                             fence
 *     theirs == 0? then it sleeps       mine == 0? then there is no waiter to wake
 *
 * Here each thread has a buffer of one store, because each stores only once before its fence.
 * models/litmus has the same test in herd's language, model/fences.rs in the C11 model with loom,
 * and tests/litmus.rs on the processor.
 *
 * What is shown: the waiter does not sleep while the waker leaves without waking it. Both fences
 * are needed: without either of them (the MUTANTS) it does.
 *
 * In the code the waiter counts itself with a read-modify-write, which on x86-64 is itself a fence.
 * Here it is a plain store, as on other machines.
 */
#define NOTHING 2

#define WAITER 0
#define WAKER  1

/* Indexed by the writer: the waiter writes MINE, the waker writes THEIRS. */
byte memory[2];
byte buffer[2] = NOTHING;

inline store(who, value) { buffer[who] = value }
inline fence(who)        { buffer[who] == NOTHING }

bool queued, woken, locked;

inline lock()   { atomic { !locked -> locked = true } }
inline unlock() { locked = false }

/* The hardware: drains a store at any time. */
active proctype hardware() {
end:
    do
    :: atomic { buffer[WAITER] != NOTHING -> memory[WAITER] = buffer[WAITER]; buffer[WAITER] = NOTHING }
    :: atomic { buffer[WAKER] != NOTHING -> memory[WAKER] = buffer[WAKER]; buffer[WAKER] = NOTHING }
    od
}

active proctype waiter() {
    store(WAITER, 1);
#ifndef WAITER_WITHOUT_FENCE
    fence(WAITER);
#endif
    lock();
    if
    :: memory[WAKER] == 1 -> unlock(); goto done
    :: else -> queued = true
    fi;
    unlock();
    woken;
done:
    skip
}

active proctype waker() {
    store(WAKER, 1);
#ifndef WAKER_WITHOUT_FENCE
    fence(WAKER);
#endif
    if
    :: memory[WAITER] == 0 -> goto done
    :: else
    fi;
    lock();
    if
    :: queued -> woken = true
    :: else
    fi;
    unlock();
done:
    skip
}
