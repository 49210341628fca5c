// The profiler extension: hosts start it, stop it, and collect what programs did meanwhile as a serialized XSpace, the protocol buffer of
// XLA's profiler. The numbers of its fields are written out below.

#include "profiler.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>

#include "../trace.h"
#include "abi/profiler.h"
#include "error.h"

namespace trivium::profiler {

// The functions below throw nothing but std::bad_alloc.
struct Error {
  std::string message;
};

struct Profiler {
  bool is_on = false, is_sized = false;
  std::string space;
};

namespace {

// A message of protocol buffers that is being written.
class Message {
 public:
  void Number(int field, int64_t value) {
    Varint(static_cast<uint64_t>(field) << 3);
    Varint(static_cast<uint64_t>(value));
  }

  void Bytes(int field, std::string_view value) {
    Varint(static_cast<uint64_t>(field) << 3 | 2);
    Varint(value.size());
    bytes_.append(value);
  }

  void Nested(int field, const Message& value) { Bytes(field, value.bytes_); }

  const std::string& bytes() const { return bytes_; }

 private:
  void Varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<char>(value | 0x80));
    bytes_.push_back(static_cast<char>(value));
  }

  std::string bytes_;
};

constexpr int64_t kSource = 1;  // the number of the only kind of statistics: the user's line

// XEvent: metadata_id 1, offset_ps 2, duration_ps 3, stats 4; XStat: metadata_id 1, str_value 5.
Message EventMessage(const trace::Event& event, int64_t name, int64_t start) {
  Message message;
  message.Number(1, name);
  message.Number(2, (event.begin - start) * 1000);
  message.Number(3, (event.end - event.begin) * 1000);
  if (!event.source.empty()) {
    Message source;
    source.Number(1, kSource);
    source.Bytes(5, event.source);
    message.Nested(4, source);
  }
  return message;
}

// An entry of a map from a number to XEventMetadata or XStatMetadata, which both have id 1 and name 2.
Message NameEntry(int64_t number, std::string_view name) {
  Message metadata, entry;
  metadata.Number(1, number);
  metadata.Bytes(2, name);
  entry.Number(1, number);
  entry.Nested(2, metadata);
  return entry;
}

// XLine: id 1, name 2, timestamp_ns 3, events 4.
Message LineMessage(int64_t thread, const std::vector<const trace::Event*>& events, std::map<std::string, int64_t>& names) {
  int64_t start = events.front()->begin;
  for (const trace::Event* event : events) start = std::min(start, event->begin);
  Message line;
  line.Number(1, thread);
  line.Bytes(2, "thread " + std::to_string(thread));
  line.Number(3, start);
  for (const trace::Event* event : events) {
    const int64_t name = names.try_emplace(event->name, static_cast<int64_t>(names.size()) + 1).first->second;
    line.Nested(4, EventMessage(*event, name, start));
  }
  return line;
}

// XSpace: planes 1; XPlane: id 1, name 2, lines 3, event_metadata 4, stat_metadata 5.
std::string Space(const std::vector<trace::Event>& events) {
  std::map<int64_t, std::vector<const trace::Event*>> threads;
  for (const trace::Event& event : events) threads[event.thread].push_back(&event);
  std::map<std::string, int64_t> names;
  Message plane, space;
  plane.Number(1, 1);
  plane.Bytes(2, "/device:CUSTOM:Trivium");
  for (const auto& [thread, found] : threads) plane.Nested(3, LineMessage(thread, found, names));
  for (const auto& [name, number] : names) plane.Nested(4, NameEntry(number, name));
  plane.Nested(5, NameEntry(kSource, "source"));
  space.Nested(1, plane);
  return space.bytes();
}

void ErrorDestroy(Error_Destroy_Args* args) { delete args->error; }

void ErrorMessage(Error_Message_Args* args) {
  args->message = args->error->message.data();
  args->message_size = args->error->message.size();
}

Error* ErrorGetCode(Error_GetCode_Args* args) {
  args->code = pjrt::Error_Code_FAILED_PRECONDITION;
  return nullptr;
}

Error* Create(Create_Args* args) {
  args->profiler = new Profiler;
  return nullptr;
}

Error* Start(Start_Args* args) {
  if (args->profiler->is_on) return new Error{"the profiler has already started"};
  args->profiler->is_on = true;
  trace::Start();
  return nullptr;
}

Error* Stop(Stop_Args* args) {
  if (!args->profiler->is_on) return new Error{"the profiler has not started"};
  args->profiler->is_on = false;
  trace::Stop();
  args->profiler->space = Space(trace::Events());
  args->profiler->is_sized = false;
  return nullptr;
}

Error* Destroy(Destroy_Args* args) {
  if (args->profiler != nullptr && args->profiler->is_on) trace::Stop();
  delete args->profiler;
  return nullptr;
}

// The first call is for the size. JAX's library leaves fields that it does not set uninitialized, sizes of records and this call's `buffer`
// among them, so that they are not read. The second call is for the data, in the caller's memory, or in ours if the caller took that.
Error* CollectData(CollectData_Args* args) {
  Profiler& profiler = *args->profiler;
  auto* own = reinterpret_cast<uint8_t*>(profiler.space.data());
  if (!profiler.is_sized) {
    args->buffer = own;
  } else if (args->buffer != nullptr && args->buffer != own) {
    std::memcpy(args->buffer, own, profiler.space.size());
  }
  profiler.is_sized = true;
  args->buffer_size_in_bytes = profiler.space.size();
  return nullptr;
}

}  // namespace

pjrt::Extension_Base* ProfilerExtension() {
  static Api api{sizeof(Api), nullptr, ErrorDestroy, ErrorMessage, ErrorGetCode, Create, Destroy, Start, Stop, CollectData};
  static Extension extension{{sizeof(Extension), pjrt::Extension_Type_Profiler, nullptr}, &api, 0};
  return &extension.base;
}

}  // namespace trivium::profiler
