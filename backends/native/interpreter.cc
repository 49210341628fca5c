#include "interpreter.h"

#include <pthread.h>
#include <time.h>

#include <atomic>
#include <cstddef>
#include <utility>
#include <vector>

#include "float_mode.h"
#include "pjrt/runtime_lock.h"
#include "thread_pool.h"

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

// The objects of ReleaseLater. Never destroyed: threads may still run while the process exits.
struct Released {
  std::vector<void*> objects;  // guarded by RuntimeLock()
  std::atomic<bool> is_asked{false}, is_over{false};  // whether Python is asked to release them, and is not to be asked any more

  static Released& Get() {
    static Released* const released = new Released;
    return *released;
  }
};

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

struct Call {
  const Frame& frame;
  int32_t status = 0;

  static void Enter(void* of) {
    Call& call = *static_cast<Call*>(of);
    call.status = call.frame.entry(call.frame.arguments, call.frame.arena, call.frame.context);
  }
};

}  // namespace

void SetInterpreter(const Interpreter& interpreter) { python = interpreter; }

int32_t Run(Frame& frame) {
  const StandardFloats mode;
  saved = python.save_thread();
  const int outer = std::exchange(MostThreads(), 0);
  Call call{frame};
  if (!RunOnHostThreads(static_cast<int>(frame.threads), Call::Enter, &call)) Call::Enter(&call);
  frame.threads = std::exchange(MostThreads(), outer);
  python.restore_thread(saved);
  saved = nullptr;
  return call.status;
}

int32_t RunOn(void* list, int64_t count, Frame& frame) {
  if (Addresses(list, count, frame.arguments) != 0) return -1;
  return Run(frame);
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

int32_t Addresses(void* list, int64_t count, void** addresses) {
  // Py_buffer, which begins with the address; Python 3.11 made its 80 bytes part of the stable ABI.
  struct alignas(void*) Buffer {
    void* address;
    std::byte others[72];
  };
  for (int64_t i = 0; i < count; ++i) {
    Buffer buffer;
    if (python.lend(python.item(list, i), &buffer, /*flags=*/0) != 0) return -1;
    addresses[i] = buffer.address;
    python.give_back(&buffer);
  }
  return 0;
}

void ReleaseLater(void* object) {
  Released& released = Released::Get();
  {
    const std::lock_guard<std::mutex> lock(pjrt::RuntimeLock());
    released.objects.push_back(object);
  }
  if (released.is_over || released.is_asked.exchange(true)) return;
  const auto release = [](void*) {
    ReleaseNow();
    return 0;
  };
  // Python's list of such calls may be full: then the next object asks again.
  if (python.call_later(release, nullptr) != 0) released.is_asked = false;
}

void KeepObjects() { Released::Get().is_over = true; }

void ReleaseNow() {
  Released& released = Released::Get();
  released.is_asked = false;  // first: what comes from now on needs a call of its own
  std::vector<void*> objects;
  {
    const std::lock_guard<std::mutex> lock(pjrt::RuntimeLock());
    objects.swap(released.objects);
  }
  for (void* object : objects) python.release(object);
}

void KeepException(const char* text) { exception_text = text; }

std::string TakeException() { return std::exchange(exception_text, std::string()); }

}  // namespace trivium
