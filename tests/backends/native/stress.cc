// Stress tests of the native runtime, for builds with sanitizers (`make sanitize`): many concurrent callers, loops within loops, pools that
// come and go, runs that end early, forks, and an exit while workers are busy. Prints what is wrong and returns 1, or prints nothing and
// returns 0.

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include "collectives.h"
#include "interpreter.h"
#include "thread_pool.h"

extern "C" {
int trivium_runtime_version();
int trivium_num_threads();
void trivium_parallel_for(trivium::RangeFunction function, void* context, int64_t count, int64_t grain, int32_t limit);
int32_t trivium_check_signals();
void trivium_set_interpreter(const trivium::Interpreter* interpreter);
int32_t trivium_run(trivium::Frame* frame);
int32_t trivium_collective(const int64_t* description, const void* source, void* destination);
}

// In pjrt_stress.cc.
void PjrtObjects();
void PjrtExecutions();

// In artifact_stress.cc.
void ArtifactsOfRandomNumbers();
void Packings();

// In foreign_stress.cc.
void ForeignPrograms();

// In transfer_stress.cc.
void TransfersWithHosts();

// In manager_stress.cc.
void TransferManagers();

// In promise_stress.cc.
void PromisedBuffers();

// In queue_stress.cc.
void WorkInFlight();
void ForksInFlight();
void ForksWhileABufferIsUsed();
void ForksWhileThreadsAreTraced();
void QueuesThatEnd();

namespace {

constexpr int kCallers = 6;

#define EXPECT(condition)                                                        \
  do {                                                                           \
    if (!(condition)) {                                                          \
      std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      std::_Exit(1);                                                             \
    }                                                                            \
  } while (false)

void InThreads(int count, const std::function<void(int)>& work) {
  std::vector<std::thread> threads;
  for (int number = 0; number < count; ++number) threads.emplace_back(work, number);
  for (std::thread& thread : threads) thread.join();
}

// Loops. Each iteration counts itself, in memory that is not atomic: this detects races and iterations that run twice.

void Count(void* context, int64_t begin, int64_t end, int64_t) {
  int* counts = static_cast<int*>(context);
  for (int64_t i = begin; i < end; ++i) ++counts[i];
}

using Loop = std::function<void(trivium::RangeFunction, void*, int64_t count, int64_t grain, int limit)>;

void CheckLoop(const Loop& loop, int64_t count, int64_t grain, int limit) {
  std::vector<int> counts(count > 0 ? count : 0);
  loop(Count, counts.data(), count, grain, limit);
  for (int n : counts) EXPECT(n == 1);
}

void CheckLoops(const Loop& loop, int turns, int seed) {
  std::mt19937 random(seed);
  for (int turn = 0; turn < turns; ++turn) {
    const int64_t count = static_cast<int64_t>(random() % 3000) - 10;
    CheckLoop(loop, count, random() % 400, static_cast<int>(random() % 11) - 5);
  }
}

void ManyCallers() {
  InThreads(kCallers, [](int number) { CheckLoops(trivium_parallel_for, 500, number); });
}

// Each participant of a loop works in memory of its own, which is not atomic: two threads with the same number are a race.
void Participants() {
  constexpr int kLimit = 3;
  struct Work {
    int64_t sums[kLimit] = {};
  };
  const auto add = [](void* context, int64_t begin, int64_t end, int64_t participant) {
    EXPECT(participant >= 0 && participant < kLimit);
    for (int64_t i = begin; i < end; ++i) static_cast<Work*>(context)->sums[participant] += i;
  };
  InThreads(kCallers, [&](int) {
    for (int turn = 0; turn < 300; ++turn) {
      Work work;
      trivium_parallel_for(add, &work, 1000, 7, kLimit);
      EXPECT(work.sums[0] + work.sums[1] + work.sums[2] == 499500);
    }
  });
}

void CheckNest(int limit) {
  struct Matrix {
    int limit;
    std::vector<int> counts = std::vector<int>(64 * 50);
  };
  const auto rows = [](void* context, int64_t begin, int64_t end, int64_t) {
    auto* matrix = static_cast<Matrix*>(context);
    for (int64_t row = begin; row < end; ++row) trivium_parallel_for(Count, matrix->counts.data() + row * 50, 50, 7, matrix->limit);
  };
  Matrix matrix{limit};
  trivium_parallel_for(rows, &matrix, 64, 3, limit);
  for (int n : matrix.counts) EXPECT(n == 1);
}

void LoopsWithinLoops() {
  InThreads(kCallers, [](int) {
    for (int turn = 0; turn < 200; ++turn) CheckNest(0);
  });
}

// A caller that moves finds no worker on its processor.
void CallersThatMove() {
  cpu_set_t all;
  EXPECT(sched_getaffinity(0, sizeof(all), &all) == 0);
  trivium::ThreadPool pool(std::min(CPU_COUNT(&all), 4));
  const int processors = static_cast<int>(std::thread::hardware_concurrency());
  const auto apart = [](void* context, int64_t begin, int64_t end, int64_t participant) {
    EXPECT(participant == 0 || sched_getcpu() != *static_cast<int*>(context));
    for (volatile int64_t i = begin * 100; i < end * 100;) i = i + 1;
  };
  for (int turn = 0; turn < 200; ++turn) {
    int here = turn % processors;
    if (!CPU_ISSET(here, &all)) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(here, &one);
    EXPECT(sched_setaffinity(0, sizeof(one), &one) == 0);
    for (int loop = 0; loop < 20; ++loop) pool.ParallelFor(apart, &here, 100, 1, 0);
  }
  EXPECT(sched_setaffinity(0, sizeof(all), &all) == 0);
}

// A host's threads, of which a team is made for each loop; they may be fewer than those that the loop wants.
thread_local int team_number = 0;  // the caller's

template <int kThreads>
void InTeam(void (*function)(void*), void* data, unsigned threads, unsigned) {
  EXPECT(threads == 0);
  std::vector<std::thread> others;
  for (int number = 1; number < kThreads; ++number) {
    others.emplace_back([=] {
      team_number = number;
      function(data);
    });
  }
  function(data);
  for (std::thread& thread : others) thread.join();
}

template <int kThreads>
trivium::HostThreads Team() {
  return {InTeam<kThreads>, [] { return team_number; }, [] { return kThreads; }};
}

// The threads of one caller serve at a time; the others' loops then run alone, or on the pool of the process.
void LoopsOnHostThreads() {
  std::atomic<int> served{0};
  InThreads(kCallers, [&](int number) {
    trivium::UseHostThreads(number % 2 == 0 ? Team<2>() : Team<5>());
    for (int turn = 0; turn < 60; ++turn) {
      int seed = number + turn;
      const auto work = [](void* seed) {
        CheckLoops(trivium_parallel_for, 20, *static_cast<int*>(seed));
        CheckNest(2);
        EXPECT(!trivium::RunOnHostThreads(2, nullptr, nullptr));
      };
      const int threads = turn % 7;
      const bool done = trivium::RunOnHostThreads(threads, work, &seed);
      EXPECT(!done || (threads >= 2 && threads <= (number % 2 == 0 ? 2 : 5)));
      if (done) ++served;
      CheckLoops(trivium_parallel_for, 5, seed);
    }
    trivium::UseHostThreads({});
    EXPECT(!trivium::RunOnHostThreads(2, nullptr, nullptr));
  });
  EXPECT(served > 0);
}

// Pools that are destroyed while their workers start, spin or sleep.
void PoolsThatComeAndGo() {
  for (int turn = 0; turn < 300; ++turn) {
    trivium::ThreadPool pool(1 + turn % 5);
    const Loop loop = [&](auto... arguments) { pool.ParallelFor(arguments...); };
    CheckLoops(loop, turn % 4, turn);
    if (turn % 50 == 7) usleep(2000);
  }
}

// Runs, with an interpreter of our own: its lock is a mutex, its exception a flag per thread.

std::mutex interpreter_lock;
thread_local bool holds_lock = false;
thread_local bool exception = false;
std::atomic<int> signals{0};

void* SaveThread() {
  EXPECT(holds_lock);
  holds_lock = false;
  interpreter_lock.unlock();
  return &holds_lock;
}

void RestoreThread(void* state) {
  EXPECT(state == &holds_lock && !holds_lock);
  interpreter_lock.lock();
  holds_lock = true;
}

int CheckSignals() {
  EXPECT(holds_lock);
  if (signals.exchange(0) == 0) return 0;
  exception = true;
  return -1;
}

void Release(void*) { EXPECT(holds_lock); }

struct Program {
  int turns;
  bool fails;
  std::vector<int> counts;
  Program* inner;
  int threads = 0;
};

int32_t Enter(void** arguments, void* arena, void** context);

int32_t RunProgram(Program& program) {
  void* arguments[] = {&program};
  trivium::Frame frame{Enter, arguments, &program, arguments, program.threads};
  return trivium_run(&frame);
}

// The host function: runs the inner program, if there is one, and fails if that ended early or the program requests it.
void* Call(void* callable, const char*, ...) {
  EXPECT(holds_lock);
  auto* program = static_cast<Program*>(callable);
  if (program->inner != nullptr && RunProgram(*program->inner) != 0) return nullptr;
  exception = program->fails;
  return program->fails ? nullptr : callable;
}

int32_t Enter(void** arguments, void* arena, void** context) {
  EXPECT(!holds_lock && arena == arguments[0] && context == arguments);
  auto* program = static_cast<Program*>(arguments[0]);
  for (int turn = 0; turn < program->turns; ++turn) {
    trivium_parallel_for(Count, program->counts.data(), static_cast<int64_t>(program->counts.size()), 16, 0);
    if (trivium_check_signals() != 0) return -1;
  }
  return trivium::CallPython(program, 0, arguments);
}

void CheckRun(int turns, bool inner_fails, bool fails) {
  Program inner{turns, inner_fails, std::vector<int>(100), nullptr, 2};
  Program program{turns, fails, std::vector<int>(200), &inner, turns};
  const int32_t status = RunProgram(program);
  EXPECT(holds_lock);
  EXPECT((status != 0) == (fails || inner_fails));
  EXPECT(exception == (status != 0));
  exception = false;
  for (int n : program.counts) EXPECT(n == turns);
}

// `main_thread`: the thread that checks for signals.
void SetInterpreter(uint64_t main_thread) {
  const trivium::Interpreter interpreter{.save_thread = SaveThread,
                                         .restore_thread = RestoreThread,
                                         .check_signals = CheckSignals,
                                         .call = Call,
                                         .release = Release,
                                         .main_thread = main_thread};
  trivium_set_interpreter(&interpreter);
}

void WithLock(const std::function<void()>& work) {
  interpreter_lock.lock();
  holds_lock = true;
  work();
  holds_lock = false;
  interpreter_lock.unlock();
}

void Runs() {
  SetInterpreter(static_cast<uint64_t>(pthread_self()));
  InThreads(kCallers, [](int number) {
    if (number % 2 == 0) trivium::UseHostThreads(Team<3>());
    for (int turn = 0; turn < 300; ++turn) WithLock([&] { CheckRun(turn % 4, (turn + number) % 3 == 0, turn % 5 == 0); });
  });
}

void RunsThatSignalsEnd() {
  std::thread sender([] {
    for (int number = 0; number < 3; ++number) {
      usleep(20000);
      signals = 1;
      while (signals != 0) usleep(1000);
    }
  });
  for (int number = 0; number < 3; ++number) {
    Program endless{1 << 30, false, std::vector<int>(10), nullptr};
    WithLock([&] { EXPECT(RunProgram(endless) != 0 && exception); });
    exception = false;
  }
  sender.join();
  WithLock([] { CheckRun(3, false, false); });
}

// A child has no workers and may have inherited held locks of the pool; it makes a pool of its own. The busy thread allocates no memory:
// the sanitizer's allocator has locks too, which a child would inherit.
[[maybe_unused]] void Forks() {
  std::atomic<bool> stop{false};
  std::vector<int> counts(3000);
  std::thread busy([&] {
    while (!stop) trivium_parallel_for(Count, counts.data(), 3000, 16, 0);
  });
  for (int turn = 0; turn < 20; ++turn) {
    const pid_t child = fork();
    if (child == 0) {
      CheckLoops(trivium_parallel_for, 20, turn);
      std::_Exit(trivium_num_threads() == 4 ? 0 : 1);
    }
    int status = 1;
    EXPECT(waitpid(child, &status, 0) == child && status == 0);
  }
  stop = true;
  busy.join();
}

// One part of the stress, which must not hang.
// Devices that run together: they add up their numbers again and again, in groups of all, and in pairs.
void Meetings() {
  constexpr int64_t kDevices = 4, kCount = 3000;
  // Kind, type f32, its bytes, add, two dimensions, the shape, and the groups.
  const int64_t all[] = {0, 12, 4, 0, 0, 0, 1, kCount, 1, 4, 0, 1, 2, 3};
  const int64_t pairs[] = {0, 12, 4, 0, 0, 0, 1, kCount, 2, 2, 0, 2, 2, 1, 3};
  const int64_t around[] = {4, 12, 4, 0, 0, 0, 1, kCount, 4, 2, 0, 1, 2, 1, 2, 2, 2, 3, 2, 3, 0};
  trivium::Communicator communicator(kDevices);
  InThreads(kDevices, [&](int device) {
    const trivium::DeviceScope scope(&communicator, device);
    std::vector<float> x(kCount), y(kCount);
    for (int turn = 0; turn < 200; ++turn) {
      std::fill(x.begin(), x.end(), static_cast<float>(device + turn));
      EXPECT(trivium_collective(all, x.data(), y.data()) == 0);
      EXPECT(y[0] == 6 + 4 * turn && y[kCount - 1] == y[0]);
      EXPECT(trivium_collective(pairs, y.data(), x.data()) == 0);
      EXPECT(x[0] == 2 * y[0] && x[kCount - 1] == x[0]);
      std::fill(x.begin(), x.end(), static_cast<float>(device));
      EXPECT(trivium_collective(around, x.data(), y.data()) == 0);
      EXPECT(y[kCount / 2] == (device + 3) % 4);
    }
    // The last one leaves, and nobody waits for it.
    if (device != 3) EXPECT(trivium_collective(all, x.data(), y.data()) != 0);
  });
}

void Part(void (*stress)()) {
  alarm(60);
  stress();
  alarm(0);
}

}  // namespace

int main() {
  setenv("TRIVIUM_NUM_THREADS", "4", 1);  // whatever this machine has
  EXPECT(trivium_runtime_version() > 0);
  EXPECT(trivium_num_threads() == 4);
  Part(ManyCallers);
  Part(Participants);
  Part(LoopsWithinLoops);
  Part(LoopsOnHostThreads);
  Part(Meetings);
  Part(CallersThatMove);
  Part(PoolsThatComeAndGo);
  Part(Runs);
  Part(RunsThatSignalsEnd);
  Part(PjrtObjects);
  Part(PjrtExecutions);
  Part(ArtifactsOfRandomNumbers);
  Part(Packings);
  Part(ForeignPrograms);
  Part(TransfersWithHosts);
  Part(TransferManagers);
  Part(PromisedBuffers);
  Part(WorkInFlight);
#ifndef __SANITIZE_THREAD__  // it does not follow threads that a forked child starts
  Part(Forks);
  Part(ForksInFlight);
  Part(ForksWhileABufferIsUsed);
  Part(ForksWhileThreadsAreTraced);
#endif
  Part(QueuesThatEnd);
  // The process exits while this thread and the pool's workers are busy.
  std::thread([] {
    for (int seed = 0;; ++seed) CheckLoops(trivium_parallel_for, 10, seed);
  }).detach();
  usleep(10000);
  return 0;
}
