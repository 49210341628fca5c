#include "event.h"

#include "guard.h"

namespace trivium::pjrt {

bool Completion::IsDone() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return done_;
}

void Completion::Wait() const {
  std::unique_lock<std::mutex> lock(mutex_);
  done_condition_.wait(lock, [this] { return done_; });
}

void Completion::OnDone(Callback callback) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!done_) {
      callbacks_.push_back(std::move(callback));
      return;
    }
  }
  callback(error_ ? &*error_ : nullptr);
}

bool Completion::Finish(std::optional<Error> error) {
  std::vector<Callback> callbacks;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (done_) return false;
    error_ = std::move(error);
    done_ = true;
    callbacks.swap(callbacks_);
    // Within the lock: a waiting thread may free this object as soon as it is released.
    done_condition_.notify_all();
  }
  // The callbacks may hold the last reference to the owner of this completion; `error_` is valid only while they run, so it is copied.
  for (const Callback& callback : callbacks) callback(error_ ? &*error_ : nullptr);
  return true;
}

CompletionPtr Failed(Error error) {
  auto completion = std::make_shared<Completion>();
  completion->Finish(std::move(error));
  return completion;
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
  const bool first = args.event->completion != nullptr && args.event->completion->Finish(std::move(error));
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
