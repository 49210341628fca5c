#include "foreign_registry.h"

#include <mutex>
#include <string>

#include "error.h"
#include "runtime_lock.h"

namespace trivium::ffi {
namespace {

struct Registry {
  std::map<std::string, Handler_Bundle, std::less<>> handlers;
  std::map<std::string, int64_t, std::less<>> types;
  std::map<int64_t, Deleter> deleters;
  int64_t last_type = int64_t{1} << 32;  // separate from the numbers that other hosts give
};

// Guarded by RuntimeLock().
Registry& Known() {
  static auto* const registry = new Registry;
  return *registry;
}

bool Same(const Handler_Bundle& left, const Handler_Bundle& right) {
  return left.instantiate == right.instantiate && left.prepare == right.prepare && left.initialize == right.initialize &&
         left.execute == right.execute;
}

pjrt::Failure Taken(std::string_view what, std::string_view name) {
  return {pjrt::Error_Code_ALREADY_EXISTS, std::string(what) + " '" + std::string(name) + "' has been registered otherwise"};
}

}  // namespace

void RegisterHandler(std::string_view name, const Handler_Bundle& handlers) {
  pjrt::Require(!name.empty(), "a foreign function has no name");
  pjrt::Require(handlers.execute != nullptr, "a foreign function has no handler for its calls");
  pjrt::RegisterRuntimeLock();
  const std::lock_guard<std::mutex> lock(pjrt::RuntimeLock());
  const auto [found, is_new] = Known().handlers.try_emplace(std::string(name), handlers);
  if (!is_new && !Same(found->second, handlers)) throw Taken("foreign function", name);
}

std::optional<Handler_Bundle> FindHandler(std::string_view name) {
  const std::lock_guard<std::mutex> lock(pjrt::RuntimeLock());
  const auto found = Known().handlers.find(name);
  return found == Known().handlers.end() ? std::nullopt : std::optional(found->second);
}

void RegisterType(std::string_view name, int64_t& id, Deleter deleter) {
  pjrt::Require(!name.empty(), "a type has no name");
  pjrt::RegisterRuntimeLock();
  const std::lock_guard<std::mutex> lock(pjrt::RuntimeLock());
  Registry& known = Known();
  const auto found = known.types.find(name);
  if (found != known.types.end()) {
    const bool is_same = (id == 0 || id == found->second) && known.deleters[found->second] == deleter;
    if (!is_same) throw Taken("type", name);
    if (id == 0) id = found->second;
    return;
  }
  const int64_t number = id == 0 ? ++known.last_type : id;
  if (!known.deleters.try_emplace(number, deleter).second) throw Taken("the number of type", name);
  known.types.emplace(name, number);
  if (id == 0) id = number;
}

Deleter DeleterOf(int64_t type) {
  const std::lock_guard<std::mutex> lock(pjrt::RuntimeLock());
  const auto found = Known().deleters.find(type);
  return found == Known().deleters.end() ? nullptr : found->second;
}

}  // namespace trivium::ffi
