// Events: whether something is done, or what made it fail.

#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "error.h"

namespace trivium::pjrt {

// Something that will be done, once. Several events, buffers and queued runs may wait for the same one.
class Completion {
 public:
  // Called with the error, or null, on the thread that finishes it; or at once, when it is done already.
  using Callback = std::function<void(const Error*)>;

  bool IsDone() const;
  void Wait() const;
  void OnDone(Callback callback);

  // Must be called once. Returns false, and does nothing, when it was done already.
  bool Finish(std::optional<Error> error = std::nullopt);

  // The error that it was finished with; only once it is done.
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

// What a caller holds. Null stands for what was done, without an error, before anybody could ask: most things are, and cost nothing.
struct Event {
  CompletionPtr completion;
};

inline bool IsDone(const CompletionPtr& completion) { return completion == nullptr || completion->IsDone(); }

// Waits, and throws what made it fail.
void WaitFor(const CompletionPtr& completion);

void BindEvents(Api& api);

}  // namespace trivium::pjrt
