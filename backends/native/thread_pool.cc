#include "thread_pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <string>

namespace trivium {
namespace {

// state_ is (generation << 32) | (places << 17) | (active << 2) | open.
constexpr uint64_t kOpen = 1;
constexpr uint64_t kActive = 1 << 2;
constexpr uint64_t kPlace = 1 << 17;
constexpr uint64_t kFieldMask = 0x7fff;
constexpr uint64_t kGeneration = uint64_t{1} << 32;

// Spins of about 20 ns each before a worker sleeps: launches of one program follow one another within microseconds.
constexpr int kSpins = 2000;

thread_local bool inside_job = false;

uint64_t Active(uint64_t state) { return (state / kActive) & kFieldMask; }
uint64_t Places(uint64_t state) { return (state / kPlace) & kFieldMask; }

void Pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

std::vector<int> AllowedProcessors() {
  std::vector<int> processors;
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return processors;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &set)) processors.push_back(i);
  }
  return processors;
}

// The control group's quota in processors, rounded up; a large number if there is none.
int QuotaProcessors() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double period = 0;
  if (!(file >> quota >> period) || quota == "max" || period <= 0) return 1 << 14;
  return std::max(1, static_cast<int>(std::ceil(std::atof(quota.c_str()) / period)));
}

// Measured: a worker that moves between processors has half the speed. Processor 0 of the list is left to the caller.
void Pin(std::thread& thread, const std::vector<int>& processors, int number) {
  if (processors.size() < 2) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processors[number % processors.size()], &set);
  pthread_setaffinity_np(thread.native_handle(), sizeof(set), &set);
}

}  // namespace

ThreadPool::ThreadPool(int threads) {
  const std::vector<int> processors = AllowedProcessors();
  for (int number = 1; number < threads; ++number) {
    workers_.emplace_back([this, number] { Work(number); });
    Pin(workers_.back(), processors, number);
  }
}

ThreadPool::~ThreadPool() {
  stop_.store(true);
  sequence_.fetch_add(1);
  sequence_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::ParallelFor(RangeFunction function, void* context, int64_t count, int64_t grain, int limit) {
  const int wanted = limit > 0 ? std::min(limit, threads()) : threads();
  const bool alone = wanted < 2 || count <= grain || inside_job || !busy_.try_lock();
  if (alone) {
    if (count > 0) function(context, 0, count, 0);
    return;
  }
  std::lock_guard<std::mutex> lock(busy_, std::adopt_lock);
  job_ = {function, context, count, std::max<int64_t>(grain, 1)};
  next_.store(0, std::memory_order_relaxed);
  const uint64_t generation = (state_.load(std::memory_order_relaxed) / kGeneration + 1) * kGeneration;
  state_.store(generation | kPlace * static_cast<uint64_t>(wanted - 1) | kOpen);
  sequence_.fetch_add(1);
  sequence_.notify_all();
  inside_job = true;
  TakePieces(job_, 0);
  inside_job = false;
  state_.fetch_and(~kOpen);
  while (Active(state_.load(std::memory_order_acquire)) != 0) Pause();
}

void ThreadPool::TakePieces(const Job& job, int64_t participant) {
  for (;;) {
    const int64_t begin = next_.fetch_add(job.grain, std::memory_order_relaxed);
    if (begin >= job.count) return;
    job.function(job.context, begin, std::min(begin + job.grain, job.count), participant);
  }
}

void ThreadPool::Work(int) {
  inside_job = true;
  uint64_t seen = 0;
  bool stop = false;
  while (!stop) {
    const int64_t participant = Join(seen, stop);
    if (participant == 0) continue;
    TakePieces(job_, participant);
    state_.fetch_sub(kActive, std::memory_order_release);
  }
}

// Waits for a job that this worker has not seen and tries to enter it. Returns its number in the job, or 0 if it is not in the job.
int64_t ThreadPool::Join(uint64_t& seen, bool& stop) {
  const uint32_t sequence = sequence_.load();
  uint64_t state = state_.load();
  for (int spins = 0; state / kGeneration == seen; ++spins) {
    if ((stop = stop_.load(std::memory_order_relaxed))) return 0;
    if (spins < kSpins) {
      Pause();
    } else {
      sequence_.wait(sequence);
      return 0;
    }
    state = state_.load();
  }
  seen = state / kGeneration;
  while ((state & kOpen) && Places(state) > 0 && state / kGeneration == seen) {
    if (state_.compare_exchange_weak(state, state - kPlace + kActive)) return static_cast<int64_t>(Places(state));
  }
  return 0;
}

int DefaultThreads() {
  if (const char* wish = std::getenv("TRIVIUM_NUM_THREADS")) {
    const int threads = std::atoi(wish);
    if (threads > 0) return std::min(threads, 1 << 12);
  }
  const int allowed = std::max<int>(1, static_cast<int>(AllowedProcessors().size()));
  return std::min(allowed, QuotaProcessors());
}

namespace {

std::atomic<ThreadPool*> pool{nullptr};
std::mutex pool_creation;

// The child has no workers and may have inherited held locks: it leaves the old pool alone and creates its own when it needs one.
void ForgetPool() {
  pool.store(nullptr);
  new (&pool_creation) std::mutex;
  inside_job = false;
}

}  // namespace

ThreadPool& GlobalThreadPool() {
  if (ThreadPool* existing = pool.load(std::memory_order_acquire)) return *existing;
  std::lock_guard<std::mutex> lock(pool_creation);
  if (ThreadPool* existing = pool.load()) return *existing;
  static const int registered = pthread_atfork(nullptr, nullptr, ForgetPool);
  (void)registered;
  // Never destroyed: workers may still spin while the process exits.
  ThreadPool* created = new ThreadPool(DefaultThreads());
  pool.store(created, std::memory_order_release);
  return *created;
}

}  // namespace trivium
