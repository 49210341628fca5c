#include "simulator.h"

#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

namespace simulator {
namespace {

constexpr unsigned kWarp = 32, kMaxThreads = 1024;
constexpr size_t kStack = 128 << 10;

enum class State { kRunnable, kAtShuffle, kAtWarpBarrier, kAtBarrier, kDone };

struct Thread {
  ucontext_t context;
  State state;
  uint32_t value;   // what it gives to a shuffle, then what it takes from it
  uint32_t source;  // the lane that it takes from
};

struct Block {
  ucontext_t scheduler;
  std::vector<Thread> threads = std::vector<Thread>(kMaxThreads);
  char *stacks = static_cast<char *>(mmap(nullptr, kMaxThreads * kStack, PROT_READ | PROT_WRITE,
                                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  unsigned count, number, current;
  Kernel kernel;
  void **parameters;
};

Block block;

void enter() {
  block.kernel(block.parameters);
  block.threads[block.current].state = State::kDone;
}

void wait(State state) {
  Thread &own = block.threads[block.current];
  own.state = state;
  swapcontext(&own.context, &block.scheduler);
}

void start(unsigned thread) {
  Thread &own = block.threads[thread];
  getcontext(&own.context);
  own.context.uc_stack.ss_sp = block.stacks + thread * kStack;
  own.context.uc_stack.ss_size = kStack;
  own.context.uc_link = &block.scheduler;
  makecontext(&own.context, enter, 0);
  own.state = State::kRunnable;
}

// Whether all threads of a range are in one state.
bool all(unsigned begin, unsigned end, State state) {
  for (unsigned thread = begin; thread < end; thread++) {
    if (block.threads[thread].state != state) return false;
  }
  return true;
}

bool any(unsigned begin, unsigned end, State state) {
  for (unsigned thread = begin; thread < end; thread++) {
    if (block.threads[thread].state == state) return true;
  }
  return false;
}

void release(unsigned begin, unsigned end) {
  for (unsigned thread = begin; thread < end; thread++) block.threads[thread].state = State::kRunnable;
}

void shuffle(unsigned begin, unsigned end) {
  uint32_t given[kWarp];
  for (unsigned thread = begin; thread < end; thread++) given[thread - begin] = block.threads[thread].value;
  for (unsigned thread = begin; thread < end; thread++) {
    Thread &taker = block.threads[thread];
    if (taker.source < end - begin) taker.value = given[taker.source];
  }
}

// Runs a warp until all of its threads are at a barrier of the block, or done. Returns whether they were able to go on.
bool run_warp(unsigned begin, unsigned end, std::mt19937_64 &random) {
  std::vector<unsigned> order(end - begin);
  std::iota(order.begin(), order.end(), begin);
  for (;;) {
    std::shuffle(order.begin(), order.end(), random);
    for (unsigned thread : order) {
      if (block.threads[thread].state != State::kRunnable) continue;
      block.current = thread;
      swapcontext(&block.scheduler, &block.threads[thread].context);
    }
    if (any(begin, end, State::kRunnable)) continue;
    bool shuffling = all(begin, end, State::kAtShuffle);
    if (shuffling) shuffle(begin, end);
    if (!shuffling && !all(begin, end, State::kAtWarpBarrier)) break;
    release(begin, end);
  }
  for (unsigned thread = begin; thread < end; thread++) {
    State state = block.threads[thread].state;
    if (state == State::kAtShuffle || state == State::kAtWarpBarrier) return false;
  }
  return true;
}

std::string run_block(std::mt19937_64 &random) {
  std::vector<unsigned> order((block.count + kWarp - 1) / kWarp);
  std::iota(order.begin(), order.end(), 0u);
  for (unsigned thread = 0; thread < block.count; thread++) start(thread);
  for (;;) {
    std::shuffle(order.begin(), order.end(), random);
    for (unsigned warp : order) {
      if (!run_warp(warp * kWarp, std::min(block.count, (warp + 1) * kWarp), random)) {
        return "the threads of a warp do not meet";
      }
    }
    if (all(0, block.count, State::kDone)) return "";
    if (!all(0, block.count, State::kAtBarrier)) return "the threads of a block do not meet at a barrier";
    release(0, block.count);
  }
}

uint32_t exchanged(uint32_t value, uint32_t source) {
  Thread &own = block.threads[block.current];
  own.value = value;
  own.source = source;
  wait(State::kAtShuffle);
  return block.threads[block.current].value;
}

}  // namespace

std::string launch(Kernel kernel, void **parameters, unsigned blocks, unsigned threads, uint64_t seed) {
  std::mt19937_64 random(seed);
  if (threads > kMaxThreads) return "a block has too many threads";
  block.kernel = kernel, block.parameters = parameters, block.count = threads;
  for (block.number = 0; block.number < blocks; block.number++) {
    std::string wrong = run_block(random);
    if (!wrong.empty()) return wrong;
  }
  return "";
}

}  // namespace simulator

using simulator::block;

// What kernels call instead of NVIDIA's intrinsics.
extern "C" {
int32_t sim_thread() { return block.current; }
int32_t sim_block() { return block.number; }
// Lets the other threads of the warp run, as they may at any time.
void sim_pause() { simulator::wait(simulator::State::kRunnable); }
void sim_barrier(int32_t) { simulator::wait(simulator::State::kAtBarrier); }
void sim_warp_barrier(int32_t) { simulator::wait(simulator::State::kAtWarpBarrier); }
int32_t sim_shuffle_down(int32_t, int32_t value, int32_t lanes, int32_t) {
  return simulator::exchanged(value, block.current % simulator::kWarp + lanes);
}
int32_t sim_shuffle_index(int32_t, int32_t value, int32_t lane, int32_t) { return simulator::exchanged(value, lane); }
}
