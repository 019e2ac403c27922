/* The condition variable and its mutex: waiters move from one queue to the other, and one waiter,
 * the successor, is awake.
 *
 * The code: lock/condvar/private.rs, lock/mutex/after_wait.rs, lock/mutex/private.rs,
 * futex/parking.rs (park, unpark_requeue).
 *
 * Two threads wait for tokens. A poster adds some and signals, before or after it unlocks; with
 * BROADCAST it adds two and signals all. The first waiter may give up (because of its deadline or
 * an interrupt). If it gives up, it leaves without a token; if it was signalled, it takes the
 * token, puts it back and signals in its turn.
 *
 * Left out: that a successor reserves the lock (HANDOFF) or backs off, batched wake-ups, how
 * notices are given (wait_wake.pml) and how interrupt requests are seen (interrupt.pml).
 *
 * What is shown:
 *   mutual exclusion          one thread at a time holds the mutex
 *   no signal is lost         no thread sleeps while there is a token; a thread that gives up takes
 *                             no signal with it
 *   a successor or an unlock  if a thread is parked and the mutex is free, some awake thread will
 *                             wake it
 *   nothing is left           at the end the mutex is free, there is no successor, both queues are
 *                             empty, and the condvar is bound to no mutex
 */
#define THREADS 3                       /* 0 gives up, 1 does not, 2 posts */
#define NOBODY THREADS

mtype = { LOOK_AGAIN, BE_SUCCESSOR };

/* The mutex's word: changed as a whole. */
bool locked, parked, successor;
byte holders;

bool bound;                             /* the condvar's word: it has waiters, with this mutex */
byte tokens, ended;
bool patient_has_it;

/* Two buckets, in locking order, and the queue in each. */
bool c_locked, m_locked;
chan at_condvar = [THREADS] of { byte };
chan at_mutex = [THREADS] of { byte };

bool noticed[THREADS];
mtype told[THREADS];                    /* set by the waker, with the notice */

inline lock_bucket(b) { atomic { !b -> b = true } }

inline notify(who) {
    d_step {
        if
        :: who != NOBODY -> assert(!noticed[who]); noticed[who] = true
        :: else
        fi;
        who = NOBODY
    }
}

/* Sleeps in the mutex's queue. No thread gives up there. */
inline sleep() { atomic { noticed[me] -> noticed[me] = false } }

#define has_lock { holders++; assert(holders == 1) }

/* Locks the mutex: as a new arrival, or (BE_SUCCESSOR) as the successor. */
inline mutex_lock(as) {
    if
    :: as == BE_SUCCESSOR -> goto be_successor
    :: else
    fi;
come:
    atomic {
        if
        :: !locked -> locked = true; has_lock; goto have
        :: locked && !successor -> successor = true; goto be_successor
        :: locked && successor
        fi
    }
    lock_bucket(m_locked);              /* parks behind the successor */
    atomic {
        if
        :: locked && successor -> parked = true; at_mutex!me
        :: else -> m_locked = false; goto come
        fi
    }
    m_locked = false;
    sleep();
    if
    :: told[me] == BE_SUCCESSOR -> goto be_successor
    :: else -> goto come
    fi;
be_successor:
    atomic {
        if
        :: !locked -> assert(successor); locked = true; successor = false; has_lock; goto have
        :: else
        fi
    }
    lock_bucket(m_locked);              /* parks in front */
    atomic {
        if
#ifndef SUCCESSOR_DOES_NOT_LOOK_AGAIN        /* MUTANT: parks, but the mutex is free */
        :: !locked -> m_locked = false; goto be_successor
#endif
        :: else ->
           successor = false;
           parked = true;
           at_mutex!me;
           turn_round(at_mutex)
        fi
    }
    m_locked = false;
    sleep();
    if
    :: told[me] == BE_SUCCESSOR -> goto be_successor
    :: else -> goto come
    fi;
have:
}

/* Moves the last element of a queue to the front. */
inline turn_round(queue) {
    byte others = len(queue) - 1;
    do
    :: others > 0 -> queue?who; queue!who; others--
    :: else -> who = NOBODY; break
    od
}

inline mutex_unlock() {
    holders--;
    if
    :: locked && !parked && !successor ->    /* no waiter is visible */
       atomic { locked = false; seen = (parked && !successor) }
#ifndef DOES_NOT_LOOK_BEHIND            /* MUTANT: misses a thread that parked in between */
       if
       :: seen ->
          lock_bucket(m_locked);
          if                            /* may be gone: touch its word only if a waiter is found */
          :: nempty(at_mutex) -> wake_one()
          :: empty(at_mutex)
          fi;
          m_locked = false;
          notify(who)
       :: else
       fi
#endif
    :: else ->
       atomic {
           if
           :: parked && !successor -> seen = true
           :: else -> locked = false; seen = false
           fi
       }
       if
       :: seen ->
          lock_bucket(m_locked);
          atomic { wake_one(); locked = false }
          m_locked = false;
          notify(who)
       :: else
       fi
    fi;
    seen = false
}

/* Under the bucket's lock: removes the oldest parked thread, as successor if there is none. */
inline wake_one() {
    atomic {
        if
        :: at_mutex?[who] ->
           at_mutex?who;
           parked = nempty(at_mutex);
           told[who] = (successor -> LOOK_AGAIN : BE_SUCCESSOR);
           successor = true
        :: else -> who = NOBODY; parked = false
        fi
    }
}

/* Signals one waiter, or all. */
inline signal(all) {
    if
    :: !bound
    :: else ->
       lock_bucket(c_locked);
       lock_bucket(m_locked);
       atomic {
           if
           :: at_condvar?[who] ->
              if
#ifndef MOVES_TO_A_FREE_MUTEX           /* MUTANT: no thread wakes the moved waiters */
              :: !locked && !successor ->
                 at_condvar?who;
                 told[who] = BE_SUCCESSOR;
                 successor = true
#endif
              :: else -> who = NOBODY; move()
              fi;
              do
              :: all && len(at_condvar) > 0 -> move()
              :: else -> break
              od
           :: else -> who = NOBODY
           fi;
#ifdef FORGETS_THE_OTHERS
           bound = false                /* MUTANT: some are still queued */
#else
           bound = nempty(at_condvar)
#endif
       }
       m_locked = false;
       c_locked = false;
       notify(who)
    fi
}

inline move() {
    at_condvar?other;
    at_mutex!other;
    other = NOBODY;
#ifndef IS_NOT_ANNOUNCED                /* MUTANT: the mutex's word does not show a parked thread */
    parked = true
#endif
}

/* Unlocks the mutex, waits, locks it again. A thread gives up only if it was not signalled. */
inline condvar_wait() {
#ifdef UNLOCKS_FIRST
    mutex_unlock();                     /* MUTANT: a signal that comes now finds no waiter */
#endif
    lock_bucket(c_locked);
    atomic { at_condvar!me; bound = true }
    c_locked = false;
#ifndef UNLOCKS_FIRST
    mutex_unlock();
#endif
    if
    :: atomic { noticed[me] -> noticed[me] = false; role = told[me] }
    :: may_give_up ->
       lock_bucket(c_locked);
       atomic {
           if
           :: at_condvar??[eval(me)] ->
              at_condvar??eval(me);
              bound = nempty(at_condvar);
              gave_up = true;
              role = LOOK_AGAIN
           :: else
           fi
       }
       c_locked = false;
       if
       :: gave_up
       :: else ->                       /* signalled, or moved: the mutex's unlock wakes it */
          atomic { noticed[me] -> noticed[me] = false; role = told[me] }
#ifdef GIVES_UP_THOUGH_SIGNALLED
          gave_up = true                /* MUTANT: it times out because its deadline has passed */
#endif
       fi
    fi;
    mutex_lock(role)
}

#ifdef BROADCAST
#define TOKENS 2
#else
#define TOKENS 1
#endif

proctype taker(byte me) {
    byte who = NOBODY, other = NOBODY;
    mtype role = LOOK_AGAIN;
    bool seen, may_give_up, gave_up;
    if
    :: me == 0 -> may_give_up = true       /* it may; or it waits forever without a signal */
    :: true
    fi;
    mutex_lock(LOOK_AGAIN);
    do
    :: gave_up -> break
    :: !gave_up && tokens > 0 ->
#ifndef BROADCAST
       if
       :: me == 0 -> signal(false)      /* takes the token, puts it back, and signals */
       :: else -> tokens--; patient_has_it = true
       fi;
#else
       tokens--;
#endif
       break
    :: !gave_up && tokens == 0 -> condvar_wait()
    od;
    mutex_unlock();
    ended++
}

proctype poster() {
    byte me = 2, who = NOBODY, other = NOBODY;
    bool seen, before;
    if
    :: before = true
    :: before = false
    fi;
    mutex_lock(LOOK_AGAIN);
    tokens = TOKENS;
    if
    :: before -> signal(TOKENS == 2); mutex_unlock()
    :: else -> mutex_unlock(); signal(TOKENS == 2)
    fi;
#ifndef BROADCAST
    patient_has_it;                     /* then one more for the other taker, if it still waits */
    mutex_lock(LOOK_AGAIN);
    tokens = TOKENS;
    signal(false);
    mutex_unlock();
#endif
    ended++
}

init {
    atomic { run taker(0); run taker(1); run poster() }
    /* If a taker sleeps while there is a token, the search ends here with "invalid end state". */
    ended == THREADS;
    assert(!locked && !successor && !bound && empty(at_condvar) && empty(at_mutex) && !c_locked && !m_locked)
}
