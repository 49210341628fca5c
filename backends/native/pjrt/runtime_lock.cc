#include "runtime_lock.h"

#include <pthread.h>

#include <array>
#include <cstdint>

namespace trivium::pjrt {
namespace {

struct Locks {
  std::mutex runtime;
  std::array<std::mutex, 64> objects;

  // Never destroyed: threads may still run while the process exits.
  static Locks& Get() {
    static Locks* const locks = new Locks;
    return *locks;
  }

  static void TakeAll() {
    Get().runtime.lock();
    for (std::mutex& lock : Get().objects) lock.lock();
  }

  static void ReleaseAll() {
    for (std::mutex& lock : Get().objects) lock.unlock();
    Get().runtime.unlock();
  }
};

}  // namespace

std::mutex& RuntimeLock() { return Locks::Get().runtime; }

std::mutex& LockOf(const void* object) {
  std::array<std::mutex, 64>& locks = Locks::Get().objects;
  return locks[reinterpret_cast<uintptr_t>(object) / 64 % locks.size()];
}

void RegisterRuntimeLock() {
  static const int registered = pthread_atfork(Locks::TakeAll, Locks::ReleaseAll, Locks::ReleaseAll);
  (void)registered;
}

}  // namespace trivium::pjrt
