#include "storage.h"

#include <cstdlib>
#include <new>

namespace trivium::pjrt {
namespace {

constexpr size_t kCacheLine = 64;

}  // namespace

StoragePtr Storage::Allocate(Memory& memory, size_t bytes) {
  // Never zero bytes, so that every buffer has its own address.
  const size_t rounded = (bytes / kCacheLine + 1) * kCacheLine;
  void* data = rounded < bytes ? nullptr : std::aligned_alloc(kCacheLine, rounded);
  if (data == nullptr) {
    throw Failure(Error_Code_RESOURCE_EXHAUSTED, "out of memory: " + memory.text + " has no " + std::to_string(bytes) + " bytes left");
  }
  memory.device->statistics.Allocated(static_cast<int64_t>(bytes));
  return std::make_shared<Storage>(data, bytes, memory.device, nullptr);
}

StoragePtr Storage::Borrow(void* data, size_t bytes, std::function<void()> release) {
  return std::make_shared<Storage>(data, bytes, nullptr, std::move(release));
}

Storage::~Storage() {
  if (owner_ != nullptr) {
    std::free(data_);
    owner_->statistics.Freed(static_cast<int64_t>(bytes_));
  }
  if (release_) release_();
}

}  // namespace trivium::pjrt
