// What programs do while a profiler listens: one event for each run, and for each launch within it.

#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trivium::trace {

struct Event {
  std::string name, source;  // `source` is the user's line
  int64_t begin, end;        // nanoseconds of the system's clock
  int64_t thread;            // a number of the thread that ran it
};

extern std::atomic<int> listeners;

inline bool IsOn() { return listeners.load(std::memory_order_relaxed) > 0; }

// The first listener starts with no events.
void Start();
void Stop();
std::vector<Event> Events();

// An event that begins now and ends with this object.
class Span {
 public:
  Span(std::string_view name, std::string_view source);
  ~Span();
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

 private:
  const std::string name_, source_;
  const int64_t begin_;
};

}  // namespace trivium::trace
