#include "simulator.h"

#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>

#include "block.h"

namespace simulator {

constexpr size_t kStack = 128 << 10;

Block block;

namespace {

char *stacks = static_cast<char *>(mmap(nullptr, kMaxThreads * kStack, PROT_READ | PROT_WRITE,
                                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));

void enter() {
  block.kernel(block.parameters);
  block.threads[block.current].state = State::kDone;
}

}  // namespace

void wait(State state) {
  Thread &own = block.threads[block.current];
  own.state = state;
  swapcontext(&own.context, &block.scheduler);
}

const uint32_t *exchanged(Exchange exchange, int32_t kind, const uint64_t *given, size_t count) {
  Thread &own = block.threads[block.current];
  own.exchange = exchange, own.kind = kind;
  std::copy(given, given + count, own.given);
  wait(State::kAtExchange);
  return own.taken;
}

double element(int32_t kind, uint64_t word, unsigned place) {
  uint32_t bits = static_cast<uint32_t>(word);
  if (kind == 3) return static_cast<int8_t>(bits >> (8 * place));
  if (kind == 4) return static_cast<uint8_t>(bits >> (8 * place));
  if (kind == 1) {
    uint16_t half = static_cast<uint16_t>(bits >> (16 * place));
    _Float16 value;
    memcpy(&value, &half, 2);
    return static_cast<double>(value);
  }
  // The lower 13 bits of a word that holds a tf32 do not count.
  bits = kind == 2 ? bits & 0xffffe000 : bits >> (16 * place) << 16;
  float value;
  memcpy(&value, &bits, 4);
  return value;
}

namespace {

void start(unsigned thread) {
  Thread &own = block.threads[thread];
  getcontext(&own.context);
  own.context.uc_stack.ss_sp = stacks + thread * kStack;
  own.context.uc_stack.ss_size = kStack;
  own.context.uc_link = &block.scheduler;
  own.groups.assign(1, {});
  own.unpublished.clear();
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
  for (unsigned thread = begin; thread < end; thread++) {
    Thread &taker = block.threads[thread];
    uint64_t source = taker.given[1] < end - begin ? begin + taker.given[1] : thread;
    taker.taken[0] = static_cast<uint32_t>(block.threads[source].given[0]);
  }
}

// Lets threads go on whose phases have ended, and returns whether there are any.
bool wake(unsigned begin, unsigned end) {
  bool woken = false;
  for (unsigned thread = begin; thread < end; thread++) {
    Thread &own = block.threads[thread];
    if (own.state != State::kAtPhase || !phase_ended(own.word, own.phase)) continue;
    own.state = State::kRunnable;
    woken = true;
  }
  return woken;
}

// Lets the threads go on that are at a barrier of some of the block's threads, if all of these are there. Returns whether
// they are.
bool release_partial() {
  unsigned there = 0, expected = 0;
  for (unsigned thread = 0; thread < block.count; thread++) {
    if (block.threads[thread].state == State::kAtPartialBarrier) there++, expected = block.threads[thread].expected;
  }
  if (!there || there < expected) return false;
  if (there > expected && block.wrong.empty()) block.wrong = "more threads are at a barrier than it is for";
  for (unsigned thread = 0; thread < block.count; thread++) {
    if (block.threads[thread].state == State::kAtPartialBarrier) block.threads[thread].state = State::kRunnable;
  }
  return true;
}

// Runs a warp until all of its threads are at a barrier of the block, wait for copies, or are done. Returns whether they
// were able to go on.
bool run_warp(unsigned begin, unsigned end, std::mt19937_64 &random) {
  std::vector<unsigned> order(end - begin);
  std::iota(order.begin(), order.end(), begin);
  for (;;) {
    std::shuffle(order.begin(), order.end(), random);
    for (unsigned thread : order) {
      // Some threads fall behind.
      if (block.threads[thread].state != State::kRunnable || random() % 4 == 0) continue;
      block.current = thread;
      swapcontext(&block.scheduler, &block.threads[thread].context);
    }
    if (any(begin, end, State::kRunnable) || wake(begin, end)) continue;
    bool exchanging = all(begin, end, State::kAtExchange);
    if (exchanging) block.threads[begin].exchange(begin, end);
    if (!exchanging && !all(begin, end, State::kAtWarpBarrier)) break;
    release(begin, end);
  }
  if (any(begin, end, State::kAtPhase)) return true;
  for (unsigned thread = begin; thread < end; thread++) {
    State state = block.threads[thread].state;
    if (state == State::kAtExchange || state == State::kAtWarpBarrier) return false;
  }
  return true;
}

std::string run_block(std::mt19937_64 &random) {
  std::vector<unsigned> order((block.count + kWarp - 1) / kWarp);
  std::iota(order.begin(), order.end(), 0u);
  for (unsigned thread = 0; thread < block.count; thread++) start(thread);
  block.wrong.clear();
  begin_block();
  begin_bulk();
  for (;;) {
    std::shuffle(order.begin(), order.end(), random);
    for (unsigned warp : order) {
      if (!run_warp(warp * kWarp, std::min(block.count, (warp + 1) * kWarp), random)) {
        return "the threads of a warp do not meet";
      }
    }
    if (!block.wrong.empty()) return block.wrong;
    if (all(0, block.count, State::kDone)) {
      std::string wrong = end_bulk();
      return wrong.empty() ? end_block() : wrong;
    }
    if (release_partial()) continue;
    if (any(0, block.count, State::kAtPhase)) {
      if (wake(0, block.count) || arrives_one(random())) continue;
      return "threads wait for copies that nobody has begun, or for threads that do not arrive";
    }
    if (!all(0, block.count, State::kAtBarrier)) return "the threads of a block do not meet at a barrier";
    release(0, block.count);
  }
}

uint32_t shuffled(uint32_t value, uint32_t source) {
  uint64_t given[] = {value, source};
  return exchanged(shuffle, 0, given, 2)[0];
}

// The words of matrix instructions are those that the PTX ISA assigns to the lanes of a warp.

void load_matrix(unsigned begin, unsigned end) {
  for (unsigned thread = begin; thread < end; thread++) {
    unsigned lane = thread - begin;
    for (unsigned matrix = 0; matrix < 4; matrix++) {
      uint16_t halves[2];
      for (unsigned half = 0; half < 2; half++) {
        unsigned line = lane / 4, place = lane % 4 * 2 + half;
        if (block.threads[thread].kind) std::swap(line, place);
        auto address = block.threads[begin + 8 * matrix + line].given[0];
        halves[half] = reinterpret_cast<const uint16_t *>(address)[place];
      }
      memcpy(&block.threads[thread].taken[matrix], halves, 4);
    }
  }
}

// Fills the part of an operand's line that a lane has: two words from `first` on, `step` apart, each for 16 bytes.
void fill(double *line, const Thread &owner, unsigned first, unsigned step, unsigned quarter, unsigned each) {
  for (unsigned half = 0; half < 2; half++) {
    for (unsigned place = 0; place < each; place++) {
      line[(half * 4 + quarter) * each + place] = element(owner.kind, owner.given[first + step * half], place);
    }
  }
}

void multiply_add(unsigned begin, unsigned end) {
  int32_t kind = block.threads[begin].kind;
  unsigned each = kind == 2 ? 1 : kind < 2 ? 2 : 4, depth = 8 * each;
  double lhs[16][32], rhs[8][32];
  for (unsigned lane = 0; lane < end - begin; lane++) {
    const Thread &owner = block.threads[begin + lane];
    fill(lhs[lane / 4], owner, 0, 2, lane % 4, each);
    fill(lhs[lane / 4 + 8], owner, 1, 2, lane % 4, each);
    fill(rhs[lane / 4], owner, 4, 1, lane % 4, each);
  }
  for (unsigned lane = 0; lane < end - begin; lane++) {
    Thread &owner = block.threads[begin + lane];
    for (unsigned part = 0; part < 4; part++) {
      const double *row = lhs[lane / 4 + part / 2 * 8], *column = rhs[lane % 4 * 2 + part % 2];
      double total = std::inner_product(row, row + depth, column, 0.0);
      uint32_t before = static_cast<uint32_t>(owner.given[6 + part]);
      if (kind < 3) {
        float sum;
        memcpy(&sum, &before, 4);
        sum = static_cast<float>(sum + total);
        memcpy(&owner.taken[part], &sum, 4);
      } else {
        owner.taken[part] = before + static_cast<uint32_t>(static_cast<int64_t>(total));
      }
    }
  }
}

}  // namespace

std::string launch(Kernel kernel, void **parameters, unsigned blocks, unsigned threads, size_t granted, uint64_t seed) {
  std::mt19937_64 random(seed);
  if (threads > kMaxThreads) return "a block has too many threads";
  block.kernel = kernel, block.parameters = parameters, block.count = threads, block.granted = granted;
  std::vector<unsigned> order(blocks);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  for (unsigned number : order) {
    block.number = number;
    std::string wrong = run_block(random);
    if (!wrong.empty()) return wrong;
  }
  return "";
}

}  // namespace simulator

using simulator::block;

// What kernels call instead of intrinsics.
extern "C" {
int32_t sim_thread() { return block.current; }
int32_t sim_block() { return block.number; }
// Lets the other threads of the warp run, as they may at any time.
void sim_pause() { simulator::wait(simulator::State::kRunnable); }
void sim_barrier(int32_t) { simulator::wait(simulator::State::kAtBarrier); }
void sim_partial_barrier(int32_t, int32_t threads) {
  block.threads[block.current].expected = threads;
  simulator::wait(simulator::State::kAtPartialBarrier);
}
void sim_warp_barrier(int32_t) { simulator::wait(simulator::State::kAtWarpBarrier); }
int32_t sim_shuffle_down(int32_t, int32_t value, int32_t lanes, int32_t) {
  return simulator::shuffled(value, block.current % simulator::kWarp + lanes);
}
int32_t sim_shuffle_up(int32_t, int32_t value, int32_t lanes, int32_t) {
  return simulator::shuffled(value, block.current % simulator::kWarp - lanes);
}
int32_t sim_shuffle_exchange(int32_t, int32_t value, int32_t lanes, int32_t) {
  return simulator::shuffled(value, (block.current % simulator::kWarp) ^ lanes);
}
int32_t sim_shuffle_index(int32_t, int32_t value, int32_t lane, int32_t) { return simulator::shuffled(value, lane); }
// AMD's: the source is in bytes, and the warp begins again behind its last thread.
int32_t sim_permute(uint32_t source, int32_t value) { return simulator::shuffled(value, source / 4 % simulator::kWarp); }
int32_t sim_first(int32_t value) { return simulator::shuffled(value, 0); }
void sim_load_matrix(int32_t kind, const uint64_t *given, uint32_t *taken) {
  const uint32_t *words = simulator::exchanged(simulator::load_matrix, kind, given, 1);
  std::copy(words, words + 4, taken);
}
void sim_multiply_add(int32_t kind, const uint64_t *given, uint32_t *taken) {
  const uint32_t *words = simulator::exchanged(simulator::multiply_add, kind, given, 10);
  std::copy(words, words + 4, taken);
}
void sim_round(int32_t, const uint64_t *given, uint32_t *taken) {
  *taken = (static_cast<uint32_t>(*given) + 0x1000) & 0xffffe000;
}
// The second operand is the lower half.
void sim_pack(int32_t kind, const uint64_t *given, uint32_t *taken) {
  *taken = 0;
  for (unsigned half = 0; half < 2; half++) {
    auto bits = static_cast<uint32_t>(given[1 - half]);
    float value;
    memcpy(&value, &bits, 4);
    uint16_t rounded = static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    if (kind == 1) {
      auto narrow = static_cast<_Float16>(value);
      memcpy(&rounded, &narrow, 2);
    }
    if (value != value) rounded = 0x7fff;
    *taken |= static_cast<uint32_t>(rounded) << (16 * half);
  }
}
// Numbers that are not normal are zeros.
void sim_power_of_two(int32_t, const uint64_t *given, uint32_t *taken) {
  auto bits = static_cast<uint32_t>(given[0]);
  float value;
  memcpy(&value, &bits, 4);
  value = std::exp2(value);
  if (value < std::numeric_limits<float>::min()) value = 0;
  memcpy(taken, &value, 4);
}
// A copy arrives when its thread waits for it, not before.
void sim_copy_async(int32_t size, const uint64_t *given, uint32_t *) {
  auto nbytes = static_cast<uint32_t>(given[2]);
  auto whole = static_cast<uint32_t>(size);
  simulator::Copy copy{reinterpret_cast<void *>(given[0]), reinterpret_cast<const void *>(given[1]), nbytes, whole};
  block.threads[block.current].groups.back().push_back(copy);
  sim_writes(copy.target, copy.size);
}
void sim_commit(int32_t, const uint64_t *, uint32_t *) { block.threads[block.current].groups.emplace_back(); }
void sim_wait(int32_t, const uint64_t *given, uint32_t *) {
  auto &groups = block.threads[block.current].groups;
  for (; groups.size() > static_cast<uint32_t>(*given) + 1; groups.pop_front()) {
    for (const simulator::Copy &copy : groups.front()) {
      memset(copy.target, 0, copy.size);
      memcpy(copy.target, copy.source, copy.nbytes);
      sim_wrote(copy.target, copy.size);
    }
  }
}
}
