#include "storage.h"

#include <cstring>

#include "free_memory.h"

namespace trivium::pjrt {
namespace {

constexpr size_t kCacheLine = 64;

// Never zero bytes, so that every buffer has its own address.
size_t Rounded(size_t bytes) { return (bytes / kCacheLine + 1) * kCacheLine; }

void* OfHost(const Memory& memory, size_t bytes) {
  const size_t rounded = Rounded(bytes);
  void* data = rounded < bytes ? nullptr : FreeMemory::Get().Allocate(rounded);
  if (data != nullptr) return data;
  throw Failure(Error_Code_RESOURCE_EXHAUSTED, "out of memory: " + memory.text + " has no " + std::to_string(bytes) + " bytes left");
}

}  // namespace

StoragePtr Storage::Allocate(Memory& memory, size_t bytes) { return AllocateAll(memory, {&bytes, 1})[0]; }

std::vector<StoragePtr> Storage::AllocateAll(Memory& memory, std::span<const size_t> sizes) {
  Device& device = *memory.device;
  std::vector<void*> ours;
  if (!memory.is_on_host()) ours = device.accelerator->Allocate(sizes);
  std::vector<StoragePtr> all;
  all.reserve(sizes.size());
  for (size_t i = 0; i < sizes.size(); ++i) {
    void* data = ours.empty() ? OfHost(memory, sizes[i]) : ours[i];
    device.statistics.Allocated(static_cast<int64_t>(sizes[i]));
    all.push_back(std::make_shared<Storage>(ours.empty(), data, sizes[i], &device, nullptr));
  }
  return all;
}

bool IsOnlyOf(const StoragePtr& storage, int64_t own) {
  const int64_t writers = storage->writers();
  const int64_t all = storage.use_count();
  std::atomic_thread_fence(std::memory_order_acquire);
  // If a run has ended meanwhile, it is unknown whether the references that have been counted include its own.
  return all - writers == own && storage->writers() == writers;
}

StoragePtr Placed(StoragePtr argument, Memory& memory) {
  if (memory.is_on_host() || !argument->is_on_host()) return argument;
  StoragePtr copy = Storage::Allocate(memory, argument->bytes());
  copy->CopyFrom(*argument);
  return copy;
}

StoragePtr Storage::Borrow(Memory& memory, void* address, size_t bytes, std::function<void()> release) {
  const bool is_address = memory.is_on_host() || address == nullptr;
  void* data = is_address ? address : memory.device->accelerator->Borrow(address, bytes);
  return std::make_shared<Storage>(memory.is_on_host(), data, bytes, nullptr, std::move(release));
}

StoragePtr Storage::Promise(size_t bytes) {
  auto storage = std::make_shared<Storage>(true, nullptr, bytes, nullptr, nullptr);
  storage->is_promise_ = true;
  return storage;
}

void Storage::Become(std::shared_ptr<const Storage> other) {
  data_ = other->data();
  other_ = std::move(other);
}

Storage::~Storage() {
  if (!is_on_host_) {
    if (data_ != nullptr) Accelerator::Release(data_);
  } else if (owner_ != nullptr) {
    FreeMemory::Get().Release(data_, Rounded(bytes_));
  }
  if (owner_ != nullptr) owner_->statistics.Freed(static_cast<int64_t>(bytes_));
  if (release_) release_();
}

void* Storage::address() const { return is_on_host_ || data_ == nullptr ? data_ : Accelerator::Address(data_); }

void Storage::FromHost(const Shape& shape, const void* source, const std::vector<int64_t>& strides) const {
  const std::vector<int64_t> own = MemoryStrides(shape);
  if (is_on_host_) return CopyStrided(shape, source, strides, data_, own);
  if (SameStrides(shape, strides, own)) return Accelerator::Upload(data_, source, bytes_);
  std::vector<char> dense(bytes_);
  CopyStrided(shape, source, strides, dense.data(), own);
  Accelerator::Upload(data_, dense.data(), bytes_);
}

void Storage::ToHost(const Shape& shape, void* target, const std::vector<int64_t>& strides) const {
  const std::vector<int64_t> own = MemoryStrides(shape);
  if (is_on_host_) return CopyStrided(shape, data_, own, target, strides);
  if (SameStrides(shape, strides, own)) return Accelerator::Download(data_, target, bytes_);
  std::vector<char> dense(bytes_);
  Accelerator::Download(data_, dense.data(), bytes_);
  CopyStrided(shape, dense.data(), own, target, strides);
}

void Storage::BytesToHost(void* target, size_t offset, size_t count) const {
  if (is_on_host_) {
    std::memcpy(target, static_cast<const char*>(data_) + offset, count);
    return;
  }
  if (count == bytes_) return Accelerator::Download(data_, target, count);
  std::vector<char> all(bytes_);
  Accelerator::Download(data_, all.data(), bytes_);
  std::memcpy(target, all.data() + offset, count);
}

void Storage::CopyFrom(const Storage& source) const {
  if (is_on_host_) return source.BytesToHost(data_, 0, bytes_);
  if (source.is_on_host_) return Accelerator::Upload(data_, source.data_, bytes_);
  Accelerator::Copy(data_, source.data_);
}

void Storage::BytesFromHost(const void* source, size_t offset, size_t count) const {
  if (count != 0) std::memcpy(static_cast<char*>(data_) + offset, source, count);
}

}  // namespace trivium::pjrt
