#include "free_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>

namespace trivium::pjrt {
namespace {

constexpr size_t kCacheLine = 64, kHugePage = size_t{1} << 21;
// Smaller memory is not returned to the system by the C library.
constexpr size_t kSmallest = size_t{1} << 17;
constexpr size_t kMostKept = size_t{1} << 26;

void* FromSystem(size_t bytes) {
  const size_t alignment = bytes < 2 * kHugePage ? kCacheLine : kHugePage;
  const size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* data = rounded < bytes ? nullptr : std::aligned_alloc(alignment, rounded);
#ifdef MADV_HUGEPAGE
  if (data != nullptr && alignment == kHugePage) madvise(data, rounded, MADV_HUGEPAGE);
#endif
  return data;
}

bool IsKept(size_t bytes) { return bytes >= kSmallest && bytes <= kMostKept; }

}  // namespace

FreeMemory& FreeMemory::Get() {
  static FreeMemory& memory = *new FreeMemory;
  return memory;
}

void* FreeMemory::Allocate(size_t bytes) {
  void* data = IsKept(bytes) ? Take(bytes) : nullptr;
  return data != nullptr ? data : FromSystem(bytes);
}

void* FreeMemory::Take(size_t bytes) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return nullptr;
  // The memory that was released last is the most likely to be in the caches.
  const auto found = std::find_if(blocks_.rbegin(), blocks_.rend(), [&](const Block& block) { return block.bytes == bytes; });
  if (found == blocks_.rend()) return nullptr;
  void* data = found->data;
  blocks_.erase(std::next(found).base());
  kept_ -= bytes;
  return data;
}

void FreeMemory::Release(void* data, size_t bytes) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || !IsKept(bytes)) return std::free(data);
  blocks_.push_back({data, bytes});
  kept_ += bytes;
  while (kept_ > kMostKept) {
    std::free(blocks_.front().data);
    kept_ -= blocks_.front().bytes;
    blocks_.pop_front();
  }
}

}  // namespace trivium::pjrt
