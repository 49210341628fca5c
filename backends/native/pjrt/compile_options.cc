#include "compile_options.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "error.h"

namespace trivium::pjrt {
namespace {

// The fields of a message in the wire format of protocol buffers, one after the other.
class Message {
 public:
  explicit Message(std::string_view bytes) : rest_(bytes) {}

  // Moves to the next field; false after the last one.
  bool Next() {
    if (rest_.empty()) return false;
    const uint64_t key = Varint();
    number = key >> 3;
    text = {};
    value = 0;
    switch (key & 7) {
      case 0: value = static_cast<int64_t>(Varint()); break;
      case 1: text = Take(8); break;
      case 2: text = Take(Varint()); break;
      case 5: Take(4); break;
      default: Require(false, "the compile options are not a protocol buffer");
    }
    return true;
  }

  uint64_t number = 0;
  int64_t value = 0;      // for an integer
  std::string_view text;  // for a string, bytes, a message or a number of 64 bits

  uint64_t Varint() {
    uint64_t result = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const uint8_t byte = static_cast<uint8_t>(Take(1)[0]);
      result |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return result;
    }
    throw Failure(Error_Code_INVALID_ARGUMENT, "the compile options have an integer of more than 64 bits");
  }

  bool empty() const { return rest_.empty(); }

 private:
  std::string_view Take(uint64_t count) {
    Require(count <= rest_.size(), "the compile options end too early");
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }

  std::string_view rest_;
};

// DeviceAssignmentProto: one list of replicas' devices for each partition.
void ReadDeviceAssignment(std::string_view bytes, CompileOptions& options) {
  std::vector<std::vector<int64_t>> partitions;
  for (Message assignment(bytes); assignment.Next();) {
    if (assignment.number != 3) continue;
    std::vector<int64_t>& devices = partitions.emplace_back();
    for (Message computation(assignment.text); computation.Next();) {
      if (computation.number != 1) continue;
      Message packed(computation.text);
      if (computation.text.empty()) devices.push_back(computation.value);
      while (!packed.empty()) devices.push_back(static_cast<int64_t>(packed.Varint()));
    }
  }
  for (size_t replica = 0; !partitions.empty() && replica < partitions[0].size(); ++replica) {
    for (const std::vector<int64_t>& devices : partitions) {
      Require(devices.size() == partitions[0].size(), "the device assignment is not rectangular");
      options.device_ids.push_back(devices[replica]);
    }
  }
}

void ReadBuildOptions(std::string_view bytes, CompileOptions& options) {
  for (Message build(bytes); build.Next();) {
    if (build.number == 1) options.device_ordinal = build.value;
    if (build.number == 4) options.num_replicas = build.value;
    if (build.number == 5) options.num_partitions = build.value;
    if (build.number == 9) ReadDeviceAssignment(build.text, options);
  }
}

// Returns an OptionOverrideProto, a string, boolean, integer or number, as text.
std::string Text(std::string_view bytes) {
  std::string text;
  for (Message value(bytes); value.Next();) {
    if (value.number == 1) text = value.text;
    if (value.number == 2 || value.number == 3) text = std::to_string(value.value);
    if (value.number == 4 && value.text.size() == sizeof(double)) {
      double number;
      std::memcpy(&number, value.text.data(), sizeof number);
      text = std::to_string(number);
    }
  }
  return text;
}

// An option that the caller passes to the compiler by name. XLA's options are accepted, though what they tune does not exist here;
// which ones there are, and what values they take, only a host that has XLA can tell.
void ReadOverride(std::string_view bytes, CompileOptions& options) {
  static constexpr std::string_view kOwn = "trivium_";
  static constexpr std::string_view kEfforts[] = {"exec_time_optimization_effort", "memory_fitting_effort", "optimization_level",
                                                  "memory_fitting_level"};
  std::string_view name, value;
  for (Message entry(bytes); entry.Next();) (entry.number == 1 ? name : value) = entry.text;
  if (name.substr(0, kOwn.size()) == kOwn) {
    options.own += std::string(name.substr(kOwn.size())) + '=' + Text(value) + '\n';
    return;
  }
  options.has_overrides = true;
  if (name.substr(0, 4) == "xla_" || std::find(std::begin(kEfforts), std::end(kEfforts), name) != std::end(kEfforts)) return;
  throw Failure(Error_Code_INVALID_ARGUMENT, "No such compile option: '" + std::string(name) + "', expected one of XLA's, or one that begins with trivium_");
}

std::string Varint(uint64_t number) {
  std::string bytes;
  for (; number >= 0x80; number >>= 7) bytes += static_cast<char>((number & 0x7f) | 0x80);
  return bytes + static_cast<char>(number);
}

void Append(std::string& message, char tag, const std::string& bytes) {
  message += tag;
  message += bytes;
}

}  // namespace

CompileOptions ReadCompileOptions(std::string_view bytes) {
  CompileOptions options;
  for (Message message(bytes); message.Next();) {
    if (message.number == 3) ReadBuildOptions(message.text, options);
    if (message.number == 7) ReadOverride(message.text, options);
  }
  // Protocol buffers omit numbers that are zero.
  if (options.num_replicas == 0) options.num_replicas = 1;
  if (options.num_partitions == 0) options.num_partitions = 1;
  return options;
}

std::string SerializedOptions(int64_t replicas, int64_t partitions) {
  std::string build;
  Append(build, '\x20', Varint(replicas));
  Append(build, '\x28', Varint(partitions));
  std::string options;
  Append(options, '\x1a', Varint(build.size()) + build);
  return options;
}

std::string SerializedDeviceAssignment(const std::vector<int64_t>& device_ids, int64_t replicas, int64_t partitions) {
  std::string assignment;
  Append(assignment, '\x08', Varint(replicas));
  Append(assignment, '\x10', Varint(partitions));
  for (int64_t partition = 0; partition < partitions; ++partition) {
    std::string ids;
    for (int64_t replica = 0; replica < replicas; ++replica) ids += Varint(device_ids[replica * partitions + partition]);
    std::string computation;
    Append(computation, '\x0a', Varint(ids.size()) + ids);
    Append(assignment, '\x1a', Varint(computation.size()) + computation);
  }
  return assignment;
}

}  // namespace trivium::pjrt
