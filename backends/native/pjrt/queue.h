// A device's queue: work that takes long, done one after the other in a thread of the queue.

#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "event.h"

namespace trivium::pjrt {

// The thread starts with the first work, and again in a child of a fork, which has no copy of it: work that was in the queue then fails
// there, and is done in the parent only. Work only waits for work that was added earlier, here or to another queue, so that queues never
// wait for each other in a circle. Work that needs a promise of the host is added when all that it needs is done.
class Queue {
 public:
  using Work = std::function<void()>;

  Queue();
  // Waits for all work.
  ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  // Does `work` after all earlier work, and after `inputs`. The result fails with the first error of `inputs`, without `work`; or with what
  // `work` throws. What `work` holds is released before the result is done. If the queue is long, waits until it is shorter. Within other
  // work (see `Inside`), everything is done before this function returns: a callback from a run may wait for the result.
  CompletionPtr Add(std::vector<CompletionPtr> inputs, Work work);

  // The same, but what is quick, and need not wait, is done at once: the result is null, and what `work` throws is thrown here.
  template <class Action>
  CompletionPtr Do(bool is_quick, std::vector<CompletionPtr> inputs, Action&& work) {
    if (!is_quick || !inputs.empty()) return Add(std::move(inputs), std::forward<Action>(work));
    work();
    return nullptr;
  }

  // Marks what a thread does while this object lives as work of a queue, or as a run.
  class Inside {
   public:
    Inside() { ++depth; }
    ~Inside() { --depth; }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

   private:
    friend class Queue;
    friend struct Queues;
    static thread_local int depth;
  };

  // Waits for the work of all queues. Later work is done by the threads that add it. A process calls this before it takes away what work
  // may need, such as its interpreter.
  static void CloseAll();

 private:
  struct Task {
    std::vector<CompletionPtr> inputs;
    Work work;
    CompletionPtr done;
  };
  using TaskPtr = std::shared_ptr<Task>;

  static void Perform(Task& task);
  void Defer(const TaskPtr& task);
  void AddNow(TaskPtr task);
  void Append(TaskPtr task);
  void PerformAll();
  TaskPtr First();
  void Changed();
  std::vector<CompletionPtr> Abandon();

  friend struct Queues;

  // Guarded by RuntimeLock(). The first task is being done.
  std::deque<TaskPtr> tasks_;
  bool stop_ = false;
  std::thread thread_;
  // Counts changes of what is guarded, for threads to wait on. Other than a condition variable, it works after a fork.
  std::atomic<uint32_t> changes_{0};
};

}  // namespace trivium::pjrt
