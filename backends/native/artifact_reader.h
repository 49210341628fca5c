// An artifact's bytes, read in place. Nothing in them is trusted: each number is checked before it is used.

#pragma once

#include <cstddef>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "artifact.h"

namespace trivium::artifact {

// The reason why bytes are not a valid artifact.
class Damaged : public std::runtime_error {
 public:
  explicit Damaged(const std::string& complaint)
      : std::runtime_error("these bytes are not a compiled program of this version of Trivium: " + complaint) {}
};

class Reader {
 public:
  // Checks the header and the checksum of all bytes. The memory belongs to the caller, and must outlive the reader.
  Reader(const char* data, size_t size);

  const Header& header() const { return header_; }

  template <class Record>
  std::vector<Record> list(const Span& span) const {
    if (span.count > size_ / sizeof(Record)) throw Damaged("it has a list of " + std::to_string(span.count) + " records");
    std::vector<Record> records(span.count);
    const std::string_view found = bytes(span.offset, span.count * sizeof(Record));
    if (!found.empty()) std::memcpy(records.data(), found.data(), found.size());
    return records;
  }

  std::string_view bytes(uint64_t offset, uint64_t count) const;
  std::string_view bytes(const Span& span) const { return bytes(span.offset, span.count); }

  // A text, which is followed by a zero byte.
  std::string_view text(const Span& span) const;

  // The text about the program that has that name; empty if there is none.
  std::string_view about(std::string_view name) const;

 private:
  const char* data_;
  size_t size_;
  Header header_;
};

// CRC-32, as in zlib.
uint32_t Checksum(const char* data, size_t size);

}  // namespace trivium::artifact
