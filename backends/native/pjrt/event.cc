#include "event.h"

#include <utility>

#include "guard.h"
#include "runtime_lock.h"

namespace trivium::pjrt {

void Completion::Wait() const { done_.wait(0, std::memory_order_acquire); }

void Completion::OnDone(Callback callback) {
  if (!IsDone()) {
    const std::lock_guard<std::mutex> lock(RuntimeLock());
    if (!IsDone()) {
      callbacks_.push_back(std::move(callback));
      return;
    }
  }
  callback(error_ ? &*error_ : nullptr);
}

bool Completion::Finish(std::optional<Error> error) {
  std::vector<Callback> callbacks;
  {
    const std::lock_guard<std::mutex> lock(RuntimeLock());
    if (IsDone()) return false;
    error_ = std::move(error);
    callbacks.swap(callbacks_);
    done_.store(1, std::memory_order_release);
  }
  done_.notify_all();
  // What one callback holds is released before the next one tells somebody else.
  for (Callback& callback : callbacks) std::exchange(callback, nullptr)(error_ ? &*error_ : nullptr);
  return true;
}

CompletionPtr Failed(Error error) {
  auto completion = std::make_shared<Completion>();
  completion->Finish(std::move(error));
  return completion;
}

void FinishAfter(const CompletionPtr& ready, CompletionPtr done, std::function<void()> action) {
  auto finish = [done = std::move(done), action = std::move(action)](const Error* error) mutable {
    std::optional<Error> failure = error == nullptr ? ErrorOf(action) : std::optional<Error>(*error);
    action = nullptr;
    done->Finish(std::move(failure));
  };
  if (ready == nullptr) return finish(nullptr);
  ready->OnDone(std::move(finish));
}

void WaitFor(const CompletionPtr& completion) {
  if (completion == nullptr) return;
  completion->Wait();
  if (completion->error()) throw Failure(completion->error()->code, completion->error()->message);
}

namespace {

void Destroy(Event_Destroy_Args& args) { delete args.event; }

void IsReady(Event_IsReady_Args& args) {
  args.is_ready = IsDone(args.event->completion);
}

void GetError(Event_Error_Args& args) {
  if (!IsDone(args.event->completion)) throw Failure(Error_Code_FAILED_PRECONDITION, "the event is not ready");
  WaitFor(args.event->completion);
}

void Await(Event_Await_Args& args) {
  WaitFor(args.event->completion);
}

void OnReady(Event_OnReady_Args& args) {
  Require(args.callback != nullptr, "the callback is null");
  if (args.event->completion == nullptr) {
    args.callback(nullptr, args.user_arg);
    return;
  }
  args.event->completion->OnDone([callback = args.callback, argument = args.user_arg](const Error* error) {
    callback(error ? new Error(*error) : nullptr, argument);
  });
}

void Create(Event_Create_Args& args) { args.event = new Event{std::make_shared<Completion>()}; }

void Set(Event_Set_Args& args) {
  std::optional<Error> error;
  if (args.error_code != Error_Code_OK) error = Error{args.error_code, std::string(View(args.error_message, args.error_message_size))};
  const CompletionPtr completion = args.event->completion;  // whoever waits for the event may destroy it
  const bool first = completion != nullptr && completion->Finish(std::move(error));
  if (!first) throw Failure(Error_Code_FAILED_PRECONDITION, "the event is already set");
}

}  // namespace

void BindEvents(Api& api) {
  api.Event_Destroy = Slot<Destroy>;
  api.Event_IsReady = Method<IsReady>;
  api.Event_Error = Method<GetError>;
  api.Event_Await = Method<Await>;
  api.Event_OnReady = Method<OnReady>;
  api.Event_Create = Slot<Create>;
  api.Event_Set = Method<Set>;
}

}  // namespace trivium::pjrt
