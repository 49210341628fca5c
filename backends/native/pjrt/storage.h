// Memory that holds the elements of a buffer: of our own, or of the caller's who said that we may use it.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "device.h"

namespace trivium::pjrt {

// Whoever uses the memory, a buffer, a run or an event, holds a reference; the last one gives it back.
class Storage {
 public:
  // Memory on a cache line. Throws when there is none.
  static std::shared_ptr<Storage> Allocate(Memory& memory, size_t bytes);

  // Memory of somebody else, who is told by `release` when it is not used any more.
  static std::shared_ptr<Storage> Borrow(void* data, size_t bytes, std::function<void()> release);

  Storage(void* data, size_t bytes, Device* owner, std::function<void()> release)
      : data_(data), bytes_(bytes), owner_(owner), release_(std::move(release)) {}
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  void* data_;
  size_t bytes_;
  Device* owner_;  // whose statistics count the memory; null if it is borrowed
  std::function<void()> release_;
};

using StoragePtr = std::shared_ptr<Storage>;

}  // namespace trivium::pjrt
