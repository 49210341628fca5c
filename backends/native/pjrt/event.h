// Events: whether an operation has finished, or why it failed.

#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "error.h"

namespace trivium::pjrt {

// An operation that will finish, once. Several events, buffers and queued runs may wait for the same one.
class Completion {
 public:
  // Called with the error, or null, on the thread that finishes it; or immediately, if it has already finished.
  using Callback = std::function<void(const Error*)>;

  bool IsDone() const { return done_.load(std::memory_order_acquire) != 0; }
  void Wait() const;
  void OnDone(Callback callback);

  // Must be called once, by an owner of this completion. Returns false, and does nothing, if it had already finished.
  bool Finish(std::optional<Error> error = std::nullopt);

  // The error with which it finished; valid only once it has finished.
  const std::optional<Error>& error() const { return error_; }

 private:
  // What is not atomic is guarded by RuntimeLock() until it is done. Threads wait on the number, which also works after a fork.
  std::atomic<uint32_t> done_{0};
  std::optional<Error> error_;
  std::vector<Callback> callbacks_;
};

using CompletionPtr = std::shared_ptr<Completion>;

// A completion that has failed with `error`.
CompletionPtr Failed(Error error);

// The object that a caller holds. Null stands for an operation that finished, without an error, before anybody could query it: this is true
// of most operations, and costs nothing.
struct Event {
  CompletionPtr completion;
};

inline bool IsDone(const CompletionPtr& completion) { return completion == nullptr || completion->IsDone(); }

// Whether somebody must wait for it, or it has failed.
inline bool IsPending(const CompletionPtr& completion) {
  return completion != nullptr && (!completion->IsDone() || completion->error().has_value());
}

// Waits, and throws the error with which the operation failed.
void WaitFor(const CompletionPtr& completion);

void BindEvents(Api& api);

}  // namespace trivium::pjrt
