// Memory that holds the elements of a buffer: our own, or that of a caller who has allowed its use.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "device.h"

namespace trivium::pjrt {

// Every user of the memory (a buffer, a run or an event) holds a reference; the last one releases it.
class Storage {
 public:
  // Memory on a cache line. Throws if there is none.
  static std::shared_ptr<Storage> Allocate(Memory& memory, size_t bytes);

  // Memory of somebody else, who is notified by `release` when it is no longer used.
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
  Device* owner_;  // the device whose statistics count the memory; null if it is borrowed
  std::function<void()> release_;
};

using StoragePtr = std::shared_ptr<Storage>;

// Whether copying takes less time than it is worth to hand it to another thread.
inline bool IsQuickCopy(size_t bytes) { return bytes < (size_t{1} << 23); }

}  // namespace trivium::pjrt
