// Memory that holds the elements of a buffer: our own, or that of a caller who has allowed its use; the host's, or a device's own.

#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "device.h"
#include "shape.h"

namespace trivium::pjrt {

// Every user of the memory (a buffer, a run or an event) holds a reference; the last one releases it.
class Storage {
 public:
  // Memory on a cache line. Throws if there is none.
  static std::shared_ptr<Storage> Allocate(Memory& memory, size_t bytes);

  // The same, for several sizes: a device is asked once.
  static std::vector<std::shared_ptr<Storage>> AllocateAll(Memory& memory, std::span<const size_t> sizes);

  // Memory of somebody else, by its address in `memory`. They are notified by `release` when it is no longer used.
  static std::shared_ptr<Storage> Borrow(Memory& memory, void* address, size_t bytes, std::function<void()> release);

  // Memory that is not known yet: that of another storage, once `Become` was called, which it then keeps.
  static std::shared_ptr<Storage> Promise(size_t bytes);
  void Become(std::shared_ptr<const Storage> other);
  bool is_promise() const { return is_promise_; }

  // Whether a run of a device may write here what it returns: the memory is the device's own.
  bool IsOwnMemoryOf(const Memory& memory) const { return is_on_host_ == memory.is_on_host() && owner_ == memory.device && !is_promise_; }

  // Counts references of runs that write the elements, which nobody reads before these runs are done. Such a run counts its references when
  // it has them, and no longer before it releases them.
  void AddWriter() { writers_.fetch_add(1); }
  void RemoveWriter() { writers_.fetch_sub(1); }
  int64_t writers() const { return writers_.load(); }

  Storage(bool is_on_host, void* data, size_t bytes, Device* owner, std::function<void()> release)
      : is_on_host_(is_on_host), data_(data), bytes_(bytes), owner_(owner), release_(std::move(release)) {}
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  bool is_on_host() const { return is_on_host_; }

  // What programs of the device receive: an address on the host, or the number of an accelerator's memory.
  void* data() const { return data_; }
  void* address() const;
  size_t bytes() const { return bytes_; }

  // Copies all elements from and to an array of the host with other strides, some bytes to the host, or all from other memory.
  void FromHost(const Shape& shape, const void* source, const std::vector<int64_t>& strides) const;
  void ToHost(const Shape& shape, void* target, const std::vector<int64_t>& strides) const;
  void BytesToHost(void* target, size_t offset, size_t count) const;
  // Some bytes from the host, to its own memory only.
  void BytesFromHost(const void* source, size_t offset, size_t count) const;
  void CopyFrom(const Storage& source) const;

 private:
  bool is_on_host_;
  void* data_;
  size_t bytes_;
  Device* owner_;  // the device whose statistics count the memory; null if it is borrowed
  std::function<void()> release_;
  bool is_promise_ = false;
  std::atomic<int64_t> writers_{0};
  std::shared_ptr<const Storage> other_;
};

using StoragePtr = std::shared_ptr<Storage>;

// Whether nobody uses the memory but the caller, who has `own` references, and runs that write its elements.
bool IsOnlyOf(const StoragePtr& storage, int64_t own);

// Returns what a program of a device takes in place of its argument: an accelerator takes a copy of what is on the host.
StoragePtr Placed(StoragePtr argument, Memory& memory);

// Whether copying takes less time than it is worth to hand it to another thread.
inline bool IsQuickCopy(size_t bytes) { return bytes < (size_t{1} << 23); }

}  // namespace trivium::pjrt
