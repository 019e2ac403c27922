/* Requeue and wake_op: waiters move to another word, in another bucket, while they are woken and
 * their deadlines pass.
 *
 * The code: private/{pair,section,waiter_table}.rs (lock_pair, Pair::move_waiters, withdraw,
 * may_have_waiters), futex/private.rs (requeue, wake_op).
 *
 * Two words, A and B, each in its own bucket, and two waiters, which wait while their word is 1.
 * Two scenes:
 *
 *   requeue  They wait on A. A requeuer wakes one and moves the other to B, but only while B is 1
 *            (as a condvar does with a mutex that is held). A releaser sets B to 0 and wakes its
 *            waiters. Another thread moves waiters of B back to A, and wakes them there.
 *   WAKE_OP  They wait on B. A releaser sets B to 0 and wakes the waiters of both words, by
 *            wake_op, which has a fast path that takes neither lock. Meanwhile another thread moves
 *            waiters of B to A, and does not wake them.
 *
 * A waiter may have a deadline, which passes wherever the waiter is queued by then. Notices are one
 * step here; wait_wake.pml models them in detail.
 *
 * What is shown:
 *   no wake-up is lost      a waiter on a word whose wakers have run is woken
 *   exact counts            as many waiters return as woken as the wakers report
 *   the queue of one's key  a node is unlinked only under the lock of the bucket that it is queued
 *                           in
 *   no deadlock             two buckets are always locked in the same order
 *   nothing is left         at the end both buckets are empty and both counts are 0
 */
#define W 2
#define A 0
#define B 1
#ifdef WAKE_OP
#define START B
#else
#define START A
#endif

bool word[2], locked[2];
byte count[2], moves[2];
chan queue[2] = [W] of { byte };
byte key[W];                            /* of each waiter's node */
bool queued[W], noticed[W];
byte said_woken, were_woken, ended;

inline lock(b)   { atomic { !locked[b] -> locked[b] = true } }
inline unlock(b) { locked[b] = false }

/* Locks both. Before that, counts a waiter at the target. */
inline lock_pair(from, to) {
#ifndef NOT_COUNTED_AT_THE_TARGET       /* MUTANT: counts it only after the move */
    count[to]++;
#endif
#ifdef LOCKS_IN_ITS_OWN_ORDER
    lock(from); lock(to)                /* MUTANT */
#else
    lock(A); lock(B)
#endif
}

inline unlock_pair(from, to) {
#ifndef NOT_COUNTED_AT_THE_TARGET
    count[to]--;
#endif
    unlock(from); unlock(to)
}

/* Moves all waiters from one queue to the other. */
inline move_over(from, to) {
    byte node, n;
    atomic {
        do
        :: queue[from]?[node] -> queue[from]?node; key[node] = to; queue[to]!node; n++
        :: empty(queue[from]) -> node = 0; break
        od
    }
    if
    :: n > 0 ->
       count[to] = count[to] + n;
#ifndef MOVES_ARE_NOT_NOTED             /* MUTANT: a wake_op sees the waiter in neither count */
       moves[from]++;
#endif
       count[from] = count[from] - n
    :: else
    fi;
    n = 0
}

/* Under the lock of b: removes the first waiter of its queue; W if it is empty. */
inline claim(b, node) {
    d_step {
        if
        :: queue[b]?[node] -> queue[b]?node; queued[node] = false; count[b]--; said_woken++
        :: else -> node = W
        fi
    }
}

inline claim_all(b, first, second) { claim(b, first); claim(b, second) }

inline notify(node) {
    d_step {
        if
        :: node < W -> assert(!queued[node] && !noticed[node]); noticed[node] = true
        :: else
        fi;
        node = W
    }
}

proctype waiter(byte me) {
    byte at;
    bool has_deadline;                  /* or it waits forever, if no thread wakes it */
    if
    :: has_deadline = true
    :: has_deadline = false
    fi;
    key[me] = START;
    count[START]++;
    lock(START);
    if
    :: !word[START] -> count[START]--; unlock(START); goto done
    :: else -> atomic { queue[START]!me; queued[me] = true }
    fi;
    unlock(START);
    if
    :: noticed[me] -> were_woken++; goto done
    :: has_deadline                     /* the deadline passes */
    fi;
    do
    ::
#ifdef OLD_KEY
       at = START;                      /* MUTANT: where it started to wait */
#else
       at = key[me];
#endif
       lock(at);
       if
#if !defined(NO_SECOND_LOOK_AT_THE_KEY) && !defined(OLD_KEY)
       :: key[me] != at -> unlock(at)   /* moved while we waited (MUTANT: not checked) */
#endif
       :: else -> break
       fi
    od;
    if
    :: queued[me] ->
       assert(queue[at]??[eval(me)]);   /* it is queued where we hold the lock */
       d_step { queue[at]??eval(me); queued[me] = false; count[at]-- }
       unlock(at)
    :: else ->
       unlock(at);
       noticed[me];                     /* claimed: the notice will come */
       were_woken++
    fi;
done:
    atomic { key[me] = A; at = 0; has_deadline = false; noticed[me] = false; ended++ }
}

/* Wakes one waiter of A and moves the others to B while B is held; wakes all if B is free. */
proctype requeuer() {
    byte first = W, second = W;
    word[A] = 0;
    if
    :: count[A] == 0 -> goto done
    :: else
    fi;
    lock_pair(A, B);
    if
    :: word[B] -> claim(A, first); move_over(A, B)
    :: else -> claim_all(A, first, second)
    fi;
    unlock_pair(A, B);
    notify(first);
    notify(second);
done:
    ended++
}

/* The other direction. */
proctype opposite() {
    byte first = W, second = W;
    if
    :: count[B] == 0 -> goto done
    :: else
    fi;
    lock_pair(B, A);
    move_over(B, A);
    unlock_pair(B, A);
#ifndef WAKE_OP
    word[A] = 0;
    lock(A);
    claim_all(A, first, second);
    unlock(A);
    notify(first);
    notify(second);
#endif
done:
    ended++
}

/* Whether A and B have no waiters: two counts, read one after the other, and no waiter moved in
 * between. */
inline look(nobody) {
    moved = moves[A];
    moved = moved + moves[B];
    nobody = (count[A] == 0);
    nobody = nobody && (count[B] == 0);
    moved = moved - moves[A];
    moved = moved - moves[B];
    d_step { nobody = nobody && (moved == 0); moved = 0 }
}

/* Releases B, and wakes. */
proctype releaser() {
    byte first = W, second = W, third = W, fourth = W;
#ifdef WAKE_OP
    short moved;
    bool nobody, changed;
    look(nobody);
    if
    :: nobody -> word[B] = 0; changed = true;
#ifdef NO_SECOND_LOOK
       goto done;                       /* MUTANT */
#endif
       look(nobody);                    /* again, after the change (and a fence) */
       if
       :: nobody -> goto done
       :: else
       fi
    :: else
    fi;
    lock_pair(A, B);
    word[B] = 0;
    claim_all(A, first, second);
    claim_all(B, third, fourth);
    unlock_pair(A, B);
    notify(first);
    notify(second);
#else
    word[B] = 0;
    if
    :: count[B] == 0 -> goto done
    :: else
    fi;
    lock(B);
    claim_all(B, third, fourth);
    unlock(B);
#endif
    notify(third);
    notify(fourth);
done:
    ended++
}

init {
    atomic {
        word[A] = 1;
        word[B] = 1;
        run waiter(0); run waiter(1); run releaser(); run opposite();
#ifdef WAKE_OP
        ended++
#else
        run requeuer()
#endif
    }
    /* If no thread wakes a waiter, the search ends here with "invalid end state". */
    ended == W + 3;
    assert(count[A] == 0 && count[B] == 0 && empty(queue[A]) && empty(queue[B]) && !locked[A] && !locked[B]);
    assert(said_woken == were_woken)
}
