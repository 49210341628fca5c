// Values that a program exchanges with its host while it runs, on channels: the host passes one callback for each with every run.

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "error.h"

namespace trivium::pjrt {

// A number that a program sends to the host on, or receives from it on; both may have the same number.
struct Channel {
  bool is_sent;
  int64_t number;

  auto operator<=>(const Channel&) const = default;
};

// Reads the channels of a program from the text in its artifact, which may be null.
std::vector<Channel> ReadChannels(const char* text);

// The callbacks of one device, by channel.
struct Transfers {
  std::map<int64_t, SendCallbackInfo> sends;
  std::map<int64_t, RecvCallbackInfo> receives;
};
using TransfersPtr = std::shared_ptr<const Transfers>;

// Null if the program has no channels. Throws unless the options have exactly one callback for each channel.
TransfersPtr TransfersOf(const std::string& program, const std::vector<Channel>& channels, const ExecuteOptions* options, size_t device);

// While it exists, the program that this thread runs uses these callbacks.
class TransferScope {
 public:
  explicit TransferScope(const Transfers* transfers) : transfers_(transfers), outer_(current_) { current_ = this; }
  ~TransferScope() { current_ = outer_; }
  TransferScope(const TransferScope&) = delete;
  TransferScope& operator=(const TransferScope&) = delete;

  // Of the run in this thread; null outside of runs, and for programs without channels.
  static const Transfers* Current() { return current_ == nullptr ? nullptr : current_->transfers_; }

  // Keeps the error that ends the run, which `ThrowFailure` then throws.
  static void Fail(Error error);
  static void ThrowFailure();

 private:
  static inline thread_local TransferScope* current_ = nullptr;
  const Transfers* const transfers_;
  TransferScope* const outer_;
  std::optional<Error> failure_;
};

void BindTransfers(Api& api);

}  // namespace trivium::pjrt
