// The hidden state of random draws.

#include <atomic>
#include <cstdint>
#include <random>

#include <unistd.h>

namespace {

uint64_t RandomKey() {
  std::random_device device;
  return (static_cast<uint64_t>(device()) << 32) | device();
}

}  // namespace

// The draws of one process. The counter's bits above these hold the number of the process, since a forked child has the key and the count
// of its parent.
constexpr int kDrawBits = 40;

// Writes a key, and a counter of 128 bits whose high word no other draw with that key has: three words for Philox.
extern "C" __attribute__((visibility("default"))) int32_t trivium_random_state(void*, void** pointers, const int64_t*) {
  static const uint64_t key = RandomKey();
  static std::atomic<uint64_t> draws{0};
  uint64_t* state = static_cast<uint64_t*>(pointers[0]);
  state[0] = key;
  state[1] = 0;
  state[2] = static_cast<uint64_t>(getpid()) << kDrawBits | draws.fetch_add(1, std::memory_order_relaxed);
  return 0;
}
