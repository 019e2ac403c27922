/* The two fences of every "announce, fence, look": what they are for, with the processor's store buffers in the model.
 *
 * The code: private/bucket.rs (a waiter's count, and the count at the target of a requeue), park/interrupt.rs (the parker of one who
 * may be interrupted), lock/interrupter.rs (its time), lock/rwlock/slots.rs (a reader's slot).
 *
 * Why: Spin's memory is sequentially consistent; a processor's is not. A store lies in the store buffer of its CPU for a while, where
 * only that CPU sees it. So each of two threads can look at the other's variable before its own store has got out:
 *
 *     waiter                            waker
 *     mine = 1     (count, parker,      theirs = 1   (the word, a request,
 *     fence         slot)               fence         a writer's claim)
 *     theirs == 0? then it sleeps       mine == 0? then there is nobody to wake
 *
 * Here each thread has a buffer of one store, which is all that either stores before its fence. models/litmus says the same in herd's
 * language, model/fences.rs in the C11 model with loom, and tests/litmus.rs on the processor.
 *
 * What is shown: the waiter does not sleep while the waker goes by. Each fence is needed: without one (the MUTANTS), it does.
 *
 * In the code the waiter counts itself by a read-modify-write, which on x86-64 is a fence by itself; it is a plain store here, as
 * on other machines.
 */
#define NOTHING 2

#define WAITER 0
#define WAKER  1

/* By who writes it: MINE by the waiter, THEIRS by the waker. */
byte memory[2];
byte buffer[2] = NOTHING;

inline store(who, value) { buffer[who] = value }
inline fence(who)        { buffer[who] == NOTHING }

bool queued, woken, locked;

inline lock()   { atomic { !locked -> locked = true } }
inline unlock() { locked = false }

/* The hardware: lets a store out when it likes. */
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
