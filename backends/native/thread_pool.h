// The worker threads over which compiled programs split their loops.

#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace trivium {

// A range of iterations [begin, end) of a loop; `context` holds the values that the loop's body captured. `participant` is below the limit
// of the loop, and no other thread has the same number while the loop runs: the caller's is 0.
using RangeFunction = void (*)(void* context, int64_t begin, int64_t end, int64_t participant);

// One job at a time: the caller opens it, idle workers join, all take pieces until none are left, and the caller closes it. Each participant
// begins with a share of neighbouring pieces, so that it finds in its caches what it wrote in an earlier loop over the same elements, and then
// helps the others. A worker that wakes too late finds the job closed and is not waited for. If the pool is busy, or if the caller is itself
// inside a job, it runs its loop alone: nothing ever blocks on another job.
class ThreadPool {
 public:
  // Whose threads the workers are: the pool's own, or the host's, which serve for some time.
  enum class Workers { kOwn, kHost };

  // `threads` counts the caller: the pool has one fewer worker.
  explicit ThreadPool(int threads, Workers workers = Workers::kOwn);
  ~ThreadPool();

  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(shares_.size()); }

  // Runs `function` over [0, count) in pieces of `grain`, on at most `limit` threads (0: all of them). If `limit` is negative, the work is too
  // little to wake workers for: only those that are awake join, and they are at most -`limit` with the caller.
  void ParallelFor(RangeFunction function, void* context, int64_t count, int64_t grain, int limit);

  // What a worker does: it takes part in jobs until `Dismiss`. After `Admit`, threads of the host may serve again.
  void Work();
  void Dismiss();
  void Admit() { stop_.store(false); }

  // As long as the result holds the lock, no loop is split over this pool. It holds none if the pool is busy.
  std::unique_lock<std::mutex> Reserve() { return std::unique_lock<std::mutex>(busy_, std::try_to_lock); }

 private:
  struct Job {
    RangeFunction function;
    void* context;
    int64_t count;
    int64_t grain;
    int participants;
  };

  // The pieces of one participant that nobody has taken yet.
  struct alignas(64) Share {
    std::atomic<int64_t> next{0};
    int64_t end = 0;
  };

  void MakeRoom();
  void Close();
  void Divide(int participants);
  int64_t Join(uint64_t& seen, bool& stop);
  void TakePieces(const Job& job, int64_t participant);

  // The generation of the job (high bits), how many workers may still join it, how many are in it, and whether it is open. Only a worker
  // that is in the job reads `job_`, and the caller changes it only when nobody is in it.
  std::atomic<uint64_t> state_{0};
  // Counts jobs, for sleeping workers to wait on.
  std::atomic<uint32_t> sequence_{0};
  std::atomic<bool> stop_{false};
  Job job_{};
  std::vector<Share> shares_;
  alignas(64) std::atomic<int> awake_{0};
  alignas(64) std::mutex busy_;
  std::vector<std::thread> workers_;
  // The processor of each participant, that of the last caller first; empty if there is only one. Only the holder of `busy_` uses it.
  std::vector<int> places_;
};

// The number of threads that this process should use: TRIVIUM_NUM_THREADS, or what its CPU affinity and its control group's quota allow.
int DefaultThreads();

// The pool of this process, created on first use, and again in a forked child (whose copy has lost its workers).
ThreadPool& GlobalThreadPool();

// The pool for loops of the calling thread: that of the process, or within `RunOnHostThreads`, that of the host's threads.
ThreadPool& CurrentThreadPool();

// The most threads that a loop of the calling thread which wakes workers has asked for since the caller set it to 0.
int& MostThreads();

// Functions of the OpenMP library that a host uses for its own loops, as PyTorch does. After each loop, its threads spin for milliseconds on
// the processors that the pool's own workers need: so they are the workers.
struct HostThreads {
  // GOMP_parallel: each thread of the caller's team calls the function, and all have returned when it returns. 0 threads: the team is that
  // of the host's loops. A team of any other size would end threads, or start new ones.
  void (*parallel)(void (*function)(void*), void* data, unsigned threads, unsigned flags) = nullptr;
  int (*number)() = nullptr;   // omp_get_thread_num
  int (*threads)() = nullptr;  // omp_get_max_threads, the size of that team
};

// Programs of the calling thread may use these threads from now on. None in a forked child, where those of OpenMP have ended.
void UseHostThreads(const HostThreads& threads);

// Calls `work`, whose loops ask for up to `threads` threads, while the other threads of the host's team serve as workers. Returns false,
// and does nothing, if the host has none, or not as many, or if the process's pool is busy.
bool RunOnHostThreads(int threads, void (*work)(void* data), void* data);

}  // namespace trivium
