#include "packing.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <vector>

#include "thread_pool.h"

namespace trivium {
namespace {

struct Wide {
  uint64_t words[2];
};

// The offset of each flat index of a group.
std::vector<int64_t> Offsets(const PackingGroup& group) {
  std::vector<int64_t> offsets{0};
  for (size_t i = 0; i < group.count; ++i) {
    const PackingAxis& axis = group.axes[i];
    std::vector<int64_t> following;
    following.reserve(offsets.size() * axis.extent);
    for (const int64_t outer : offsets) {
      for (int64_t index = 0; index < axis.extent; ++index) following.push_back(outer + index * axis.stride);
    }
    offsets = std::move(following);
  }
  return offsets;
}

bool IsContiguous(const std::vector<int64_t>& offsets) {
  for (size_t i = 1; i < offsets.size(); ++i) {
    if (offsets[i] != offsets[i - 1] + 1) return false;
  }
  return true;
}

template <typename Element>
class Packer {
 public:
  Packer(const Packing& packing, const void* source, void* target)
      : source_(static_cast<const char*>(source) + packing.offset * sizeof(Element)),
        target_(static_cast<char*>(target)),
        batch_(Offsets(packing.batch)),
        columns_(Offsets(packing.columns)),
        reduction_(Offsets(packing.reduction)),
        across_(IsContiguous(columns_)) {
    starts_.push_back(0);
    for (size_t i = 0; i < packing.panels; ++i) starts_.push_back(starts_.back() + packing.widths[i]);
  }

  void Run() {
    const auto panels = static_cast<int64_t>(starts_.size() - 1);
    GlobalThreadPool().ParallelFor(&Packer::Panels, this, static_cast<int64_t>(batch_.size()) * panels, 1, 0);
  }

 private:
  static void Panels(void* context, int64_t begin, int64_t end, int64_t) {
    const auto& packer = *static_cast<const Packer*>(context);
    const auto panels = static_cast<int64_t>(packer.starts_.size() - 1);
    for (int64_t i = begin; i < end; ++i) packer.Panel(i / panels, i % panels);
  }

  void Panel(int64_t batch, int64_t panel) const {
    const auto depth = static_cast<int64_t>(reduction_.size());
    const int64_t start = starts_[panel], width = starts_[panel + 1] - start;
    const int64_t count = std::clamp<int64_t>(static_cast<int64_t>(columns_.size()) - start, 0, width);
    const char* from = source_ + batch_[batch] * static_cast<int64_t>(sizeof(Element));
    char* to = target_ + (batch * starts_.back() + start) * depth * static_cast<int64_t>(sizeof(Element));
    // Lines of a tile are read along memory, and the tile stays in the first-level cache until it is written.
    constexpr int64_t kTile = 64 / sizeof(Element);
    for (int64_t line = 0; line < depth; line += kTile) Tile(from, to, line, std::min(line + kTile, depth), start, count, width);
  }

  void Tile(const char* from, char* to, int64_t begin, int64_t end, int64_t start, int64_t count, int64_t width) const {
    constexpr auto kSize = static_cast<int64_t>(sizeof(Element));
    for (int64_t line = begin; line < end; ++line) {
      if (across_ && count > 0) std::memcpy(to + line * width * kSize, from + (columns_[start] + reduction_[line]) * kSize, count * kSize);
      std::memset(to + (line * width + count) * kSize, 0, (width - count) * kSize);
    }
    if (across_) return;
    const int64_t following = end < static_cast<int64_t>(reduction_.size()) ? end : begin;
    for (int64_t column = 0; column < count; ++column) {
      const char* origin = from + columns_[start + column] * kSize;
      // Too many columns for the processor to predict the next address by itself.
      __builtin_prefetch(origin + reduction_[following] * kSize);
      for (int64_t line = begin; line < end; ++line) {
        Element element;
        std::memcpy(&element, origin + reduction_[line] * kSize, kSize);
        std::memcpy(to + (line * width + column) * kSize, &element, kSize);
      }
    }
  }

  const char* source_;
  char* target_;
  std::vector<int64_t> batch_, columns_, reduction_;
  std::vector<int64_t> starts_;  // of each panel, in columns, and the end of the last
  bool across_;                  // whether neighbouring columns are neighbours in memory
};

}  // namespace

int32_t Pack(const Packing& packing, const void* source, void* target) {
  try {
    switch (packing.element_bytes) {
      case 1: Packer<uint8_t>(packing, source, target).Run(); return 0;
      case 2: Packer<uint16_t>(packing, source, target).Run(); return 0;
      case 4: Packer<uint32_t>(packing, source, target).Run(); return 0;
      case 8: Packer<uint64_t>(packing, source, target).Run(); return 0;
      case 16: Packer<Wide>(packing, source, target).Run(); return 0;
    }
  } catch (const std::bad_alloc&) {
  }
  return -1;
}

}  // namespace trivium
