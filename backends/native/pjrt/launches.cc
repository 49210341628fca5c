#include "launches.h"

#include <algorithm>

#include "device.h"
#include "guard.h"
#include "runtime_lock.h"

namespace trivium::pjrt {

void Launches::Add(int32_t number, const CompletionPtr& done) {
  if (number == 0 || IsDone(done)) return;
  const std::lock_guard<std::mutex> lock(LockOf(this));
  std::erase_if(runs_, [](const auto& run) {
    const CompletionPtr found = run.second.lock();
    return found == nullptr || found->IsDone();
  });
  runs_.emplace_back(number, done);
}

bool Launches::Poison(int32_t number, const Error& error) {
  std::vector<CompletionPtr> found;
  {
    const std::lock_guard<std::mutex> lock(LockOf(this));
    for (const auto& [given, run] : runs_) {
      if (given == number) found.push_back(run.lock());
    }
  }
  // A run that finishes meanwhile stays as it is.
  return std::any_of(found.begin(), found.end(), [&](const CompletionPtr& run) { return run != nullptr && run->Finish(error); });
}

namespace {

void PoisonExecution(Device_PoisonExecution_Args& args) {
  Require(args.error_code != Error_Code_OK, "the error has the code OK");
  const Error error{args.error_code, std::string(View(args.error_message, args.error_message_size))};
  args.poisoned = args.device->launches.Poison(args.launch_id, error);
}

}  // namespace

void BindLaunches(Api& api) { api.Device_PoisonExecution = Method<PoisonExecution>; }

}  // namespace trivium::pjrt
