// The shardings extension: hosts that know it need not read the optimized program to learn how devices hold arrays.

#include "executable.h"
#include "extensions.h"
#include "guard.h"

namespace trivium::pjrt {
namespace {

void OfArguments(Shardings_PJRT_Executable_ParameterShardings_Args& args) {
  const Executable& executable = *args.executable;
  const bool is_known = !executable.shardings.empty();
  args.num_parameters = executable.program->arguments.size();
  args.shardings = is_known ? executable.shardings.data() : nullptr;
  args.sharding_sizes = is_known ? executable.sharding_sizes.data() : nullptr;
}

void OfResults(Shardings_PJRT_Executable_OutputShardings_Args& args) {
  const Executable& executable = *args.executable;
  const size_t before = executable.program->arguments.size();
  // To XLA, no results are an empty tuple, which has a sharding: it is replicated, which is the message without fields.
  static const char* const kNothing[] = {""};
  static const size_t kNoSize[] = {0};
  if (executable.program->results.empty() && executable.program->num_devices() > 1) {
    args.num_outputs = 1;
    args.shardings = kNothing;
    args.sharding_sizes = kNoSize;
    return;
  }
  const bool is_known = !executable.shardings.empty();
  args.num_outputs = executable.program->results.size();
  args.shardings = is_known ? executable.shardings.data() + before : nullptr;
  args.sharding_sizes = is_known ? executable.sharding_sizes.data() + before : nullptr;
}

}  // namespace

Extension_Base* ShardingsExtension(Extension_Base* next) {
  static Shardings_Extension extension{
      {sizeof(Shardings_Extension), Extension_Type_Shardings, next}, Method<OfArguments>, Method<OfResults>};
  return &extension.base;
}

}  // namespace trivium::pjrt
