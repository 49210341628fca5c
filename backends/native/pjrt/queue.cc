#include "queue.h"

#include <pthread.h>

#include <algorithm>
#include <mutex>

#include "runtime_lock.h"

namespace trivium::pjrt {
namespace {

// Results are allocated when their run is added, so this bounds the memory of a loop that never waits for a result.
constexpr size_t kLongest = 32;

}  // namespace

thread_local int Queue::Inside::depth = 0;

// All queues of the process; guarded by RuntimeLock().
struct Queues {
  std::vector<Queue*> all;
  bool closed = false;
  std::atomic<uint32_t> finished{0};  // counts tasks

  // Never destroyed: threads may still work while the process exits.
  static Queues& Get() {
    static Queues* const queues = [] {
      pthread_atfork(nullptr, nullptr, AfterFork);
      return new Queues;
    }();
    return *queues;
  }

  bool AreEmpty() const {
    return std::all_of(all.begin(), all.end(), [](const Queue* queue) { return queue->tasks_.empty(); });
  }

  // In a child.
  static void AfterFork() {
    std::vector<CompletionPtr> abandoned;
    {
      const std::lock_guard<std::mutex> lock(RuntimeLock());
      for (Queue* queue : Get().all) {
        for (CompletionPtr& done : queue->Abandon()) abandoned.push_back(std::move(done));
      }
    }
    Queue::Inside::depth = 0;
    for (const CompletionPtr& done : abandoned) {
      done->Finish(Error{Error_Code_ABORTED, "the process was forked while the result was being computed; its parent has it"});
    }
  }
};

Queue::Queue() {
  RegisterRuntimeLock();  // before Queues, whose handler takes the lock
  Queues& queues = Queues::Get();
  const std::lock_guard<std::mutex> lock(RuntimeLock());
  queues.all.push_back(this);
}

Queue::~Queue() {
  {
    const std::lock_guard<std::mutex> lock(RuntimeLock());
    stop_ = true;
  }
  Changed();
  if (thread_.joinable()) thread_.join();
  const std::lock_guard<std::mutex> lock(RuntimeLock());
  std::erase(Queues::Get().all, this);
}

CompletionPtr Queue::Add(std::vector<CompletionPtr> inputs, Work work) {
  const bool is_promise =
      std::any_of(inputs.begin(), inputs.end(), [](const CompletionPtr& input) { return input->is_promise() && !input->IsDone(); });
  auto task = std::make_shared<Task>(std::move(inputs), std::move(work), std::make_shared<Completion>(is_promise));
  CompletionPtr done = task->done;
  if (is_promise && Inside::depth == 0) {
    Defer(task);
    return done;
  }
  for (bool here = Inside::depth > 0;;) {
    const uint32_t changes = changes_.load();
    {
      const std::lock_guard<std::mutex> lock(RuntimeLock());
      here = here || Queues::Get().closed;
      if (!here && tasks_.size() < kLongest) {
        Append(std::move(task));
        break;
      }
    }
    if (here) {
      Perform(*task);
      return done;
    }
    changes_.wait(changes);
  }
  Changed();
  return done;
}

// Adds the task when the last of its inputs is done.
void Queue::Defer(const TaskPtr& task) {
  const auto left = std::make_shared<std::atomic<size_t>>(task->inputs.size());
  for (const CompletionPtr& input : std::vector<CompletionPtr>(task->inputs)) {
    input->OnDone([this, task, left](const Error*) {
      if (left->fetch_sub(1) == 1) AddNow(task);
    });
  }
}

// Adds a task that need not wait, however long the queue is: the thread that finished the task's last input may be the queue's own.
void Queue::AddNow(TaskPtr task) {
  bool closed;
  {
    const std::lock_guard<std::mutex> lock(RuntimeLock());
    closed = Queues::Get().closed;
    if (!closed) Append(task);
  }
  if (closed) return Perform(*task);
  Changed();
}

// The caller holds RuntimeLock().
void Queue::Append(TaskPtr task) {
  if (!thread_.joinable()) thread_ = std::thread([this] { PerformAll(); });
  tasks_.push_back(std::move(task));
}

void Queue::Perform(Task& task) {
  std::optional<Error> error;
  for (const CompletionPtr& input : task.inputs) {
    input->Wait();
    if (!error) error = input->error();
  }
  // It may have been made to fail already.
  if (!error && !task.done->IsDone()) error = ErrorOf(task.work);
  task.inputs.clear();
  task.work = nullptr;
  task.done->Finish(std::move(error));
}

void Queue::PerformAll() {
  const Inside inside;
  while (const TaskPtr task = First()) {
    Perform(*task);
    {
      const std::lock_guard<std::mutex> lock(RuntimeLock());
      tasks_.pop_front();
    }
    Changed();
    Queues& queues = Queues::Get();
    queues.finished.fetch_add(1);
    queues.finished.notify_all();
  }
}

// Waits for work. Null if there will be none.
Queue::TaskPtr Queue::First() {
  for (;;) {
    const uint32_t changes = changes_.load();
    {
      const std::lock_guard<std::mutex> lock(RuntimeLock());
      if (!tasks_.empty()) return tasks_.front();
      if (stop_) return nullptr;
    }
    changes_.wait(changes);
  }
}

void Queue::Changed() {
  changes_.fetch_add(1);
  changes_.notify_all();
}

// Forgets the thread, which a child of a fork does not have, and returns what its tasks would have finished. What they hold stays where it
// is: to release it, the child could need locks of other threads that it does not have.
std::vector<CompletionPtr> Queue::Abandon() {
  new (&thread_) std::thread;
  auto* tasks = new std::deque<TaskPtr>(std::move(tasks_));
  tasks_.clear();
  std::vector<CompletionPtr> completions;
  for (const TaskPtr& task : *tasks) completions.push_back(task->done);
  return completions;
}

void Queue::CloseAll() {
  Queues& queues = Queues::Get();
  for (;;) {
    const uint32_t finished = queues.finished.load();
    {
      const std::lock_guard<std::mutex> lock(RuntimeLock());
      queues.closed = true;
      if (queues.AreEmpty()) return;
    }
    queues.finished.wait(finished);
  }
}

}  // namespace trivium::pjrt

// Called before the interpreter ends.
extern "C" __attribute__((visibility("default"))) void trivium_pjrt_finish() { trivium::pjrt::Queue::CloseAll(); }
