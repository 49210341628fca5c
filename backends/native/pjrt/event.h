// Events: whether an operation has finished, or why it failed.

#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "error.h"

namespace trivium::pjrt {

// An operation that will finish, once. Several events, buffers and queued runs may wait for the same one.
class Completion {
 public:
  // Called with the error, or null, on the thread that finishes it; or immediately, if it has already finished.
  using Callback = std::function<void(const Error*)>;

  bool IsDone() const;
  void Wait() const;
  void OnDone(Callback callback);

  // Must be called once. Returns false, and does nothing, if it had already finished.
  bool Finish(std::optional<Error> error = std::nullopt);

  // The error with which it finished; valid only once it has finished.
  const std::optional<Error>& error() const { return error_; }

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable done_condition_;
  bool done_ = false;
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

// Waits, and throws the error with which the operation failed.
void WaitFor(const CompletionPtr& completion);

void BindEvents(Api& api);

}  // namespace trivium::pjrt
