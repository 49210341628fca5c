#include "transfers.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <sstream>

#include "../interpreter.h"
#include "buffer.h"
#include "event.h"
#include "guard.h"

#define TRIVIUM_EXPORT extern "C" __attribute__((visibility("default")))

namespace trivium::pjrt {

// The memory of one receiving op, which the host fills in chunks, from any thread. The run waits until it is full, or until the host gives
// up its stream.
class Inbox {
 public:
  Inbox(int64_t channel, std::vector<std::pair<char*, size_t>> places) : channel_(channel), places_(std::move(places)) {
    for (const auto& [memory, size] : places_) total_ += size;
    if (total_ == 0) completion_.Finish();
  }

  size_t total() const { return total_; }

  size_t current() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return current_;
  }

  void Add(const void* data, size_t size) {
    bool is_full = false;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (size > total_ - current_) {
        throw Failure(Error_Code_INVALID_ARGUMENT, Name() + " was given " + std::to_string(current_ + size) + " bytes, expected " +
                                                       std::to_string(total_));
      }
      Write(static_cast<const char*>(data), size);
      is_full = size != 0 && current_ == total_;
    }
    if (is_full) completion_.Finish();
  }

  // What is missing now will not come.
  void Close() {
    completion_.Finish(Error{Error_Code_DATA_LOSS, Name() + " was given " + std::to_string(current()) + " of " + std::to_string(total_) +
                                                       " bytes before the host destroyed its stream"});
  }

  void Wait() {
    completion_.Wait();
    if (completion_.error()) throw Failure(completion_.error()->code, completion_.error()->message);
  }

 private:
  std::string Name() const { return "channel " + std::to_string(channel_); }

  void Write(const char* data, size_t size) {
    size_t begin = 0;  // of each place, in all bytes
    for (const auto& [memory, room] : places_) {
      const size_t offset = std::clamp(current_, begin, begin + room) - begin;
      const size_t count = std::min(size, room - offset);
      if (count > 0) std::memcpy(memory + offset, data, count);
      data += count;
      size -= count;
      current_ += count;
      begin += room;
    }
  }

  const int64_t channel_;
  const std::vector<std::pair<char*, size_t>> places_;
  size_t total_ = 0;
  std::mutex mutex_;
  size_t current_ = 0;  // guarded by the mutex
  Completion completion_;
};

// The host's end, which it owns.
struct CopyToDeviceStream {
  const std::shared_ptr<Inbox> inbox;
};

namespace {

std::string Name(const Channel& channel) {
  return (channel.is_sent ? "sends on channel " : "receives on channel ") + std::to_string(channel.number);
}

SendCallback FunctionOf(const SendCallbackInfo& info) { return info.send_callback; }
RecvCallback FunctionOf(const RecvCallbackInfo& info) { return info.recv_callback; }

// Copies the callbacks of one direction: what the caller passes is valid during its call only.
template <class Info>
std::map<int64_t, Info> Copied(const Info* const* callbacks, size_t device, size_t count) {
  std::map<int64_t, Info> copied;
  Require(callbacks != nullptr || count == 0, "the list of callbacks is null");
  Require(count == 0 || callbacks[device] != nullptr, "the list of a device's callbacks is null");
  for (size_t i = 0; i < count; ++i) {
    const Info& info = callbacks[device][i];
    Require(FunctionOf(info) != nullptr, "a callback is null");
    if (copied.emplace(info.channel_id, info).second) continue;
    throw Failure(Error_Code_INVALID_ARGUMENT, "channel " + std::to_string(info.channel_id) + " has two callbacks");
  }
  return copied;
}

// Throws unless the channels that have callbacks are those of the program.
void CheckChannels(const std::string& program, const std::vector<Channel>& channels, const Transfers& transfers) {
  std::set<Channel> given;
  for (const auto& [number, info] : transfers.sends) given.insert({true, number});
  for (const auto& [number, info] : transfers.receives) given.insert({false, number});
  for (const Channel& channel : channels) {
    if (given.erase(channel) == 1) continue;
    throw Failure(Error_Code_INVALID_ARGUMENT, program + " " + Name(channel) + ", for which the caller has passed no callback");
  }
  if (given.empty()) return;
  throw Failure(Error_Code_INVALID_ARGUMENT, "the caller has passed a callback for a program that " + Name(*given.begin()) + ", and " +
                                                 program + " does not");
}

const Transfers& CurrentTransfers() {
  if (const Transfers* transfers = TransferScope::Current()) return *transfers;
  throw Failure(Error_Code_FAILED_PRECONDITION,
                "the program exchanges values with its host, which is supported only through PJRT's C API: they pass callbacks with each run");
}

Error* NewError(Error_Code code, const char* message, size_t size) { return new Error{code, std::string(View(message, size))}; }

// Passes a copy of a value, which the callback may keep. Throws its error.
void SendChunk(const SendCallbackInfo& info, const void* data, size_t size, size_t total, bool is_last) {
  void* copy = std::malloc(std::max<size_t>(size, 1));
  if (copy == nullptr) throw std::bad_alloc();
  if (size > 0) std::memcpy(copy, data, size);
  Chunk chunk{copy, size, [](void* memory, void*) { std::free(memory); }, nullptr};
  CallbackError new_error = NewError;
  const std::unique_ptr<Error> error(info.send_callback(&chunk, &new_error, total, is_last, info.user_arg));
  if (error != nullptr) throw Failure(error->code, error->message);
}

// `numbers`: the channel, the number of values, and the size of each in bytes.
void Send(void** values, const int64_t* numbers) {
  const SendCallbackInfo& info = CurrentTransfers().sends.at(numbers[0]);
  const int64_t count = numbers[1];
  size_t total = 0;
  for (int64_t i = 0; i < count; ++i) total += static_cast<size_t>(numbers[2 + i]);
  if (count == 0) SendChunk(info, nullptr, 0, 0, true);
  for (int64_t i = 0; i < count; ++i) SendChunk(info, values[i], static_cast<size_t>(numbers[2 + i]), total, i + 1 == count);
}

void Receive(void** values, const int64_t* numbers) {
  const RecvCallbackInfo& info = CurrentTransfers().receives.at(numbers[0]);
  std::vector<std::pair<char*, size_t>> places;
  for (int64_t i = 0; i < numbers[1]; ++i) places.emplace_back(static_cast<char*>(values[i]), static_cast<size_t>(numbers[2 + i]));
  const auto inbox = std::make_shared<Inbox>(numbers[0], std::move(places));
  info.recv_callback(new CopyToDeviceStream{inbox}, info.user_arg);
  inbox->Wait();
}

// A function that machine code calls: returns 0, or ends the run.
int32_t Status(void (*transfer)(void**, const int64_t*), void** values, const int64_t* numbers) {
  std::optional<Error> error = ErrorOf([&] { transfer(values, numbers); });
  if (!error) return 0;
  KeepException(error->message.c_str());
  TransferScope::Fail(std::move(*error));
  return -1;
}

// The functions of streams.

void Destroy(CopyToDeviceStream_Destroy_Args& args) {
  args.stream->inbox->Close();
  delete args.stream;
}

// Takes the chunk, whatever becomes of it.
void AddChunk(CopyToDeviceStream_AddChunk_Args& args) {
  Require(args.chunk != nullptr, "the chunk is null");
  const Chunk& chunk = *args.chunk;
  const std::optional<Error> error = ErrorOf([&] {
    Require(chunk.data != nullptr || chunk.size == 0, "the data of the chunk is null");
    args.stream->inbox->Add(chunk.data, chunk.size);
  });
  if (chunk.deleter != nullptr) chunk.deleter(chunk.data, chunk.deleter_arg);
  if (error) throw Failure(error->code, error->message);
  args.transfer_complete = NewEvent(nullptr);
}

void TotalBytes(CopyToDeviceStream_TotalBytes_Args& args) { args.total_bytes = static_cast<int64_t>(args.stream->inbox->total()); }

void CurrentBytes(CopyToDeviceStream_CurrentBytes_Args& args) { args.current_bytes = static_cast<int64_t>(args.stream->inbox->current()); }

// Chunks may have any size.
void GranuleSize(CopyToDeviceStream_GranuleSize_Args& args) { args.granule_size_in_bytes = 1; }

}  // namespace

std::vector<Channel> ReadChannels(const char* text) {
  std::istringstream lines(text == nullptr ? "" : text);
  std::vector<Channel> channels;
  std::string direction;
  for (int64_t number = 0; lines >> direction >> number;) channels.push_back({direction == "send", number});
  return channels;
}

TransfersPtr TransfersOf(const std::string& program, const std::vector<Channel>& channels, const ExecuteOptions* options, size_t device) {
  const bool has_callbacks = options != nullptr && options->num_send_ops + options->num_recv_ops != 0;
  if (channels.empty() && !has_callbacks) return nullptr;
  auto transfers = std::make_shared<Transfers>();
  if (has_callbacks) {
    transfers->sends = Copied(options->send_callbacks, device, options->num_send_ops);
    transfers->receives = Copied(options->recv_callbacks, device, options->num_recv_ops);
  }
  CheckChannels(program, channels, *transfers);
  return transfers;
}

void TransferScope::Fail(Error error) {
  if (current_ != nullptr) current_->failure_ = std::move(error);
}

void TransferScope::ThrowFailure() {
  if (current_ == nullptr || !current_->failure_) return;
  TakeException();  // the same text
  throw Failure(current_->failure_->code, current_->failure_->message);
}

void BindTransfers(Api& api) {
  api.CopyToDeviceStream_Destroy = Method<Destroy>;
  api.CopyToDeviceStream_AddChunk = Method<AddChunk>;
  api.CopyToDeviceStream_TotalBytes = Method<TotalBytes>;
  api.CopyToDeviceStream_CurrentBytes = Method<CurrentBytes>;
  api.CopyToDeviceStream_GranuleSize = Method<GranuleSize>;
}

}  // namespace trivium::pjrt

TRIVIUM_EXPORT int32_t trivium_send(void*, void** values, const int64_t* numbers) {
  using namespace trivium::pjrt;
  return Status(Send, values, numbers);
}

TRIVIUM_EXPORT int32_t trivium_recv(void*, void** values, const int64_t* numbers) {
  using namespace trivium::pjrt;
  return Status(Receive, values, numbers);
}
