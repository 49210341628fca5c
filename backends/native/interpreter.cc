#include "interpreter.h"

#include <pthread.h>
#include <time.h>

#include <utility>

namespace trivium {
namespace {

// Signals must be noticed within 200 ms. A check takes the interpreter's lock, for which a busy Python thread may make us wait 5 ms.
constexpr int64_t kPeriodMilliseconds = 100;

Interpreter python{};

// The result of save_thread, while this thread is in a run without the lock.
thread_local void* saved = nullptr;

thread_local int64_t last_check = 0;

// The text of the exception that ended this thread's last run outside Python.
thread_local std::string exception_text;

int64_t Milliseconds() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
  return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

// Holds the interpreter's lock within a run. Runs that Python starts meanwhile are not part of that run.
class Lock {
 public:
  Lock() { python.restore_thread(std::exchange(saved, nullptr)); }
  ~Lock() { saved = python.save_thread(); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
};

// The same in a thread that need not be known to Python.
class ForeignLock {
 public:
  ForeignLock() : state_(python.ensure()) {}
  ~ForeignLock() { python.leave(state_); }
  ForeignLock(const ForeignLock&) = delete;
  ForeignLock& operator=(const ForeignLock&) = delete;

 private:
  int state_;
};

// Takes the exception that is set and returns its text.
std::string ExceptionText() {
  void *type = nullptr, *value = nullptr, *traceback = nullptr;
  python.fetch(&type, &value, &traceback);
  void* text = value == nullptr ? nullptr : python.text(value);
  intptr_t size = 0;
  const char* characters = text == nullptr ? nullptr : python.utf8(text, &size);
  std::string result = characters == nullptr ? "an exception without a text" : std::string(characters, size);
  python.clear();
  for (void* object : {type, value, traceback, text}) {
    if (object != nullptr) python.release(object);
  }
  return result;
}

int32_t CallPythonLocked(void* callable, int64_t number, void** pointers) {
  void* result = python.call(callable, "LK", static_cast<long long>(number), reinterpret_cast<unsigned long long>(pointers));
  if (result == nullptr) return -1;
  python.release(result);
  return 0;
}

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
  if (saved != nullptr) {
    Lock lock;
    return CallPythonLocked(callable, number, pointers);
  }
  if (python.ensure == nullptr) {
    exception_text = "the program calls Python, which this process does not have";
    return -1;
  }
  ForeignLock lock;
  const int32_t status = CallPythonLocked(callable, number, pointers);
  if (status != 0) exception_text = ExceptionText();
  return status;
}

void KeepException(const char* text) { exception_text = text; }

std::string TakeException() { return std::exchange(exception_text, std::string()); }

}  // namespace trivium
