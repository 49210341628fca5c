#include "storage.h"

#include "free_memory.h"

namespace trivium::pjrt {
namespace {

constexpr size_t kCacheLine = 64;

// Never zero bytes, so that every buffer has its own address.
size_t Rounded(size_t bytes) { return (bytes / kCacheLine + 1) * kCacheLine; }

}  // namespace

StoragePtr Storage::Allocate(Memory& memory, size_t bytes) {
  const size_t rounded = Rounded(bytes);
  void* data = rounded < bytes ? nullptr : FreeMemory::Get().Allocate(rounded);
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
    FreeMemory::Get().Release(data_, Rounded(bytes_));
    owner_->statistics.Freed(static_cast<int64_t>(bytes_));
  }
  if (release_) release_();
}

}  // namespace trivium::pjrt
