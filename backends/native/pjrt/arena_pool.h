// The temporary memory of a program's runs: each run takes an arena, and returns it for later ones.

#pragma once

#include <cstddef>
#include <cstdlib>
#include <mutex>
#include <string>
#include <vector>

#include "error.h"
#include "runtime_lock.h"

namespace trivium::pjrt {

class ArenaPool {
 public:
  ArenaPool(size_t size, size_t alignment) : size_(size), alignment_(alignment) {}

  ~ArenaPool() {
    for (void* arena : free_) std::free(arena);
  }

  ArenaPool(const ArenaPool&) = delete;
  ArenaPool& operator=(const ArenaPool&) = delete;

  size_t size() const { return size_; }

  // The arena of one run. `program` is its name, for the error if there is no memory.
  class Arena {
   public:
    Arena(ArenaPool& pool, const std::string& program) : pool_(pool), data_(pool.size_ == 0 ? nullptr : pool.Take(program)) {}

    ~Arena() {
      if (data_ == nullptr) return;
      const std::lock_guard<std::mutex> lock(RuntimeLock());
      pool_.free_.push_back(data_);
    }

    Arena(const Arena&) = delete;
    Arena& operator=(const Arena&) = delete;

    void* data() const { return data_; }

   private:
    ArenaPool& pool_;
    void* data_;
  };

 private:
  void* Take(const std::string& program) {
    {
      const std::lock_guard<std::mutex> lock(RuntimeLock());
      if (!free_.empty()) {
        void* arena = free_.back();
        free_.pop_back();
        return arena;
      }
    }
    void* arena = std::aligned_alloc(alignment_, (size_ + alignment_ - 1) / alignment_ * alignment_);
    if (arena != nullptr) return arena;
    throw Failure(Error_Code_RESOURCE_EXHAUSTED, "out of memory: " + program + " needs " + std::to_string(size_) + " bytes to run");
  }

  const size_t size_, alignment_;
  std::vector<void*> free_;  // not in use by any run; guarded by RuntimeLock()
};

}  // namespace trivium::pjrt
