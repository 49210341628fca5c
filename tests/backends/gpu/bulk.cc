// Copies of boxes of arrays that the device makes by itself, and the words in shared memory in which arrived bytes are
// counted. A box arrives as late as it may: when no thread can go on without one. What is in its place is garbage from the
// moment on when the copy begins, since it may also arrive at once.
#include <algorithm>
#include <cstring>

#include "block.h"

namespace simulator {
namespace {

constexpr uint64_t kCounting = 0x6d62617272696572;  // what a word holds that counts
constexpr unsigned kLine = 128, kChunk = 16;

struct Count {
  char *word;
  int64_t threads;          // that arrive in each phase
  int64_t arrivals, bytes;  // which the phase still expects
  uint64_t phases;          // that have ended
};

struct Boxed {
  const TensorMap *array;
  char *target;
  int64_t place[5], taps[3];
  char *word;
};

std::vector<Count> counts;
std::vector<Boxed> underway;

void fail(const char *what) {
  if (block.wrong.empty()) block.wrong = what;
}

Count *count_at(const void *word) {
  auto found = std::find_if(counts.begin(), counts.end(), [&](const Count &one) { return one.word == word; });
  if (found == counts.end()) fail("a thread waits or counts where no word counts");
  return found == counts.end() ? nullptr : &*found;
}

Count *arrive_at(const void *word) {
  Count *count = count_at(word);
  if (count && !count->arrivals) return fail("more threads arrive than a phase expects"), nullptr;
  if (count) count->arrivals--;
  return count;
}

void end_phase(Count &count) {
  if (count.arrivals || count.bytes) return;
  count.phases++;
  count.arrivals = count.threads;
}

// Where a byte of a box is: the lines follow one another, and the number of a line is added to those of its 16 bytes.
char *permuted(char *target, size_t offset) {
  auto address = reinterpret_cast<uint64_t>(target) + offset;
  return reinterpret_cast<char *>(address ^ (address / kLine % 8 * kChunk));
}

size_t lines(const TensorMap &array) {
  if (array.windows) return array.box[1];
  size_t found = 1;
  for (unsigned dimension = 1; dimension < array.rank; dimension++) found *= array.box[dimension];
  return found;
}

// Where the last window begins along a spatial dimension.
int64_t last(const TensorMap &array, unsigned axis) {
  return static_cast<int64_t>(array.extents[axis + 1]) - 1 + array.corners[axis][1];
}

// The same for windows: the next one begins `steps` further along the first spatial dimension, or in the next line.
const char *in_window_of(const Boxed &copy, size_t number) {
  const TensorMap &array = *copy.array;
  unsigned axes = array.rank - 2;
  auto window = static_cast<int64_t>(number / array.box[0]);
  int64_t feature = copy.place[0] + static_cast<int64_t>(number % array.box[0]);
  if (feature < 0 || feature >= static_cast<int64_t>(array.extents[0])) return nullptr;
  const char *found = reinterpret_cast<const char *>(array.address) + feature * array.size;
  bool inside = true;
  for (unsigned axis = 0; axis < axes; axis++) {
    int64_t first = array.corners[axis][0], step = array.steps[axis], count = (last(array, axis) - first) / step + 1;
    window += (copy.place[axis + 1] - first) / step;
    int64_t place = first + window % count * step + copy.taps[axis];
    window /= count;
    inside = inside && place >= 0 && place < static_cast<int64_t>(array.extents[axis + 1]);
    found += place * static_cast<int64_t>(array.strides[axis]);
  }
  int64_t image = copy.place[axes + 1] + window;
  if (!inside || image < 0 || image >= static_cast<int64_t>(array.extents[axes + 1])) return nullptr;
  return found + image * static_cast<int64_t>(array.strides[axes]);
}

// Where the element of a box is that has the number `offset`; null beyond the ends of the array.
const char *source(const Boxed &copy, size_t number) {
  const TensorMap &array = *copy.array;
  if (array.windows) return in_window_of(copy, number);
  const char *found = reinterpret_cast<const char *>(array.address);
  for (unsigned dimension = 0; dimension < array.rank; dimension++) {
    int64_t place = copy.place[dimension] + static_cast<int64_t>(number % array.box[dimension]);
    number /= array.box[dimension];
    if (place < 0 || place >= static_cast<int64_t>(array.extents[dimension])) return nullptr;
    found += place * static_cast<int64_t>(dimension ? array.strides[dimension - 1] : array.size);
  }
  return found;
}

// To 10 bits of mantissa, halves to even.
void round(char *element) {
  uint32_t bits;
  memcpy(&bits, element, 4);
  bool is_nan = (bits & 0x7fffffff) > 0x7f800000;
  bits = is_nan ? 0x7fffe000 : (bits + 0xfff + (bits >> 13 & 1)) & 0xffffe000;
  memcpy(element, &bits, 4);
}

template <class Write> void each_element(const Boxed &copy, Write write) {
  const TensorMap &array = *copy.array;
  size_t count = lines(array) * array.box[0];
  for (size_t number = 0; number < count; number++) write(number, permuted(copy.target, number * array.size));
}

}  // namespace

bool phase_ended(const void *word, uint32_t phase) {
  Count *count = count_at(word);
  return !count || (count->phases & 1) != phase;
}

bool arrives_one(uint64_t drawn) {
  if (underway.empty()) return false;
  auto chosen = underway.begin() + static_cast<int64_t>(drawn % underway.size());
  Boxed copy = *chosen;
  underway.erase(chosen);
  unsigned size = copy.array->size;
  each_element(copy, [&](size_t number, char *target) {
    if (const char *from = source(copy, number)) memcpy(target, from, size);
    else memset(target, 0, size);
    if (copy.array->rounded) round(target);
    async_wrote(target, size);
  });
  Count *count = count_at(copy.word);
  if (!count) return true;
  count->bytes -= static_cast<int64_t>(lines(*copy.array) * copy.array->box[0] * size);
  // A phase that expects nothing yet may have received bytes, but never more than its thread then says.
  if (count->bytes < 0 && !count->arrivals) fail("more bytes arrive than a phase expects");
  end_phase(*count);
  return true;
}

void begin_bulk() { counts.clear(), underway.clear(); }

std::string end_bulk() { return underway.empty() ? "" : "a block ends before its copies have arrived"; }

}  // namespace simulator

using simulator::block;

extern "C" {
void sim_start_count(int32_t threads, const uint64_t *given, uint32_t *) {
  auto *word = reinterpret_cast<char *>(given[0]);
  if (given[0] % 8) simulator::fail("a word that counts is not aligned");
  simulator::counts.push_back({word, threads, threads, 0, 0});
  memcpy(word, &simulator::kCounting, 8);
  sim_wrote(word, 8);
}
void sim_expect(int32_t, const uint64_t *given, uint32_t *) {
  simulator::Count *count = simulator::arrive_at(reinterpret_cast<char *>(given[0]));
  if (!count) return;
  count->bytes += static_cast<uint32_t>(given[1]);
  simulator::end_phase(*count);
}
void sim_arrive(int32_t, const uint64_t *given, uint32_t *) {
  simulator::Count *count = simulator::arrive_at(reinterpret_cast<char *>(given[0]));
  if (count) simulator::end_phase(*count);
}
// `kind`: the number of dimensions that the instruction names, and whether it copies windows.
void sim_copy_box(int32_t kind, const uint64_t *given, uint32_t *) {
  int32_t rank = kind & 7;
  bool windows = kind & 8;
  const auto *array = reinterpret_cast<const simulator::TensorMap *>(given[1]);
  if (array->known != simulator::kTensorMap || given[1] % 64) return simulator::fail("an array is not described");
  if (array->rank != static_cast<unsigned>(rank)) return simulator::fail("an array has another number of dimensions");
  if (array->windows != windows) return simulator::fail("an array is described for another way to copy");
  simulator::Boxed copy{array, reinterpret_cast<char *>(given[0]), {}, {}, reinterpret_cast<char *>(given[2 + rank])};
  for (int32_t dimension = 0; dimension < rank; dimension++) {
    copy.place[dimension] = static_cast<int32_t>(given[2 + dimension]);
  }
  constexpr int64_t kTaps[] = {1 << 16, 1 << 8, 1 << 5};
  for (int32_t axis = 0; windows && axis < rank - 2; axis++) {
    copy.taps[axis] = static_cast<uint16_t>(given[3 + rank + axis]);
    int64_t ahead = copy.place[axis + 1] - array->corners[axis][0];
    if (copy.taps[axis] >= kTaps[rank - 3]) return simulator::fail("an element is too far from where its window begins");
    if (ahead < 0 || copy.place[axis + 1] > simulator::last(*array, axis) || ahead % array->steps[axis]) {
      return simulator::fail("no window begins where a copy does");
    }
  }
  size_t nbytes = simulator::lines(*array) * array->box[0] * array->size;
  // The permutation begins anew at each square of 8 lines.
  if (given[0] % (8 * simulator::kLine)) return simulator::fail("a box does not begin with a square");
  if (!simulator::in_window(copy.target, nbytes)) return simulator::fail("a box is not in the memory that the launch grants");
  if (!simulator::count_at(copy.word)) return;
  if (!simulator::is_published(copy.word, &simulator::kCounting, 8)) {
    return simulator::fail("a word counts before it is published");
  }
  if (simulator::has_unpublished(copy.target, nbytes)) return simulator::fail("a box is copied over what is not published");
  simulator::each_element(copy, [&](size_t, char *target) {
    memset(target, 0x5f, array->size);
    sim_writes(target, array->size);
  });
  simulator::underway.push_back(copy);
}
void sim_wait_for_phase(int32_t, const uint64_t *given, uint32_t *) {
  auto &own = block.threads[block.current];
  own.word = reinterpret_cast<void *>(given[0]), own.phase = static_cast<uint32_t>(given[1]);
  while (!simulator::phase_ended(own.word, own.phase)) simulator::wait(simulator::State::kAtPhase);
}
}
