#include "runtime_lock.h"

#include <pthread.h>

namespace trivium::pjrt {

std::mutex& RuntimeLock() {
  static std::mutex* const lock = new std::mutex;  // never destroyed: threads may still run while the process exits
  return *lock;
}

void RegisterRuntimeLock() {
  static const int registered = pthread_atfork([] { RuntimeLock().lock(); }, [] { RuntimeLock().unlock(); }, [] { RuntimeLock().unlock(); });
  (void)registered;
}

}  // namespace trivium::pjrt
