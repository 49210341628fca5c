// Turns a function of the runtime, `void Function(Args&)`, into one of the table: exceptions become errors, and records of callers that
// were compiled with another version of the interface are adapted.

#pragma once

#include <algorithm>
#include <cstring>

#include "error.h"

namespace trivium::pjrt {

// Calls `Function` on a whole record, however much of it the caller knows: fields that it does not know are zero, and are not written.
template <class Args, void (*Function)(Args&)>
void CallWithSize(Args* args) {
  const size_t known = args->struct_size;
  Require(known >= sizeof(Record), "the record of the arguments has no valid struct_size");
  if (known >= sizeof(Args)) {
    Function(*args);
    return;
  }
  Args whole{};
  std::memcpy(static_cast<void*>(&whole), args, known);
  Function(whole);
  std::memcpy(static_cast<void*>(args), &whole, known);
}

template <class Args, void (*Function)(Args&)>
Error* Guarded(Args* args) noexcept {
  std::optional<Error> error = ErrorOf([args] {
    Require(args != nullptr, "the record of the arguments is null");
    CallWithSize<Args, Function>(args);
  });
  return error ? new Error(std::move(*error)) : nullptr;
}

template <class Args>
Args ArgumentsOf(void (*)(Args&));

// Like `Function`, whose first argument field is an object: rejects null.
template <class Args, void (*Function)(Args&)>
void OnObject(Args& args) {
  const void* object;
  std::memcpy(&object, reinterpret_cast<const char*>(&args) + sizeof(Record), sizeof(object));
  Require(object != nullptr, "the object that the function was called on is null");
  Function(args);
}

// The slot for a function: `api.Event_Create = Slot<Create>;`
template <auto Function>
constexpr auto Slot = Guarded<decltype(ArgumentsOf(Function)), Function>;

// The slot for a function on an object: `api.Event_IsReady = Method<IsReady>;`
template <auto Function>
constexpr auto Method = Slot<OnObject<decltype(ArgumentsOf(Function)), Function>>;

}  // namespace trivium::pjrt
