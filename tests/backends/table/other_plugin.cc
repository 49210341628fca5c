// A plugin that passes every call on to the one in OTHER_PLUGIN_OF, under another version: OTHER_PLUGIN_KIND is older (its table is
// shorter), newer (its table is longer), ancient (no host takes it), none (no table), or dying (a look-up of a device ends the process).

#include <dlfcn.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>

#include "pjrt/abi/table.h"

namespace {

using namespace trivium::pjrt;

struct Longer : Api {
  void* later[8];
};

Error* Die(Client_LookupDevice_Args*) { std::abort(); }

}  // namespace

extern "C" __attribute__((visibility("default"))) const Api* GetPjrtApi() {
  static Longer tables[8];
  static int used = 0;
  const std::string kind = std::getenv("OTHER_PLUGIN_KIND");
  if (kind == "none") return nullptr;
  void* library = dlopen(std::getenv("OTHER_PLUGIN_OF"), RTLD_NOW);
  const Api* whole = reinterpret_cast<const Api* (*)()>(dlsym(library, "GetPjrtApi"))();
  Longer& table = tables[used++ % 8];
  std::memcpy(static_cast<void*>(&table), whole, sizeof(Api));
  if (kind == "older") {
    table.struct_size = offsetof(Api, Event_Create);
    table.pjrt_api_version.minor_version = 40;
  }
  if (kind == "newer") {
    table.struct_size = sizeof(Longer);
    table.pjrt_api_version.minor_version = 140;
  }
  if (kind == "ancient") table.pjrt_api_version.minor_version = 28;
  if (kind == "dying") table.Client_LookupDevice = Die;
  return &table;
}
