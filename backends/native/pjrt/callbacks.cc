// The callbacks extension: functions that hosts register for events of a client, and invoke when such an event happens.

#include <mutex>
#include <optional>

#include "client.h"
#include "extensions.h"
#include "guard.h"
#include "runtime_lock.h"

namespace trivium::pjrt {
namespace {

// A record without a place for extensions: what is missing of it is refused.
template <class Args>
void CheckRecord(const Args* args) {
  Require(args != nullptr, "the record of the arguments is null");
  Require(args->struct_size >= sizeof(Args), "the record of the arguments has no valid struct_size");
  Require(args->client != nullptr, "the client is null");
  if (args->type == Callback_Type_Tpu_SliceBuilder) throw Failure(Error_Code_UNIMPLEMENTED, "this client has no slices of TPUs, whose failures it could tell");
  Require(args->type == Callback_Type_Prefatal, "the type of the callback is unknown");
}

Error* Returned(std::optional<Error> error) { return error ? new Error(std::move(*error)) : nullptr; }

Error* RegisterCallback(Callback_RegisterCallback_Args* args) {
  return Returned(ErrorOf([args] {
    CheckRecord(args);
    Require(args->callback != nullptr, "the callback is null");
    const std::lock_guard<std::mutex> lock(LockOf(args->client));
    args->client->callbacks.emplace_back(args->callback, args->user_arg);
  }));
}

// Calls them in the order in which they were registered. They may register more, which are not called yet.
Error* InvokeCallback(Callback_InvokeCallback_Args* args) {
  return Returned(ErrorOf([args] {
    CheckRecord(args);
    std::vector<HostCallback> callbacks;
    {
      const std::lock_guard<std::mutex> lock(LockOf(args->client));
      callbacks = args->client->callbacks;
    }
    for (const auto& [callback, argument] : callbacks) callback(args->args, argument);
  }));
}

}  // namespace

Extension_Base* CallbacksExtension(Extension_Base* next) {
  static Callback_Extension extension{{sizeof(Callback_Extension), Extension_Type_Callback, next}, RegisterCallback, InvokeCallback};
  return &extension.base;
}

}  // namespace trivium::pjrt
