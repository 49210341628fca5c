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
  // A promise is finished by the host, whenever it likes, or follows from something that is: work that needs it must not wait for it in a
  // queue, because what the host does before it keeps its promise may need the queue.
  explicit Completion(bool is_promise = false) : is_promise_(is_promise) {}

  bool is_promise() const { return is_promise_; }
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
  const bool is_promise_;
  // What is not atomic is guarded by RuntimeLock() until it is done. Threads wait on the number, which also works after a fork.
  std::atomic<uint32_t> done_{0};
  std::optional<Error> error_;
  std::vector<Callback> callbacks_;
};

using CompletionPtr = std::shared_ptr<Completion>;

// A completion that has failed with `error`.
CompletionPtr Failed(Error error);

// Something that the host will finish.
inline CompletionPtr NewPromise() { return std::make_shared<Completion>(true); }

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

// Runs `action` when `ready` has finished without an error, releases what it holds, and then finishes `done`. An error of either is that of
// `done`.
void FinishAfter(const CompletionPtr& ready, CompletionPtr done, std::function<void()> action);

// Waits, and throws the error with which the operation failed.
void WaitFor(const CompletionPtr& completion);

void BindEvents(Api& api);

}  // namespace trivium::pjrt
