// The block that the simulator runs, and what its threads do together.
#pragma once

#include <ucontext.h>

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "simulator.h"

namespace simulator {

#ifndef WARP
#define WARP 32
#endif
constexpr unsigned kWarp = WARP, kMaxThreads = 1024;

enum class State { kRunnable, kAtExchange, kAtWarpBarrier, kAtBarrier, kAtPartialBarrier, kAtPhase, kDone };

// What the threads of a warp do together, once all of them have given their part.
using Exchange = void (*)(unsigned begin, unsigned end);

struct Copy {
  void *target;
  const void *source;
  size_t nbytes;
  size_t size;  // including zeros
};

// Bytes of the memory that the launch grants a block.
struct Range {
  size_t begin, nbytes;
};

struct Thread {
  ucontext_t context;
  State state;
  Exchange exchange;
  int32_t kind;                          // which of its forms
  uint64_t given[264];                   // what it gives to an exchange
  uint32_t taken[256];                   // and what it takes from it
  std::deque<std::vector<Copy>> groups;  // copies that have not arrived; the last group is open
  std::vector<Range> unpublished;        // what it has written, and the asynchronous proxy need not see
  const void *word;                      // for whose phase it waits
  uint32_t phase;
  unsigned expected;                     // how many threads meet at the barrier where it is
};

struct Block {
  ucontext_t scheduler;
  std::vector<Thread> threads = std::vector<Thread>(kMaxThreads);
  unsigned count, number, current;
  size_t granted;     // bytes of memory from the launch,
  char *window;       // and where they are; null until a thread has told
  std::string wrong;  // what is wrong with the kernel
  Kernel kernel;
  void **parameters;
};

extern Block block;

// Lets other threads run.
void wait(State state);

// Takes part in an exchange.
const uint32_t *exchanged(Exchange exchange, int32_t kind, const uint64_t *given, size_t count);

// The number `place` of the elements that a word holds: bf16, f16, tf32, s8 or u8.
double element(int32_t kind, uint64_t word, unsigned place);

// What happens before and after a block to the memory that the launch grants.
void begin_block();
std::string end_block();

// Whether bytes are in that memory; whether what tensor cores see of them is this; whether a thread has written some of
// them and not published it.
bool in_window(const void *begin, size_t nbytes);
bool is_published(const void *begin, const void *expected, size_t nbytes);
bool has_unpublished(const void *begin, size_t nbytes);

// Tells what the device itself has written to shared memory: tensor cores see it.
void async_wrote(const void *begin, size_t nbytes);

// Copies of boxes: whether the phase of a word has ended that a thread waits for; lets one of the boxes arrive, and returns
// whether there was one; what happens before and after a block.
bool phase_ended(const void *word, uint32_t phase);
bool arrives_one(uint64_t drawn);
void begin_bulk();
std::string end_bulk();

}  // namespace simulator

extern "C" void sim_writes(void *target, int64_t nbytes);
extern "C" void sim_wrote(void *target, int64_t nbytes);
