// The table of functions: every slot is filled, with an object's own function or with one that reports that it is not implemented.

#include "buffer.h"
#include "client.h"
#include "event.h"
#include "executable.h"
#include "extensions.h"
#include "foreign_registry.h"
#include "guard.h"
#include "profiler.h"
#include "serialization.h"
#include "transfers.h"

namespace trivium::pjrt {
namespace {

template <class Args>
struct Name;
#define TRIVIUM_PJRT_NAME(function) \
  template <>                       \
  struct Name<function##_Args> {    \
    static constexpr const char* kText = "PJRT_" #function; \
  };
TRIVIUM_PJRT_FUNCTIONS(TRIVIUM_PJRT_NAME)

template <class Args>
void Unimplemented(Args&) {
  throw Failure(Error_Code_UNIMPLEMENTED, std::string(Name<Args>::kText) + " is not implemented by Trivium");
}

template <class Args>
void Fill(Error* (*&slot)(Args*)) {
  slot = Slot<Unimplemented<Args>>;
}

// Functions that return no error belong to errors themselves, and are bound below.
template <class Args>
void Fill(void (*&)(Args*)) {}

// The portable artifact versions that our reader supports: callers write no later version.
constexpr int64_t kCurrentVersion[] = {1, 20, 0};
constexpr int64_t kMinimumVersion[] = {0, 9, 0};

NamedValue Version(std::string_view name, const int64_t (&version)[3]) {
  NamedValue value{};
  value.struct_size = sizeof(NamedValue);
  value.name = name.data();
  value.name_size = name.size();
  value.type = NamedValue_kInt64List;
  value.int64_array_value = version;
  value.value_size = 3;
  return value;
}

void Initialize(Plugin_Initialize_Args&) {}

void Attributes(Plugin_Attributes_Args& args) {
  static const NamedValue attributes[] = {Version("stablehlo_current_version", kCurrentVersion),
                                          Version("stablehlo_minimum_version", kMinimumVersion)};
  args.attributes = attributes;
  args.num_attributes = std::size(attributes);
}

Api MakeApi() {
  Api api{};
  api.struct_size = sizeof(Api);
  api.extension_start =
      LayoutsExtension(ShardingsExtension(MemoryDescriptionsExtension(ForeignFunctionsExtension(CallbacksExtension(profiler::ProfilerExtension())))));
  api.pjrt_api_version.struct_size = sizeof(Api_Version);
  api.pjrt_api_version.major_version = kMajorVersion;
  api.pjrt_api_version.minor_version = kMinorVersion;
#define TRIVIUM_PJRT_FILL(function) Fill(api.function);
  TRIVIUM_PJRT_FUNCTIONS(TRIVIUM_PJRT_FILL)
  api.Plugin_Initialize = Slot<Initialize>;
  api.Plugin_Attributes = Slot<Attributes>;
  BindErrors(api);
  BindEvents(api);
  BindClients(api);
  BindTopologies(api);
  BindDevices(api);
  BindLaunches(api);
  BindTrackingEvents(api);
  BindBuffers(api);
  BindBufferCreation(api);
  BindAsyncTransfers(api);
  BindAliasBuffers(api);
  BindHostFutures(api);
  BindExecutables(api);
  BindLoadedExecutables(api);
  BindExecution(api);
  BindExecuteContexts(api);
  BindSerialization(api);
  BindTransfers(api);
  return api;
}

}  // namespace
}  // namespace trivium::pjrt

extern "C" __attribute__((visibility("default"))) const trivium::pjrt::Api* GetPjrtApi() {
  static const trivium::pjrt::Api api = trivium::pjrt::MakeApi();
  return &api;
}
