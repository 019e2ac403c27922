# The states of types.rs, and each public type of the library, by its name.
info waitword
print types::QUEUE
print types::BOOK
print types::SEATS
print types::STURDY
print types::SETTINGS
print types::LAZY
# RobustAccess
frame function types::inside
print *robust_access
frame function types::main
# Mutex FairMutex ReentrantMutex CheckedMutex FallibleMutex PiMutex RwLock RobustMutex
print mutex
print fair_mutex
print reentrant_mutex
print checked_mutex
print pi_mutex
print rwlock
print robust_mutex
# Condvar CheckedCondvar FallibleCondvar PiCondvar
print condvar
print checked_condvar
print pi_condvar
# Once OnceLock LazyLock Semaphore Barrier Event AutoEvent Latch
print once
print once_lock
print lazy_lock
print semaphore
print barrier
print event
print auto_event
print latch
# RawMutex RawFairMutex RawPosixMutex RawCheckedMutex RawPiMutex RawRobustMutex RawRwLock
# RawCondvar RawThreadId
print raw_mutex
print raw_fair_mutex
print raw_posix_mutex
print raw_checked_mutex
print raw_pi_mutex
print raw_robust_mutex
print raw_rwlock
print raw_condvar
print raw_thread_id
# MutexGuard FairMutexGuard ReentrantMutexGuard
print mutex_guard
print fair_mutex_guard
print reentrant_guard
print guarded.2
# MappedMutexGuard MappedFairMutexGuard MappedReentrantMutexGuard
print mapped_mutex_guard
print mapped_fair_guard
print mapped_reentrant_guard
# RwLockReadGuard RwLockWriteGuard RwLockUpgradableReadGuard
# MappedRwLockReadGuard MappedRwLockWriteGuard
print read_guard
print write_guard
print upgradable_guard
print mapped_read_guard
print mapped_write_guard
# CheckedMutexGuard FallibleMutexGuard PiMutexGuard
print checked_guard
print pi_guard
# ArcMutexGuard ArcReentrantMutexGuard ArcRwLockReadGuard ArcRwLockWriteGuard
# ArcRwLockUpgradableReadGuard
print arc_mutex_guard
print arc_reentrant_guard
print arc_read_guard
print arc_write_guard
print arc_upgradable_guard
# SemaphorePermit
print permit
# Futex NumaWord Mask WaitOptions WakeOp Expecting Deadline Errno Timespec Waitv
print futex
print futex_of_byte
print numa_word
print mask
print wait_options
print wake_op
print expecting
print deadline
print errno
print timespec
print waitv
# MutexOptions PosixMutexOptions RwLockOptions
print mutex_options
print posix_mutex_options
print rwlock_options
# Flavour PosixFlavour Kind RobustKind RobustProtocol RobustLocked Preference Scope Clock
# OnceState, and Op and Cmp
print flavour
print posix_flavour
print kind
print robust_kind
print robust_protocol
print robust_locked
print preference
print scope
print clock
print op
print cmp
print once_state
# Error CountError LockError RobustError RwLockError
print errors
# BarrierWaitResult WaitTimeoutResult
print barrier_result
print wait_result
# Support Kernel Rseq Extension: of this machine, so only the types
print support
whatis kernel
whatis rseq
whatis extension
# Snapshot Waiter, and the counts, which differ
print snapshot
print waiter
whatis counts
