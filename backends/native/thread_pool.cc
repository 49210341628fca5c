#include "thread_pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <cmath>
#include <csetjmp>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>

#include "float_mode.h"

namespace trivium {
namespace {

// state_ is (generation << 32) | (places << 17) | (active << 2) | open.
constexpr uint64_t kOpen = 1;
constexpr uint64_t kActive = 1 << 2;
constexpr uint64_t kPlace = 1 << 17;
constexpr uint64_t kFieldMask = 0x7fff;
constexpr uint64_t kGeneration = uint64_t{1} << 32;

// Pauses of about 20 ns each before a thread that waits sleeps. Launches of one program follow one another within microseconds and calls
// within tens of them, and waking a thread takes 5 to 20 us. It never yields: Linux takes a whole slice off a thread that does, so that it
// comes back milliseconds later if another process wants the processor.
constexpr int kPauses = 5000;

thread_local bool inside_job = false;
thread_local int most_threads = 0;

thread_local HostThreads host_threads;

// The pool whose workers are the host's threads, and whether the thread's loops use it now.
thread_local std::unique_ptr<ThreadPool> host_pool;
thread_local bool is_on_host = false;

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

void Pin(std::thread& thread, int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  pthread_setaffinity_np(thread.native_handle(), sizeof(set), &set);
}

}  // namespace

// Measured: a worker that moves between processors has half the speed.
ThreadPool::ThreadPool(int threads, Workers workers) : shares_(std::max(threads, 1)) {
  if (workers == Workers::kHost) return;
  const std::vector<int> processors = AllowedProcessors();
  for (int number = 1; number < threads; ++number) workers_.emplace_back([this] { Work(); });
  if (processors.size() < 2) return;
  for (int number = 0; number < threads; ++number) places_.push_back(processors[number % processors.size()]);
  for (int number = 1; number < threads; ++number) Pin(workers_[number - 1], places_[number]);
}

ThreadPool::~ThreadPool() {
  Dismiss();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::Dismiss() {
  stop_.store(true);
  sequence_.fetch_add(1);
  sequence_.notify_all();
}

// A worker on the caller's processor would only run while the caller waits: it gets the processor of the caller before.
void ThreadPool::MakeRoom() {
  if (places_.empty()) return;
  const int here = sched_getcpu();
  if (here < 0 || here == places_[0]) return;
  const auto taken = std::find(places_.begin() + 1, places_.end(), here);
  if (taken != places_.end()) {
    *taken = places_[0];
    Pin(workers_[taken - places_.begin() - 1], *taken);
  }
  places_[0] = here;
}

void ThreadPool::ParallelFor(RangeFunction function, void* context, int64_t count, int64_t grain, int limit) {
  const bool wakes = limit >= 0;
  if (wakes) most_threads = std::max(most_threads, limit);
  const int available = wakes ? threads() : 1 + awake_.load(std::memory_order_relaxed);
  const int wanted = limit == 0 ? available : std::min(std::abs(limit), available);
  const bool alone = wanted < 2 || count <= grain || inside_job || !busy_.try_lock();
  if (alone) {
    if (count > 0) function(context, 0, count, 0);
    return;
  }
  std::lock_guard<std::mutex> lock(busy_, std::adopt_lock);
  MakeRoom();
  job_ = {function, context, count, std::max<int64_t>(grain, 1), wanted};
  Divide(wanted);
  const uint64_t generation = (state_.load(std::memory_order_relaxed) / kGeneration + 1) * kGeneration;
  state_.store(generation | kPlace * static_cast<uint64_t>(wanted - 1) | kOpen);
  if (wakes) {
    sequence_.fetch_add(1);
    sequence_.notify_all();
  }
  inside_job = true;
  TakePieces(job_, 0);
  inside_job = false;
  Close();
}

// Closes the job and waits for those who are in it.
void ThreadPool::Close() {
  uint64_t state = state_.fetch_and(~kOpen) & ~kOpen;
  for (int pauses = 0; Active(state) != 0; state = state_.load(std::memory_order_acquire)) {
    if (pauses++ < kPauses) {
      Pause();
    } else {
      state_.wait(state);
    }
  }
}

void ThreadPool::Divide(int participants) {
  const int64_t pieces = (job_.count + job_.grain - 1) / job_.grain;
  for (int64_t number = 0; number < participants; ++number) {
    shares_[number].next.store(pieces * number / participants, std::memory_order_relaxed);
    shares_[number].end = pieces * (number + 1) / participants;
  }
}

void ThreadPool::TakePieces(const Job& job, int64_t participant) {
  for (int turn = 0; turn < job.participants; ++turn) {
    Share& share = shares_[(participant + turn) % job.participants];
    for (int64_t piece; (piece = share.next.fetch_add(1, std::memory_order_relaxed)) < share.end;) {
      const int64_t begin = piece * job.grain;
      job.function(job.context, begin, std::min(begin + job.grain, job.count), participant);
    }
  }
}

void ThreadPool::Work() {
  const StandardFloats mode;  // a thread begins with the mode of the one that starts it, which may be any of the host's
  awake_.fetch_add(1);
  inside_job = true;
  uint64_t seen = 0;
  bool stop = false;
  while (!stop) {
    const int64_t participant = Join(seen, stop);
    if (participant == 0) continue;
    TakePieces(job_, participant);
    const uint64_t state = state_.fetch_sub(kActive, std::memory_order_release);
    if (Active(state) == 1 && !(state & kOpen)) state_.notify_all();
  }
  inside_job = false;
  awake_.fetch_sub(1);
}

// Waits for a job that this worker has not seen and tries to enter it. Returns its number in the job, or 0 if it is not in the job.
int64_t ThreadPool::Join(uint64_t& seen, bool& stop) {
  const uint32_t sequence = sequence_.load();
  uint64_t state = state_.load();
  for (int pauses = 0; state / kGeneration == seen; state = state_.load()) {
    if ((stop = stop_.load(std::memory_order_relaxed))) return 0;
    if (pauses++ == kPauses) {
      awake_.fetch_sub(1);
      sequence_.wait(sequence);
      awake_.fetch_add(1);
      return 0;
    }
    Pause();
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
  host_threads = {};
  is_on_host = false;
}

// A loop of OpenMP in which the caller runs a program, and the others are its workers.
struct Team {
  ThreadPool& pool;
  int (*number)();
  void (*work)(void*);
  void* data;
  std::jmp_buf end;

  static void Enter(void* of) {
    Team& team = *static_cast<Team*>(of);
    const int number = team.number();
    if (number == 0) {
      team.work(team.data);
      // In a child that was forked meanwhile, OpenMP would wait for threads that the child does not have.
      if (!is_on_host) std::longjmp(team.end, 1);
      team.pool.Dismiss();
    } else if (number < team.pool.threads()) {
      team.pool.Work();
    }
  }
};

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

ThreadPool& CurrentThreadPool() { return is_on_host ? *host_pool : GlobalThreadPool(); }

int& MostThreads() { return most_threads; }

void UseHostThreads(const HostThreads& threads) { host_threads = threads; }

bool RunOnHostThreads(int threads, void (*work)(void* data), void* data) {
  if (host_threads.parallel == nullptr || threads < 2 || is_on_host || inside_job) return false;
  const int available = host_threads.threads();
  const std::unique_lock<std::mutex> lock = GlobalThreadPool().Reserve();
  if (threads > available || !lock) return false;
  if (host_pool == nullptr || host_pool->threads() != available) {
    host_pool = std::make_unique<ThreadPool>(available, ThreadPool::Workers::kHost);
  }
  host_pool->Admit();
  Team team{*host_pool, host_threads.number, work, data, {}};
  is_on_host = true;
  if (setjmp(team.end) == 0) host_threads.parallel(Team::Enter, &team, 0, 0);
  is_on_host = false;
  return true;
}

}  // namespace trivium
