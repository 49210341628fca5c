// A fake CUDA driver on the host, which runs kernels on the simulator. It is as strict as possible: it counts its calls
// and fails on request, refuses what was released or is not the thread's context, and does the work of a stream as late
// as allowed: when somebody waits for it. A module is a shared object of the host.
#include <dlfcn.h>
#include <elf.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "simulator.h"

namespace {

enum Code { kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2, kNotInitialized = 3, kInvalidDevice = 101, kInvalidImage = 200,
            kInvalidContext = 201, kInvalidHandle = 400, kNotFound = 500, kNotReady = 600, kLaunchFailed = 719,
            kCaptureUnsupported = 900, kCaptureInvalidated = 901, kCaptureWrongThread = 908 };
enum Mode { kGlobal, kThreadLocal, kRelaxed };  // what captures forbid

constexpr size_t kTotal = 1 << 30;
constexpr int kDevices = 2;
constexpr size_t kMostParameters = 4096;  // bytes of a launch's arguments

using Work = std::function<void()>;

struct Entry { uint64_t number; Work work; };
struct Stream {
  std::deque<Entry> queue;
  bool captures = false, invalid = false;
  int mode = 0;
  std::thread::id captured_by;
  std::vector<Work> captured;
};
struct Event { Stream *stream = nullptr; uint64_t number = 0; };
struct Function { simulator::Kernel kernel; int parameters, maps; unsigned most = 48 << 10; };
struct alignas(64) Parameter { char bytes[128]; };
struct Module { void *handle; std::vector<std::unique_ptr<Function>> functions; };
struct Pool { size_t used = 0, most = 0, reserved = 0; std::multimap<size_t, char *> spare; std::map<char *, size_t> blocks; };
struct Graph { std::vector<Work> work; };

std::recursive_mutex lock;
bool initialized;
long calls, fail_at;
int fail_code;
size_t total = kTotal;
uint64_t told, seed;
std::string wrong, log_text, fail_name;
std::map<void *, const char *> live;  // what exists, and of what kind
std::map<void *, int> homes;          // the device that each belongs to
std::map<char *, size_t> pinned;
bool elsewhere;  // whether other libraries have memory on the device

#ifdef FAKE_HIP
constexpr int kVersion = 60342131;
const std::map<int, int> attributes = {{63, 4}, {88, 1}, {60, 1000000}, {59, 512}};
const std::map<int, const char *> kNames = {
    {kInvalidValue, "hipErrorInvalidValue"}, {kOutOfMemory, "hipErrorOutOfMemory"},
    {kInvalidImage, "hipErrorInvalidImage"}, {kInvalidContext, "hipErrorInvalidContext"},
    {kInvalidHandle, "hipErrorInvalidHandle"}, {kLaunchFailed, "hipErrorLaunchFailure"}};
constexpr int kOthers = 7;  // the device that another library has chosen in every thread
thread_local int chosen = kOthers;
bool has_context() { return chosen < kDevices; }
int device() { return chosen; }
long held() { return chosen != kOthers; }
void reset_device() {}
constexpr bool kEventsNeedContext = false;  // they know their device
#else
constexpr int kVersion = 13000;
std::map<int, int> attributes = {{16, 4}, {75, 8}, {76, 0}, {115, 1}, {36, 1000000}, {37, 512}};
const std::map<int, const char *> kNames = {
    {kInvalidValue, "CUDA_ERROR_INVALID_VALUE"}, {kOutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY"},
    {kInvalidImage, "CUDA_ERROR_INVALID_IMAGE"}, {kInvalidContext, "CUDA_ERROR_INVALID_CONTEXT"},
    {kInvalidHandle, "CUDA_ERROR_INVALID_HANDLE"}, {kLaunchFailed, "CUDA_ERROR_LAUNCH_FAILED"},
    {kCaptureUnsupported, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"},
    {kCaptureInvalidated, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"}};
struct Context { int device; };
Context contexts[kDevices] = {{0}, {1}};
int retained[kDevices];
thread_local std::vector<Context *> current;
bool has_context() { return !current.empty() && retained[current.back()->device]; }
int device() { return current.empty() ? -1 : current.back()->device; }
long held() { return retained[0] + retained[1] + current.size(); }
void set_capability(int major, int minor) { attributes[75] = major, attributes[76] = minor; }
void reset_device() { set_capability(8, 0); }
constexpr bool kEventsNeedContext = true;
#endif

template <class T> T *create(const char *kind) { T *made = new T(); live[made] = kind, homes[made] = device(); return made; }
bool is(void *handle, const char *kind) { auto found = live.find(handle); return found != live.end() && !strcmp(found->second, kind); }
// The same for something of the thread's device.
bool is_here(void *handle, const char *kind) { return is(handle, kind) && homes[handle] == device(); }
template <class T> void destroy(void *handle) { live.erase(handle), homes.erase(handle); delete static_cast<T *>(handle); }

// The stream that a name of zero means: the device's own one, which is not created and cannot be captured.
Stream *own_streams[kDevices];
void *named(void *stream) {
  if (stream || !has_context()) return stream;
  Stream *&own = own_streams[device()];
  if (!own) own = create<Stream>("stream");
  return own;
}

void run(Stream &stream, uint64_t until) {
  while (!stream.queue.empty() && stream.queue.front().number <= until) {
    Work work = std::move(stream.queue.front().work);
    stream.queue.pop_front();
    work();
  }
}

// What gives memory or code back waits for all that uses it.
void run_all() {
  for (auto &[handle, kind] : live) {
    if (!strcmp(kind, "stream")) run(*static_cast<Stream *>(handle), told);
  }
}

int enqueue(void *handle, Work work) {
  handle = named(handle);
  if (!is_here(handle, "stream")) return kInvalidHandle;
  auto *stream = static_cast<Stream *>(handle);
  if (stream->captures) stream->captured.push_back(std::move(work));
  else stream->queue.push_back({++told, std::move(work)});
  return kSuccess;
}

// What a capture forbids makes it useless: calls whose effect a graph cannot repeat, and waits for what it records.
// The former are refused in the thread of the capture, if this is not relaxed, and in all threads, if it is global.
int refused(Stream &stream) { return stream.invalid = true, kCaptureUnsupported; }
int unsafe() {
  int code = kSuccess;
  for (auto &[handle, kind] : live) {
    if (strcmp(kind, "stream")) continue;
    auto *stream = static_cast<Stream *>(handle);
    bool own = stream->captured_by == std::this_thread::get_id();
    if (stream->captures && (stream->mode == kGlobal || (stream->mode == kThreadLocal && own))) code = refused(*stream);
  }
  return code;
}

// Whether bytes lie in one block of a device's memory.
bool on_device_of(int owner, uint64_t address, size_t bytes) {
  for (auto &[handle, kind] : live) {
    if (strcmp(kind, "pool") || homes[handle] != owner) continue;
    for (auto &[begin, size] : static_cast<Pool *>(handle)->blocks) {
      if (address >= uint64_t(begin) && address + bytes <= uint64_t(begin) + size) return true;
    }
  }
  return false;
}

// The same for the thread's device.
bool on_device(uint64_t address, size_t bytes) {
  return elsewhere || on_device_of(device(), address, bytes);
}

bool on_host(const void *address, size_t bytes) {
  for (auto &[begin, size] : pinned) {
    if (address >= begin && static_cast<const char *>(address) + bytes <= begin + size) return true;
  }
  return false;
}

// Returns the code with which a call begins: that of the failure it was chosen for, or of a missing context.
int begin(const char *name, bool needs_context) {
  log_text += std::string(name) + "\n";
  if (++calls == fail_at || fail_name == name) return fail_code;
  if (!initialized && !strstr(name, "Init")) return kNotInitialized;
  if (needs_context && !has_context()) return kInvalidContext;
  return wrong.empty() ? kSuccess : kLaunchFailed;
}

#define BEGIN(needs_context)                      \
  std::lock_guard<std::recursive_mutex> guard(lock); \
  int failed = begin(__func__, needs_context);     \
  if (failed) return failed
// A call that gives something back does so even when it fails, so that what is left was never given back.
#define GIVE_BACK(needs_context)                  \
  std::lock_guard<std::recursive_mutex> guard(lock); \
  int failed = begin(__func__, needs_context)
#define REQUIRE(condition, code) if (!(condition)) return code
#define SAFE if (int code = unsafe()) return code

}  // namespace

extern "C" {

// For tests

void fake_reset(long at, int code) {
  std::lock_guard<std::recursive_mutex> guard(lock);
  calls = 0, fail_at = at, fail_code = code, seed = 0, total = kTotal;
  reset_device();
  wrong.clear(), log_text.clear(), fail_name.clear();
}
#ifndef FAKE_HIP
void fake_capability(int major, int minor) { set_capability(major, minor); }
#endif
void fake_fail(const char *name, int code) { fail_name = name, fail_code = code; }
void fake_total(size_t bytes) { total = bytes; }
void fake_elsewhere(bool is) { elsewhere = is; }
void fake_seed(uint64_t number) { seed = number; }
long fake_calls() { return calls; }
const char *fake_log() { return log_text.c_str(); }
const char *fake_wrong() { return wrong.c_str(); }
long fake_live() {
  std::lock_guard<std::recursive_mutex> guard(lock);
  size_t blocks = 0;
  for (auto &[handle, kind] : live) if (!strcmp(kind, "pool")) blocks += static_cast<Pool *>(handle)->blocks.size();
  for (Stream *own : own_streams) blocks -= own != nullptr;  // they exist as long as the driver does
  return live.size() + blocks + pinned.size() + held();
}

// The driver

int cuGetErrorName(int code, const char **text) {
  auto found = kNames.find(code);
  if (found == kNames.end()) return kInvalidValue;
  *text = found->second;
  return kSuccess;
}
int cuGetErrorString(int code, const char **text) {
  if (code == kLaunchFailed && !wrong.empty()) return *text = wrong.c_str(), kSuccess;
  return *text = "told by the fake driver", kSuccess;
}

int cuInit(unsigned) { BEGIN(false); initialized = true; return kSuccess; }
int cuDriverGetVersion(int *version) { BEGIN(false); *version = kVersion; return kSuccess; }
int cuDeviceGetCount(int *count) { BEGIN(false); *count = kDevices; return kSuccess; }
int cuDeviceGet(int *device, int number) { BEGIN(false); REQUIRE(number < kDevices, kInvalidDevice); *device = number; return kSuccess; }
int cuDeviceGetName(char *name, int size, int) { BEGIN(false); strncpy(name, "Fake", size); return kSuccess; }
int cuDeviceGetAttribute(int *value, int attribute, int) {
  BEGIN(false);
  auto found = attributes.find(attribute);
  REQUIRE(found != attributes.end(), kInvalidValue);
  *value = found->second;
  return kSuccess;
}
int cuDeviceCanAccessPeer(int *can, int, int) { BEGIN(false); *can = 1; return kSuccess; }
int cuDeviceTotalMem_v2(size_t *bytes, int) { BEGIN(false); *bytes = total; return kSuccess; }

#ifndef FAKE_HIP
int cuDevicePrimaryCtxRetain(void **context, int device) { BEGIN(false); retained[device]++; *context = &contexts[device]; return kSuccess; }
int cuDevicePrimaryCtxRelease_v2(int device) { GIVE_BACK(false); retained[device]--; return failed; }
int cuCtxPushCurrent_v2(void *context) { BEGIN(false); current.push_back(static_cast<Context *>(context)); return kSuccess; }
int cuCtxPopCurrent_v2(void **context) {
  GIVE_BACK(false);
  REQUIRE(!current.empty(), kInvalidContext);
  *context = current.back();
  current.pop_back();
  return failed;
}
#endif

int cuStreamCreate(void **stream, unsigned) { BEGIN(true); *stream = create<Stream>("stream"); return kSuccess; }
int cuStreamDestroy_v2(void *stream) { GIVE_BACK(true); SAFE; REQUIRE(is(stream, "stream"), kInvalidHandle); run(*static_cast<Stream *>(stream), told); destroy<Stream>(stream); return failed; }
int cuStreamSynchronize(void *stream) {
  BEGIN(true);
  stream = named(stream);
  REQUIRE(is_here(stream, "stream"), kInvalidHandle);
  if (static_cast<Stream *>(stream)->captures) return refused(*static_cast<Stream *>(stream));
  run(*static_cast<Stream *>(stream), told);
  return wrong.empty() ? kSuccess : kLaunchFailed;
}

int cuStreamWaitEvent(void *stream, void *event, unsigned) {
  BEGIN(true);
  REQUIRE(is(event, "event"), kInvalidHandle);
  Event place = *static_cast<Event *>(event);
  return enqueue(stream, [=] { if (is(place.stream, "stream")) run(*place.stream, place.number); });
}

int cuEventCreate(void **event, unsigned) { BEGIN(true); *event = create<Event>("event"); return kSuccess; }
int cuEventDestroy_v2(void *event) { GIVE_BACK(kEventsNeedContext); REQUIRE(is(event, "event"), kInvalidHandle); destroy<Event>(event); return failed; }
int cuEventRecord(void *event, void *stream) {
  BEGIN(true);
  stream = named(stream);
  REQUIRE(is_here(event, "event") && is_here(stream, "stream"), kInvalidHandle);
  *static_cast<Event *>(event) = {static_cast<Stream *>(stream), told};
  return kSuccess;
}
int cuEventQuery(void *event) {
  BEGIN(kEventsNeedContext);
  REQUIRE(is(event, "event"), kInvalidHandle);
  auto *place = static_cast<Event *>(event);
  bool waits = place->stream && !place->stream->queue.empty() && place->stream->queue.front().number <= place->number;
  return waits ? kNotReady : kSuccess;
}
int cuEventSynchronize(void *event) {
  BEGIN(kEventsNeedContext);
  REQUIRE(is(event, "event"), kInvalidHandle);
  auto *place = static_cast<Event *>(event);
  if (place->stream) run(*place->stream, place->number);
  return wrong.empty() ? kSuccess : kLaunchFailed;
}

int cuMemPoolCreate(void **pool, const void *) { BEGIN(true); SAFE; *pool = create<Pool>("pool"); return kSuccess; }
int cuMemPoolDestroy(void *pool) {
  GIVE_BACK(true);
  SAFE;
  REQUIRE(is(pool, "pool"), kInvalidHandle);
  run_all();
  auto *own = static_cast<Pool *>(pool);
  for (auto &[address, size] : own->blocks) free(address);
  for (auto &[size, address] : own->spare) free(address);
  destroy<Pool>(pool);
  return failed;
}
int cuMemPoolSetAttribute(void *pool, int, void *) { BEGIN(true); REQUIRE(is(pool, "pool"), kInvalidHandle); return kSuccess; }
int cuMemPoolGetAttribute(void *pool, int attribute, uint64_t *value) {
  BEGIN(true);
  REQUIRE(is(pool, "pool"), kInvalidHandle);
  auto *own = static_cast<Pool *>(pool);
  *value = attribute == 5 ? own->reserved : attribute == 7 ? own->used : own->most;
  return kSuccess;
}
int cuMemPoolTrimTo(void *pool, size_t bytes) {
  BEGIN(true);
  REQUIRE(is(pool, "pool"), kInvalidHandle);
  for (auto &[handle, kind] : live) {
    // Blocks that earlier work may still use stay.
    if (!strcmp(kind, "stream") && !static_cast<Stream *>(handle)->queue.empty()) return kSuccess;
  }
  auto *own = static_cast<Pool *>(pool);
  while (own->reserved > bytes && !own->spare.empty()) {
    auto [size, address] = *own->spare.begin();
    own->spare.erase(own->spare.begin());
    own->reserved -= size;
    free(address);
  }
  return kSuccess;
}
struct Access { int kind, device, flags; };
int cuMemPoolSetAccess(void *pool, const Access *access, size_t count) {
  BEGIN(true);
  REQUIRE(is_here(pool, "pool"), kInvalidHandle);
  REQUIRE(count == 1 && access->kind == 1 && access->flags == 3, kInvalidValue);
  REQUIRE(access->device >= 0 && access->device < kDevices && access->device != device(), kInvalidDevice);
  return kSuccess;
}
int cuMemAllocFromPoolAsync(uint64_t *address, size_t bytes, void *pool, void *stream) {
  BEGIN(true);
  REQUIRE(is_here(pool, "pool") && is_here(stream, "stream"), kInvalidHandle);
  auto *own = static_cast<Pool *>(pool);
  size_t size = (bytes + 511) / 512 * 512;
  auto spare = own->spare.find(size);
  char *made;
  if (spare != own->spare.end()) {
    made = spare->second;
    own->spare.erase(spare);
  } else {
    REQUIRE(own->reserved + size <= total, kOutOfMemory);
    made = static_cast<char *>(aligned_alloc(512, size));
    memset(made, 0xA5, size);
    own->reserved += size;
  }
  own->blocks[made] = size;
  own->used += size;
  own->most = std::max(own->most, own->used);
  *address = uint64_t(made);
  return kSuccess;
}
int cuMemFreeAsync(uint64_t address, void *stream) {
  GIVE_BACK(true);
  for (auto &[handle, kind] : live) {
    if (strcmp(kind, "pool")) continue;
    auto *own = static_cast<Pool *>(handle);
    auto found = own->blocks.find(reinterpret_cast<char *>(address));
    if (found == own->blocks.end()) continue;
    auto [begin, size] = *found;
    own->used -= size;
    own->spare.emplace(size, begin);  // for what the stream is told from now on
    own->blocks.erase(found);
    int code = enqueue(stream, [begin = begin, size = size] { memset(begin, 0xDD, size); });
    return code ? code : failed;
  }
  return kInvalidValue;
}
int cuMemGetInfo_v2(size_t *free_bytes, size_t *all) { BEGIN(true); *free_bytes = total / 2, *all = total; return kSuccess; }
int cuMemHostAlloc(void **address, size_t bytes, unsigned) {
  BEGIN(true);
  SAFE;
  char *made = static_cast<char *>(malloc(bytes));
  pinned[made] = bytes;
  *address = made;
  return kSuccess;
}
int cuMemFreeHost(void *address) {
  GIVE_BACK(true);
  SAFE;
  run_all();
  REQUIRE(pinned.erase(static_cast<char *>(address)), kInvalidValue);
  free(address);
  return failed;
}

int cuMemcpyHtoDAsync_v2(uint64_t target, const void *source, size_t bytes, void *stream) {
  BEGIN(true);
  REQUIRE(on_device(target, bytes) && on_host(source, bytes), kInvalidValue);
  return enqueue(stream, [=] { memcpy(reinterpret_cast<void *>(target), source, bytes); });
}
int cuMemcpyDtoHAsync_v2(void *target, uint64_t source, size_t bytes, void *stream) {
  BEGIN(true);
  REQUIRE(on_host(target, bytes) && on_device(source, bytes), kInvalidValue);
  return enqueue(stream, [=] { memcpy(target, reinterpret_cast<void *>(source), bytes); });
}
int cuMemcpyDtoDAsync_v2(uint64_t target, uint64_t source, size_t bytes, void *stream) {
  BEGIN(true);
  REQUIRE(on_device(target, bytes) && on_device(source, bytes), kInvalidValue);
  return enqueue(stream, [=] { memmove(reinterpret_cast<void *>(target), reinterpret_cast<void *>(source), bytes); });
}
#ifdef FAKE_HIP
using Home = int;
int device_of(Home home) { return home; }
#else
using Home = Context *;
int device_of(Home home) { return home->device; }
#endif
int cuMemcpyPeerAsync(uint64_t target, Home target_home, uint64_t source, Home source_home, size_t bytes, void *stream) {
  BEGIN(true);
  REQUIRE(on_device_of(device_of(target_home), target, bytes), kInvalidValue);
  REQUIRE(on_device_of(device_of(source_home), source, bytes), kInvalidValue);
  return enqueue(stream, [=] { memmove(reinterpret_cast<void *>(target), reinterpret_cast<void *>(source), bytes); });
}

namespace {

int load(void **module, const char *image) {
  REQUIRE(!memcmp(image, ELFMAG, SELFMAG), kInvalidImage);
  auto *header = reinterpret_cast<const Elf64_Ehdr *>(image);
  size_t size = header->e_shoff + size_t(header->e_shnum) * header->e_shentsize;
  // The dynamic linker knows libraries by their names, so that each needs its own.
  char path[] = "/tmp/trivium-module-XXXXXX";
  int file = mkstemp(path);
  REQUIRE(write(file, image, size) == ssize_t(size), kInvalidImage);
  close(file);
  void *loaded = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  unlink(path);
  REQUIRE(loaded, kInvalidImage);
  auto *made = create<Module>("module");
  made->handle = loaded;
  *module = made;
  return kSuccess;
}

}  // namespace

#ifndef FAKE_HIP
int cuModuleLoadDataEx(void **module, const char *image, unsigned options, int *names, void **values) {
  BEGIN(true);
  SAFE;
  int code = load(module, image);
  for (unsigned option = 0; code && option < options; option++) {
    if (names[option] == 5) strcpy(static_cast<char *>(values[option]), "line 1: this is no program");
  }
  return code;
}
#endif
int cuModuleUnload(void *module) {
  GIVE_BACK(true);
  SAFE;
  REQUIRE(is(module, "module"), kInvalidHandle);
  run_all();
  dlclose(static_cast<Module *>(module)->handle);
  destroy<Module>(module);
  return failed;
}
int cuModuleGetFunction(void **function, void *module, const char *name) {
  BEGIN(true);
  REQUIRE(is_here(module, "module"), kInvalidHandle);
  auto *own = static_cast<Module *>(module);
  void *enter = dlsym(own->handle, (std::string("enter.") + name).c_str());
  void *count = dlsym(own->handle, (std::string("parameters.") + name).c_str());
  void *maps = dlsym(own->handle, (std::string("maps.") + name).c_str());
  REQUIRE(enter && count, kNotFound);
  auto kernel = reinterpret_cast<simulator::Kernel>(enter);
  own->functions.emplace_back(new Function{kernel, *static_cast<int *>(count), maps ? *static_cast<int *>(maps) : 0});
  *function = own->functions.back().get();
  return kSuccess;
}
#ifndef FAKE_HIP
int cuFuncSetAttribute(void *function, int attribute, int value) {
  BEGIN(true);
  REQUIRE(attribute == 8 && value <= 227 << 10, kInvalidValue);
  static_cast<Function *>(function)->most = value;
  return kSuccess;
}
#endif
int cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned, unsigned, unsigned granted,
                   void *stream, void **parameters, void **) {
  BEGIN(true);
  auto *own = static_cast<Function *>(function);
  REQUIRE(x && y == 1 && z == 1 && threads && threads <= 1024 && granted <= own->most, kInvalidValue);
  std::vector<uint64_t> values;
  for (int position = 0; position < own->parameters; position++) values.push_back(*static_cast<uint64_t *>(parameters[position]));
  REQUIRE(own->parameters * sizeof(uint64_t) + own->maps * sizeof(Parameter) <= kMostParameters, kInvalidValue);
  std::vector<Parameter> maps;
  for (int position = 0; position < own->maps; position++) {
    maps.push_back(*static_cast<Parameter *>(parameters[own->parameters + position]));
  }
  return enqueue(stream, [=]() mutable {
    std::vector<void *> given;
    for (uint64_t &value : values) given.push_back(&value);
    for (Parameter &map : maps) given.push_back(&map);
    if (wrong.empty()) wrong = simulator::launch(own->kernel, given.data(), x, threads, granted, seed++);
  });
}
#ifndef FAKE_HIP
// All that the driver's documentation asks for, and that the array is in the device's memory.
static int describe(simulator::TensorMap &made, void *map, int type, unsigned rank, void *address, const uint64_t *extents,
                    const uint64_t *strides, unsigned inner, const unsigned *steps, int interleave, int swizzle, int promotion,
                    int fill) {
  constexpr unsigned kSizes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
  constexpr unsigned kWidest[] = {0, 32, 64, 128};
  constexpr int kFloat16 = 6, kTf32 = 11;
  REQUIRE(attributes[75] >= 9, kInvalidValue);
  REQUIRE(map && uint64_t(map) % 64 == 0 && type >= 0 && type < 13, kInvalidValue);
  REQUIRE(interleave == 0 && rank >= 1 && rank <= 5 && uint64_t(address) % 16 == 0, kInvalidValue);
  REQUIRE(swizzle >= 0 && swizzle <= 3 && promotion >= 0 && promotion <= 3 && fill >= 0 && fill <= 1, kInvalidValue);
  REQUIRE(!fill || type >= kFloat16, kInvalidValue);
  unsigned size = kSizes[type];
  made = {simulator::kTensorMap, uint64_t(address), {}, {}, {}, uint8_t(rank), uint8_t(size), type == kTf32, false, {}, {}};
  uint64_t end = size, least = size;
  for (unsigned dimension = 0; dimension < rank; dimension++) {
    uint64_t extent = extents[dimension], distance = dimension ? strides[dimension - 1] : size;
    REQUIRE(extent >= 1 && extent <= 1ull << 32, kInvalidValue);
    REQUIRE(steps[dimension] >= 1 && steps[dimension] <= 8, kInvalidValue);
    if (dimension) {
      REQUIRE(distance % 16 == 0 && distance < 1ull << 40 && distance >= least, kInvalidValue);
      REQUIRE(dimension == 1 || distance % strides[dimension - 2] == 0, kInvalidValue);
      made.strides[dimension - 1] = distance;
    }
    least = distance * extent, end += distance * (extent - 1);
    made.extents[dimension] = extent;
  }
  REQUIRE(inner >= 1 && inner <= 256 && uint64_t(inner) * size % 16 == 0, kInvalidValue);
  REQUIRE(!swizzle || inner * size <= kWidest[swizzle], kInvalidValue);
  made.box[0] = inner;
  // The simulator knows one permutation of lines.
  REQUIRE(swizzle == 3 && !fill && on_device(uint64_t(address), end), kInvalidValue);
  return kSuccess;
}
int cuTensorMapEncodeTiled(void *map, int type, unsigned rank, void *address, const uint64_t *extents, const uint64_t *strides,
                           const unsigned *box, const unsigned *steps, int interleave, int swizzle, int promotion, int fill) {
  BEGIN(true);
  simulator::TensorMap made;
  int code = describe(made, map, type, rank, address, extents, strides, *box, steps, interleave, swizzle, promotion, fill);
  if (code) return code;
  for (unsigned dimension = 0; dimension < rank; dimension++) {
    // The simulator knows no gaps in boxes.
    REQUIRE(box[dimension] >= 1 && box[dimension] <= 256 && steps[dimension] == 1, kInvalidValue);
    made.box[dimension] = box[dimension];
  }
  memset(map, 0, sizeof(Parameter));
  memcpy(map, &made, sizeof made);
  return kSuccess;
}
int cuTensorMapEncodeIm2col(void *map, int type, unsigned rank, void *address, const uint64_t *extents, const uint64_t *strides,
                            const int *low, const int *high, unsigned features, unsigned count, const unsigned *steps,
                            int interleave, int swizzle, int promotion, int fill) {
  BEGIN(true);
  constexpr int kCorners[] = {1 << 15, 1 << 7, 1 << 4};
  simulator::TensorMap made;
  int code = describe(made, map, type, rank, address, extents, strides, features, steps, interleave, swizzle, promotion, fill);
  if (code) return code;
  REQUIRE(rank >= 3 && count >= 1 && count <= 1024, kInvalidValue);
  made.windows = true, made.box[1] = count;
  for (unsigned axis = 0; axis < rank - 2; axis++) {
    int most = kCorners[rank - 3];
    REQUIRE(low[axis] >= -most && low[axis] < most && high[axis] >= -most && high[axis] < most, kInvalidValue);
    // There is a window.
    REQUIRE(low[axis] < int64_t(extents[axis + 1]) + high[axis], kInvalidValue);
    made.corners[axis][0] = int16_t(low[axis]), made.corners[axis][1] = int16_t(high[axis]);
    made.steps[axis] = uint8_t(steps[axis + 1]);
  }
  memset(map, 0, sizeof(Parameter));
  memcpy(map, &made, sizeof made);
  return kSuccess;
}
#endif

int cuStreamBeginCapture_v2(void *stream, int mode) {
  BEGIN(true);
  REQUIRE(stream, kCaptureUnsupported);
  REQUIRE(is(stream, "stream") && !static_cast<Stream *>(stream)->captures, kInvalidHandle);
  auto *own = static_cast<Stream *>(stream);
  own->captures = true, own->invalid = false, own->mode = mode, own->captured_by = std::this_thread::get_id();
  return kSuccess;
}
int cuStreamEndCapture(void *stream, void **graph) {
  GIVE_BACK(true);
  auto *own = static_cast<Stream *>(stream);
  REQUIRE(is(stream, "stream") && own->captures, kInvalidHandle);
  REQUIRE(own->mode == kRelaxed || own->captured_by == std::this_thread::get_id(), kCaptureWrongThread);
  own->captures = false;
  std::vector<Work> captured = std::move(own->captured);
  own->captured.clear();
  if (failed) return failed;
  REQUIRE(!own->invalid, kCaptureInvalidated);
  auto *made = create<Graph>("graph");
  made->work = std::move(captured);
  *graph = made;
  return kSuccess;
}
int cuGraphInstantiateWithFlags(void **executable, void *graph, unsigned long long) {
  BEGIN(true);
  REQUIRE(is(graph, "graph"), kInvalidHandle);
  auto *made = create<Graph>("executable graph");
  made->work = static_cast<Graph *>(graph)->work;
  *executable = made;
  return kSuccess;
}
int cuGraphLaunch(void *graph, void *stream) {
  BEGIN(true);
  REQUIRE(is_here(graph, "executable graph"), kInvalidHandle);
  for (const Work &work : static_cast<Graph *>(graph)->work) {
    int code = enqueue(stream, work);
    if (code) return code;
  }
  return kSuccess;
}
int cuGraphDestroy(void *graph) { GIVE_BACK(true); REQUIRE(is(graph, "graph"), kInvalidHandle); destroy<Graph>(graph); return failed; }
int cuGraphExecDestroy(void *graph) { GIVE_BACK(true); REQUIRE(is(graph, "executable graph"), kInvalidHandle); destroy<Graph>(graph); return failed; }

}  // extern "C"
