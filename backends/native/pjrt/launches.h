// The runs that a device has not finished, by the number that their caller gave them: hosts that run programs on several devices, or
// machines, give all runs of one launch the same number, and make the others fail if one of them does.

#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "event.h"

namespace trivium::pjrt {

class Launches {
 public:
  // Keeps a run in mind. `done` is null if it has finished; 0 is no number.
  void Add(int32_t number, const CompletionPtr& done);

  // Makes the results of the earliest such run errors. Returns false if there is none.
  bool Poison(int32_t number, const Error& error);

 private:
  // In the order in which they were added; guarded by LockOf(this).
  std::vector<std::pair<int32_t, std::weak_ptr<Completion>>> runs_;
};

}  // namespace trivium::pjrt
