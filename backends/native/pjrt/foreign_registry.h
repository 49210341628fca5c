// What hosts register with this device: handlers of foreign functions, types of the objects that handlers keep, and the data that hosts pass
// to handlers with a run.

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string_view>

#include "abi/ffi.h"
#include "abi/table.h"

namespace trivium::ffi {

using Deleter = void (*)(void* object);

// Throws if the name has another handler.
void RegisterHandler(std::string_view name, const Handler_Bundle& handlers);

std::optional<Handler_Bundle> FindHandler(std::string_view name);

// Gives a type a number, unless it has one that is not zero: other hosts of this process may have given it. Threads may register the same
// object. Throws if the name has another number or deleter, or if the number is that of another name.
void RegisterType(std::string_view name, int64_t& id, Deleter deleter);

// How objects of a type are deleted; null if they are not, or if nobody has registered the type.
Deleter DeleterOf(int64_t type);

// Data by the numbers of their types.
using UserData = std::map<int64_t, void*>;
using UserDataPtr = std::shared_ptr<const UserData>;

// The data of the context that a host passes with a run; null if there is none.
UserDataPtr UserDataOf(const pjrt::ExecuteOptions* options);

// While it exists, foreign functions that this thread calls receive `data`.
class UserDataScope {
 public:
  explicit UserDataScope(const UserData* data) : outer_(current_) { current_ = data; }
  ~UserDataScope() { current_ = outer_; }
  UserDataScope(const UserDataScope&) = delete;

  static const UserData* Current() { return current_; }

 private:
  static inline thread_local const UserData* current_ = nullptr;
  const UserData* const outer_;
};

}  // namespace trivium::ffi

namespace trivium::pjrt {

void BindExecuteContexts(Api& api);

}  // namespace trivium::pjrt
