#include "trace.h"

#include <pthread.h>

#include <chrono>
#include <mutex>

#define TRIVIUM_EXPORT extern "C" __attribute__((visibility("default")))

namespace trivium::trace {
namespace {

constexpr size_t kMost = size_t{1} << 20;  // later events are dropped: a listener that nobody stops must not fill the memory

struct Recorder {
  std::mutex mutex;
  std::vector<Event> events;

  // Never destroyed: threads may still run while the process exits. A fork waits until nobody has the lock: the child must not inherit one
  // that nobody releases.
  static Recorder& Get() {
    static Recorder* const recorder = [] {
      pthread_atfork(Lock, Unlock, Unlock);
      return new Recorder;
    }();
    return *recorder;
  }

 private:
  static void Lock() { Get().mutex.lock(); }
  static void Unlock() { Get().mutex.unlock(); }
};

int64_t Now() { return std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count(); }

int64_t ThreadNumber() {
  static std::atomic<int64_t> last{0};
  static thread_local const int64_t number = ++last;
  return number;
}

void Record(Event event) {
  Recorder& recorder = Recorder::Get();
  const std::lock_guard<std::mutex> lock(recorder.mutex);
  if (recorder.events.size() < kMost) recorder.events.push_back(std::move(event));
}

thread_local int64_t launch_begin = 0;

}  // namespace

std::atomic<int> listeners{0};

void Start() {
  Recorder& recorder = Recorder::Get();
  const std::lock_guard<std::mutex> lock(recorder.mutex);
  if (listeners.fetch_add(1) == 0) recorder.events.clear();
}

void Stop() { listeners.fetch_sub(1); }

std::vector<Event> Events() {
  Recorder& recorder = Recorder::Get();
  const std::lock_guard<std::mutex> lock(recorder.mutex);
  return recorder.events;
}

Span::Span(std::string_view name, std::string_view source) : name_(name), source_(source), begin_(Now()) {}

Span::~Span() {
  if (IsOn()) Record({name_, source_, begin_, Now(), ThreadNumber()});
}

}  // namespace trivium::trace

// Called by programs that were compiled to be traced, around each launch. The label is the kernel's name, and after a newline the user's
// line.
TRIVIUM_EXPORT void trivium_launch_begin() { trivium::trace::launch_begin = trivium::trace::Now(); }

TRIVIUM_EXPORT void trivium_launch_end(const char* label) {
  using namespace trivium::trace;
  if (!IsOn()) return;
  const std::string_view text(label);
  const size_t end = text.find('\n');
  Record({std::string(text.substr(0, end)), std::string(text.substr(end + 1)), launch_begin, Now(), ThreadNumber()});
}
