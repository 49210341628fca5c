#include "interpreter.h"

#include <pthread.h>
#include <time.h>

namespace trivium {
namespace {

// Signals are to be heard within 200 ms. Asking takes the interpreter's lock, for which a busy Python thread may let us wait 5 ms.
constexpr int64_t kPeriodMilliseconds = 100;

Interpreter python{};

// What save_thread gave, while this thread is in a run without the lock.
thread_local void* saved = nullptr;

thread_local int64_t last_check = 0;

int64_t Milliseconds() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
  return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

// Holds the interpreter's lock within a run.
class Lock {
 public:
  Lock() { python.restore_thread(saved); }
  ~Lock() { saved = python.save_thread(); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
};

}  // namespace

void SetInterpreter(const Interpreter& interpreter) { python = interpreter; }

int32_t Run(const Frame& frame) {
  saved = python.save_thread();
  const int32_t status = frame.entry(frame.arguments, frame.arena, frame.context);
  python.restore_thread(saved);
  saved = nullptr;
  return status;
}

int32_t CheckSignals() {
  if (saved == nullptr || static_cast<uint64_t>(pthread_self()) != python.main_thread) return 0;
  const int64_t now = Milliseconds();
  if (now - last_check < kPeriodMilliseconds) return 0;
  last_check = now;
  Lock lock;
  return python.check_signals() == 0 ? 0 : -1;
}

int32_t CallPython(void* callable, int64_t number, void** pointers) {
  Lock lock;
  void* result = python.call(callable, "LK", static_cast<long long>(number), reinterpret_cast<unsigned long long>(pointers));
  if (result == nullptr) return -1;
  python.release(result);
  return 0;
}

}  // namespace trivium
