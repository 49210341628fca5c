#include "artifact_reader.h"

#include <array>

namespace trivium::artifact {
namespace {

constexpr size_t kChecked = 16;  // offset of the first byte that the checksum covers
constexpr uint32_t kPolynomial = 0xEDB88320;
constexpr int kAtOnce = 8;  // bytes

// The contribution of a byte to the checksum, by the number of bytes that follow it in the same step.
constexpr std::array<std::array<uint32_t, 256>, kAtOnce> Tables() {
  std::array<std::array<uint32_t, 256>, kAtOnce> tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = value >> 1 ^ (value & 1 ? kPolynomial : 0);
    tables[0][byte] = value;
  }
  for (int step = 1; step < kAtOnce; ++step) {
    for (int byte = 0; byte < 256; ++byte) {
      const uint32_t before = tables[step - 1][byte];
      tables[step][byte] = before >> 8 ^ tables[0][before & 0xFF];
    }
  }
  return tables;
}

constexpr auto kTables = Tables();

void Require(bool condition, const std::string& complaint) {
  if (!condition) throw Damaged(complaint);
}

}  // namespace

uint32_t Checksum(const char* data, size_t size) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(data);
  uint32_t value = ~0u;
  for (; size >= kAtOnce; bytes += kAtOnce, size -= kAtOnce) {
    uint32_t next = 0;
    for (int i = 0; i < kAtOnce; ++i) {
      const uint32_t mixed = i < 4 ? value >> 8 * i & 0xFF : 0;
      next ^= kTables[kAtOnce - 1 - i][bytes[i] ^ mixed];
    }
    value = next;
  }
  for (; size > 0; ++bytes, --size) value = value >> 8 ^ kTables[0][(value ^ *bytes) & 0xFF];
  return ~value;
}

Reader::Reader(const char* data, size_t size) : data_(data), size_(size) {
  Require(size >= sizeof(Header), "it has " + std::to_string(size) + " bytes, expected at least " + std::to_string(sizeof(Header)));
  std::memcpy(&header_, data, sizeof(Header));
  Require(std::memcmp(header_.magic, kMagic, sizeof(kMagic)) == 0, "it begins with other bytes");
  Require(header_.format == kFormat, "it has format " + std::to_string(header_.format) + ", expected " + std::to_string(kFormat));
  Require(header_.size == size, "it has " + std::to_string(size) + " bytes, and says " + std::to_string(header_.size));
  Require(Checksum(data + kChecked, size - kChecked) == header_.checksum, "its checksum does not match");
}

std::string_view Reader::bytes(uint64_t offset, uint64_t count) const {
  Require(offset <= size_ && count <= size_ - offset, "a part of it ends after its end");
  return {data_ + offset, count};
}

std::string_view Reader::text(const Span& span) const {
  Require(span.count < size_, "a text in it is longer than the artifact");
  const std::string_view found = bytes(span.offset, span.count + 1);
  Require(found.back() == '\0', "a text in it does not end with a zero byte");
  return found.substr(0, span.count);
}

std::string_view Reader::about(std::string_view name) const {
  for (const Text& entry : list<Text>(header_.texts)) {
    if (text(entry.name) == name) return text(entry.text);
  }
  return {};
}

}  // namespace trivium::artifact
