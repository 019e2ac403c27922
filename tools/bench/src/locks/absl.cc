// C functions around absl's classes. The arguments point to memory of the right size, alignment and
// content: each class is one word, and its constructor sets it to zero.

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"

#include <cstdint>
#include <type_traits>

static_assert(sizeof(absl::Mutex) == sizeof(std::intptr_t), "locks/absl.rs has another size");
static_assert(sizeof(absl::CondVar) == sizeof(std::intptr_t), "locks/absl.rs has another size");
static_assert(alignof(absl::Mutex) <= alignof(std::intptr_t),
              "locks/absl.rs has another alignment");
static_assert(alignof(absl::CondVar) <= alignof(std::intptr_t),
              "locks/absl.rs has another alignment");

extern "C" {
void waitword_absl_no_deadlock_detection() {
    absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
}
void waitword_absl_mu_lock(absl::Mutex *mu) { mu->Lock(); }
bool waitword_absl_mu_try_lock(absl::Mutex *mu) { return mu->TryLock(); }
void waitword_absl_mu_unlock(absl::Mutex *mu) { mu->Unlock(); }
void waitword_absl_mu_reader_lock(absl::Mutex *mu) { mu->ReaderLock(); }
void waitword_absl_mu_reader_unlock(absl::Mutex *mu) { mu->ReaderUnlock(); }
void waitword_absl_cv_wait(absl::CondVar *cv, absl::Mutex *mu) { cv->Wait(mu); }
void waitword_absl_cv_signal(absl::CondVar *cv) { cv->Signal(); }
void waitword_absl_cv_broadcast(absl::CondVar *cv) { cv->SignalAll(); }
absl::Notification *waitword_absl_notification_new() { return new absl::Notification; }
void waitword_absl_notification_delete(absl::Notification *notification) { delete notification; }
void waitword_absl_notification_wait(absl::Notification *notification) {
    notification->WaitForNotification();
}
void waitword_absl_notification_notify(absl::Notification *notification) { notification->Notify(); }
}
