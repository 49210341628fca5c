#include "collectives.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "interpreter.h"

#define TRIVIUM_EXPORT extern "C" __attribute__((visibility("default")))

namespace trivium {
namespace {

thread_local Communicator* communicator = nullptr;
thread_local int64_t own_device = 0;

int64_t Product(const std::vector<int64_t>& extents) {
  int64_t product = 1;
  for (const int64_t extent : extents) product *= extent;
  return product;
}

}  // namespace

bool Communicator::Misses(const std::vector<int64_t>& members) const {
  return std::any_of(members.begin(), members.end(), [this](int64_t member) {
    return member >= static_cast<int64_t>(ended_.size()) || ended_[member];
  });
}

Communicator::Meeting* Communicator::Enter(Key key, const std::vector<int64_t>& members, int64_t place, const void* source,
                                           void* destination) {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto size = static_cast<int64_t>(members.size());
  Meeting& meeting = meetings_[key];
  // Others may still be in the previous turn.
  changed_.wait(lock, [&] { return !meeting.is_full; });
  meeting.sources.resize(size);
  meeting.destinations.resize(size);
  meeting.sources[place] = source;
  meeting.destinations[place] = destination;
  if (++meeting.present == size) {
    meeting.is_full = true;
    changed_.notify_all();
    return &meeting;
  }
  const int64_t turn = meeting.turn;
  changed_.wait(lock, [&] { return meeting.is_full || meeting.turn != turn || Misses(members); });
  return meeting.is_full && meeting.turn == turn ? &meeting : nullptr;
}

void Communicator::Leave(Meeting* meeting) {
  std::unique_lock<std::mutex> lock(mutex_);
  const int64_t turn = meeting->turn;
  if (--meeting->present == 0) {
    meeting->is_full = false;
    ++meeting->turn;
    changed_.notify_all();
    return;
  }
  changed_.wait(lock, [&] { return meeting->turn != turn; });
}

void Communicator::End(int64_t device) {
  std::lock_guard<std::mutex> lock(mutex_);
  ended_[device] = true;
  changed_.notify_all();
}

DeviceScope::DeviceScope(Communicator* shared, int64_t device) {
  communicator = shared;
  own_device = device;
}

DeviceScope::~DeviceScope() {
  communicator->End(own_device);
  communicator = nullptr;
  own_device = 0;
}

void CopyBox(const char* source, const std::vector<int64_t>& source_shape, const std::vector<int64_t>& source_begins, char* destination,
             const std::vector<int64_t>& destination_shape, const std::vector<int64_t>& destination_begins,
             const std::vector<int64_t>& extents, int64_t width) {
  if (Product(extents) == 0) return;
  // Trailing dimensions that the box fills in both arrays form one run of bytes with the dimension before them.
  size_t outer = extents.size();
  int64_t run = width;
  bool fills = true;
  while (outer > 0 && fills) {
    --outer;
    run *= extents[outer];
    fills = extents[outer] == source_shape[outer] && extents[outer] == destination_shape[outer];
  }
  std::vector<int64_t> index(outer, 0);
  const auto offset = [&](const std::vector<int64_t>& shape, const std::vector<int64_t>& begins) {
    int64_t place = 0;
    for (size_t i = 0; i < shape.size(); ++i) place = place * shape[i] + begins[i] + (i < outer ? index[i] : 0);
    return place * width;
  };
  while (true) {
    std::memcpy(destination + offset(destination_shape, destination_begins), source + offset(source_shape, source_begins),
                static_cast<size_t>(run));
    size_t dimension = outer;
    while (dimension > 0 && ++index[dimension - 1] == extents[dimension - 1]) index[--dimension] = 0;
    if (dimension == 0) return;
  }
}

namespace {

// The numbers that describe a collective in compiled programs, in the order of backends/cpu/collectives.py.
struct Description {
  enum Kind : int64_t { kAllReduce, kAllGather, kReduceScatter, kAllToAll, kPermute };

  explicit Description(const int64_t* numbers) {
    kind = static_cast<Kind>(*numbers++);
    type = *numbers++;
    width = *numbers++;
    combiner = *numbers++;
    first = *numbers++;
    second = *numbers++;
    const int64_t rank = *numbers++;
    shape.assign(numbers, numbers + rank);
    numbers += rank;
    const int64_t count = *numbers++;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t size = *numbers++;
      groups.emplace_back(numbers, numbers + size);
      numbers += size;
    }
  }

  Kind kind;
  int64_t type, width, combiner, first, second;
  std::vector<int64_t> shape;
  std::vector<std::vector<int64_t>> groups;
};

// Elements of types for which the machine has no arithmetic, converted as by ml_dtypes and LLVM.
struct BFloat16 {
  uint16_t bits;
  BFloat16() = default;
  explicit BFloat16(float value) {
    uint32_t word;
    std::memcpy(&word, &value, 4);
    bits = std::isnan(value) ? 0x7fc0 | (word >> 16 & 0x8000) : static_cast<uint16_t>((word + 0x7fff + (word >> 16 & 1)) >> 16);
  }
  explicit operator float() const {
    const uint32_t word = static_cast<uint32_t>(bits) << 16;
    float value;
    std::memcpy(&value, &word, 4);
    return value;
  }
};

#if defined(__aarch64__)
using Half = __fp16;  // GCC 12 has _Float16 in C only
#else
using Half = _Float16;
#endif

enum Combiner : int64_t { kAdd, kMultiply, kMaximum, kMinimum, kAnd, kOr, kXor };

template <class T>
T Combine(int64_t combiner, T x, T y) {
  if constexpr (std::is_same_v<T, BFloat16> || std::is_same_v<T, Half>) {
    return T(Combine<float>(combiner, static_cast<float>(x), static_cast<float>(y)));
  } else if constexpr (std::is_floating_point_v<T>) {
    switch (combiner) {
      case kAdd: return x + y;
      case kMultiply: return x * y;
      // As in StableHLO: NaN wins, and zeros are ordered by their signs.
      case kMaximum: return std::isnan(x) || x > y || (x == y && !std::signbit(x)) ? x : y;
      default: return std::isnan(x) || x < y || (x == y && std::signbit(x)) ? x : y;
    }
  } else if constexpr (std::is_same_v<T, bool>) {
    return combiner == kAnd || combiner == kMultiply || combiner == kMinimum ? x && y : combiner == kXor ? x != y : x || y;
  } else {
    using Unsigned = std::make_unsigned_t<T>;
    const auto a = static_cast<Unsigned>(x), b = static_cast<Unsigned>(y);
    switch (combiner) {
      case kAdd: return static_cast<T>(a + b);
      // The product of narrow types is computed in int, which must not overflow.
      case kMultiply: return static_cast<T>(static_cast<uint64_t>(a) * b);
      case kMaximum: return std::max(x, y);
      case kMinimum: return std::min(x, y);
      case kAnd: return static_cast<T>(a & b);
      case kOr: return static_cast<T>(a | b);
      default: return static_cast<T>(a ^ b);
    }
  }
}

// Combines a run of elements of all sources, in their order. Each destination that is not null receives it.
template <class T>
void CombineRun(int64_t combiner, const std::vector<const void*>& sources, int64_t source_begin, int64_t count,
                const std::vector<void*>& destinations, int64_t destination_begin) {
  constexpr int64_t kBlock = 1024;
  T block[kBlock];
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t length = std::min(kBlock, count - begin);
    std::memcpy(block, static_cast<const T*>(sources[0]) + source_begin + begin, length * sizeof(T));
    for (size_t member = 1; member < sources.size(); ++member) {
      const T* source = static_cast<const T*>(sources[member]) + source_begin + begin;
      for (int64_t i = 0; i < length; ++i) block[i] = Combine<T>(combiner, block[i], source[i]);
    }
    for (void* destination : destinations) {
      std::memcpy(static_cast<T*>(destination) + destination_begin + begin, block, length * sizeof(T));
    }
  }
}

using CombineFunction = decltype(&CombineRun<float>);

// By the type's number: its index in TYPES of backends/cpu/collectives.py. Types that are only moved have none.
constexpr CombineFunction kCombine[] = {
    nullptr,             CombineRun<bool>,     CombineRun<int8_t>,   CombineRun<int16_t>, CombineRun<int32_t>,  CombineRun<int64_t>,
    CombineRun<uint8_t>, CombineRun<uint16_t>, CombineRun<uint32_t>, CombineRun<uint64_t>, CombineRun<Half>, CombineRun<BFloat16>,
    CombineRun<float>,   CombineRun<double>};

// One device in a meeting: `place` is its index in the group.
struct Exchange {
  const Description& what;
  const std::vector<const void*>& sources;
  const std::vector<void*>& destinations;
  int64_t place;

  int64_t size() const { return static_cast<int64_t>(sources.size()); }
  const char* source(int64_t member) const { return static_cast<const char*>(sources[member]); }
  char* own() const { return static_cast<char*>(destinations[place]); }
  std::vector<int64_t> zeros() const { return std::vector<int64_t>(what.shape.size(), 0); }
};

// Each member combines its share of the elements, and writes it to all destinations.
void AllReduce(const Exchange& exchange) {
  const int64_t count = Product(exchange.what.shape);
  const int64_t begin = count * exchange.place / exchange.size(), end = count * (exchange.place + 1) / exchange.size();
  kCombine[exchange.what.type](exchange.what.combiner, exchange.sources, begin, end - begin, exchange.destinations, begin);
}

void AllGather(const Exchange& exchange) {
  const auto& shape = exchange.what.shape;
  std::vector<int64_t> whole = shape, begins = exchange.zeros();
  whole[exchange.what.first] *= exchange.size();
  for (int64_t member = 0; member < exchange.size(); ++member) {
    begins[exchange.what.first] = member * shape[exchange.what.first];
    CopyBox(exchange.source(member), shape, exchange.zeros(), exchange.own(), whole, begins, shape, exchange.what.width);
  }
}

void ReduceScatter(const Exchange& exchange) {
  const auto& shape = exchange.what.shape;
  const int64_t dimension = exchange.what.first;
  const int64_t inner = Product({shape.begin() + dimension + 1, shape.end()});
  const int64_t row = shape[dimension] * inner, part = row / exchange.size();
  const int64_t rows = row == 0 ? 0 : Product(shape) / row;
  for (int64_t i = 0; i < rows; ++i) {
    kCombine[exchange.what.type](exchange.what.combiner, exchange.sources, i * row + exchange.place * part, part, {exchange.own()}, i * part);
  }
}

void AllToAll(const Exchange& exchange) {
  const auto& shape = exchange.what.shape;
  const int64_t split = exchange.what.first, joined = exchange.what.second;
  std::vector<int64_t> part = shape, from = exchange.zeros(), to = exchange.zeros();
  part[split] /= exchange.size();
  std::vector<int64_t> result = part;
  result[joined] *= exchange.size();
  from[split] = exchange.place * part[split];
  for (int64_t member = 0; member < exchange.size(); ++member) {
    to[joined] = member * part[joined];
    CopyBox(exchange.source(member), shape, from, exchange.own(), result, to, part, exchange.what.width);
  }
}

// The group consists of all members of pairs; a pair is a source and a target.
void Permute(const Exchange& exchange, const std::vector<int64_t>& members) {
  const size_t bytes = static_cast<size_t>(Product(exchange.what.shape) * exchange.what.width);
  for (const auto& pair : exchange.what.groups) {
    if (members.empty() || pair[1] != members[exchange.place]) continue;
    const auto source = std::find(members.begin(), members.end(), pair[0]) - members.begin();
    std::memcpy(exchange.own(), exchange.source(source), bytes);
    return;
  }
  std::memset(exchange.own(), 0, bytes);
}

void Perform(const Exchange& exchange, const std::vector<int64_t>& members) {
  switch (exchange.what.kind) {
    case Description::kAllReduce: return AllReduce(exchange);
    case Description::kAllGather: return AllGather(exchange);
    case Description::kReduceScatter: return ReduceScatter(exchange);
    case Description::kAllToAll: return AllToAll(exchange);
    case Description::kPermute: return Permute(exchange, members);
  }
}

// The members of this device's group, and the group's number; for a permutation, all devices that appear in its pairs.
std::pair<std::vector<int64_t>, int64_t> GroupOf(const Description& what, int64_t device) {
  if (what.kind == Description::kPermute) {
    std::vector<int64_t> members;
    for (const auto& pair : what.groups) members.insert(members.end(), pair.begin(), pair.end());
    std::sort(members.begin(), members.end());
    members.erase(std::unique(members.begin(), members.end()), members.end());
    if (!std::binary_search(members.begin(), members.end(), device)) members.clear();
    return {members, 0};
  }
  for (size_t i = 0; i < what.groups.size(); ++i) {
    const auto& group = what.groups[i];
    if (std::find(group.begin(), group.end(), device) != group.end()) return {group, i};
  }
  return {{}, -1};
}

}  // namespace
}  // namespace trivium

// Called by compiled programs. Returns 0, or -1 if the devices of the group cannot meet; the reason is kept like an exception.
TRIVIUM_EXPORT int32_t trivium_collective(const int64_t* description, const void* source, void* destination) {
  using namespace trivium;
  const Description what(description);
  const auto [members, group] = GroupOf(what, own_device);
  if (group < 0) {
    KeepException("a collective lists groups of devices, none of which contains this device");
    return -1;
  }
  const int64_t place = std::find(members.begin(), members.end(), own_device) - members.begin();
  if (members.size() <= 1) {
    const std::vector<const void*> sources{source};
    const std::vector<void*> destinations{destination};
    Perform(Exchange{what, sources, destinations, 0}, members);
    return 0;
  }
  Communicator::Meeting* meeting = nullptr;
  if (communicator != nullptr) meeting = communicator->Enter({description, group}, members, place, source, destination);
  if (meeting == nullptr) {
    KeepException("a device waits in a collective for another one of its group, which is not running or has ended");
    return -1;
  }
  Perform(Exchange{what, meeting->sources, meeting->destinations, place}, members);
  communicator->Leave(meeting);
  return 0;
}
