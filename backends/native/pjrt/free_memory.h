// Memory of large buffers that were released, kept for the next ones of the same size: a program that is run again needs
// the same sizes again, and memory from the system costs more than most programs take to fill it, page by page.

#pragma once

#include <cstddef>
#include <deque>
#include <mutex>

namespace trivium::pjrt {

class FreeMemory {
 public:
  // That of the process. It is never destroyed, because buffers may be released while the process ends.
  static FreeMemory& Get();

  // Memory on a cache line, or on a huge page if it is large; null if there is none. `bytes` is a multiple of a cache
  // line.
  void* Allocate(size_t bytes);

  void Release(void* data, size_t bytes);

 private:
  struct Block {
    void* data;
    size_t bytes;
  };

  void* Take(size_t bytes);

  // Only tried, never waited for: whoever does not get it uses the system's memory, as does a child of a process that was
  // forked while it was held.
  std::mutex mutex_;
  std::deque<Block> blocks_;  // the oldest first
  size_t kept_ = 0;
};

}  // namespace trivium::pjrt
