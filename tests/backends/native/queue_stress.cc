// Stress tests of devices' queues: runs, copies and callbacks while work is in flight, its failures, forks, and an exit.

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "pjrt_host.h"
#include "trace.h"

namespace {

using namespace trivium::pjrt;
using namespace trivium::pjrt::host;

// Programs `y = x + 1` that say that they take long. They wait while the gate is closed. A negative number ends the run; "nested" runs
// another program, as a callback may do.

std::atomic<uint32_t> closed{0};
std::atomic<int> runs{0};
LoadedExecutable* inner = nullptr;

int32_t AddOneSlowly(void** arguments, void*, void**) {
  closed.wait(1);
  ++runs;
  const auto* x = static_cast<const float*>(arguments[0]);
  auto* y = static_cast<float*>(arguments[1]);
  for (int64_t i = 0; i < kSize; ++i) y[i] = x[i] + 1;
  return x[0] < 0 ? -1 : 0;
}

Client* client = nullptr;

int32_t AddTwo(void** arguments, void*, void**) {
  Buffer *x = NewBuffer(client, *static_cast<const float*>(arguments[0])), *y = nullptr, *z = nullptr;
  EXPECT(Execute(inner, {x}, &y) == Error_Code_OK && Execute(inner, {y}, &z) == Error_Code_OK);
  std::vector<float> elements(kSize);
  Buffer_ToHostBuffer_Args args{};
  args.src = z;
  args.dst = arguments[1];
  args.dst_size = kSize * sizeof(float);
  EXPECT(Awaited(Call(api.Buffer_ToHostBuffer, args).event) == Error_Code_OK);
  for (Buffer* buffer : {x, y, z}) DestroyBuffer(buffer);
  return 0;
}

int32_t CompileProgram(const CompileRequest* request, CompileReply* reply, void*) {
  static const int64_t dims[] = {kSize};
  static const SlotType slots[] = {{Buffer_Type_F32, 1, dims}, {Buffer_Type_F32, 1, dims}};
  static const uint8_t keep[] = {0}, donate[] = {1};
  const std::string code(request->code, request->code_size);
  reply->entry = code == "nested" ? AddTwo : AddOneSlowly;
  reply->num_arguments = reply->num_results = 1;
  reply->slots = slots;
  reply->donated = code == "donate" ? donate : keep;
  reply->name = "add_one_slowly";
  reply->fingerprint = "0";
  reply->flops = code == "quick" ? 0 : 1e15;
  return 0;
}

void Open() {
  closed = 0;
  closed.notify_all();
}

bool IsReady(Event* event) { return Call(api.Event_IsReady, Event_IsReady_Args{{}, event, false}).is_ready; }

Event* ReadyEvent(Buffer* buffer) { return Call(api.Buffer_ReadyEvent, Buffer_ReadyEvent_Args{{}, buffer, nullptr}).event; }

Event* CopiedToHost(Buffer* buffer, std::vector<float>& elements) {
  Buffer_ToHostBuffer_Args args{};
  args.src = buffer;
  args.dst = elements.data();
  args.dst_size = elements.size() * sizeof(float);
  return Call(api.Buffer_ToHostBuffer, args).event;
}

void CountCalls(Event* event, std::atomic<int>& calls) {
  Call(api.Event_OnReady, Event_OnReady_Args{{}, event, [](Error* error, void* count) {
                                               CodeOf(error);
                                               ++*static_cast<std::atomic<int>*>(count);
                                             },
                                             &calls});
}

// An executable whose first run is queued; later ones are if an argument is not ready.
class Slow {
 public:
  explicit Slow(const char* kind = "keep") : executable_(Compile(client, kind)) {}
  ~Slow() { Call(api.LoadedExecutable_Destroy, LoadedExecutable_Destroy_Args{{}, executable_}); }
  Slow(const Slow&) = delete;
  Slow& operator=(const Slow&) = delete;

  Buffer* operator()(Buffer* x) const {
    Buffer* y = nullptr;
    EXPECT(Launch(executable_, {x}, &y, nullptr) == Error_Code_OK);
    return y;
  }

  LoadedExecutable* executable() const { return executable_; }

 private:
  LoadedExecutable* const executable_;
};

// A chain of runs, whose arguments are deleted and donated, and whose result is copied, before any of them ran.
void CheckInFlight(Device* other) {
  const Slow slow, donating("donate");
  closed = 1;
  Buffer *x = NewBuffer(client, 1), *y = slow(x), *z = donating(y), *w = slow(z);
  Buffer* copy = Call(api.Buffer_CopyToDevice, Buffer_CopyToDevice_Args{{}, w, other, nullptr}).dst_buffer;
  std::vector<float> elements(kSize);
  Event *copied = CopiedToHost(w, elements), *ready = ReadyEvent(w);
  std::atomic<int> calls{0};
  CountCalls(ready, calls);
  EXPECT(!IsReady(copied) && !IsReady(ready) && calls == 0);
  EXPECT(Refusal(api.Event_Error, Event_Error_Args{{}, ready}) == Error_Code_FAILED_PRECONDITION);
  EXPECT(Call(api.Buffer_IsDeleted, Buffer_IsDeleted_Args{{}, y, false}).is_deleted);
  Call(api.Buffer_Delete, Buffer_Delete_Args{{}, x});
  for (Buffer* buffer : {x, y, z}) DestroyBuffer(buffer);
  Open();
  EXPECT(Awaited(copied) == Error_Code_OK && Awaited(ready) == Error_Code_OK);
  EXPECT(elements[0] == 4 && elements[kSize - 1] == 4);
  ExpectElements(copy, 4);
  while (calls != 1) std::this_thread::yield();
  for (Buffer* buffer : {w, copy}) DestroyBuffer(buffer);
}

// The failure of a run reaches everything that depends on it, and nothing of that runs.
void CheckFailure(Device* other) {
  const Slow slow;
  closed = 1;
  Buffer *x = NewBuffer(client, -5), *y = slow(x), *z = slow(y);
  Buffer* copy = Call(api.Buffer_CopyToDevice, Buffer_CopyToDevice_Args{{}, z, other, nullptr}).dst_buffer;
  std::vector<float> elements(kSize);
  Event* copied = CopiedToHost(copy, elements);
  const int before = runs;
  Open();
  std::string text;
  EXPECT(Awaited(copied, &text) == Error_Code_INTERNAL && text.find("ended early") != std::string::npos);
  EXPECT(Awaited(ReadyEvent(z)) == Error_Code_INTERNAL && runs == before + 1);
  for (Buffer* buffer : {x, y, z, copy}) DestroyBuffer(buffer);
}

// A run that runs programs itself, and waits for them, although they take long.
void CheckNested() {
  const Slow slow, nested("nested");
  inner = slow.executable();
  Buffer *x = NewBuffer(client, 1), *y = nested(x);
  ExpectElements(y, 3);
  for (Buffer* buffer : {x, y}) DestroyBuffer(buffer);
}

// Threads whose runs, more than a queue holds, depend on one buffer that is not ready yet.
void CheckManyThreads() {
  const Slow slow;
  closed = 1;
  Buffer *x = NewBuffer(client, 1), *first = slow(x);
  std::vector<std::thread> threads;
  for (int number = 0; number < 4; ++number) {
    threads.emplace_back([&] {
      std::vector<Buffer*> chain{slow(first)};
      for (int i = 1; i < 20; ++i) chain.push_back(slow(chain.back()));
      ExpectElements(chain.back(), 22);
      for (Buffer* buffer : chain) DestroyBuffer(buffer);
    });
  }
  Open();
  for (std::thread& thread : threads) thread.join();
  for (Buffer* buffer : {x, first}) DestroyBuffer(buffer);
}

Client* NewClient() {
  trivium_pjrt_set_compiler(CompileProgram, [](uint64_t) {});
  NamedValue two{};
  two.struct_size = sizeof(two);
  two.name = "num_devices";
  two.name_size = std::strlen(two.name);
  two.type = NamedValue_kInt64;
  two.int64_value = 2;
  Client_Create_Args args{};
  args.create_options = &two;
  args.num_options = 1;
  return Call(api.Client_Create, args).client;
}

// The client's end waits for runs whose results nobody has any more.
void DestroyClientInFlight() {
  {
    const Slow slow;
    closed = 1;
    Buffer *x = NewBuffer(client, 1), *y = slow(x);
    for (Buffer* buffer : {x, y}) DestroyBuffer(buffer);
  }
  const int before = runs;
  std::thread opener([] {
    usleep(1000);
    Open();
  });
  Call(api.Client_Destroy, Client_Destroy_Args{{}, client});
  EXPECT(runs == before + 1);
  opener.join();
}

}  // namespace

void WorkInFlight() {
  for (int turn = 0; turn < 20; ++turn) {
    client = NewClient();
    Device* other = Call(api.Client_LookupDevice, Client_LookupDevice_Args{{}, client, 1, nullptr}).device;
    CheckInFlight(other);
    CheckFailure(other);
    CheckNested();
    CheckManyThreads();
    DestroyClientInFlight();
  }
}

// In a child, what was in flight has failed, and new work is done; in the parent nothing is different.
[[maybe_unused]] void ForksInFlight() {
  client = NewClient();
  for (int turn = 0; turn < 20; ++turn) {
    const Slow slow, another;
    closed = 1;
    Buffer *x = NewBuffer(client, 1), *y = slow(x), *z = slow(y);
    Event* ready = ReadyEvent(z);
    const pid_t child = fork();
    Open();
    if (child == 0) {
      EXPECT(Awaited(ready) == Error_Code_ABORTED);
      ExpectElements(another(x), 2);
      std::_Exit(0);
    }
    int status = 1;
    EXPECT(waitpid(child, &status, 0) == child && status == 0);
    EXPECT(Awaited(ready) == Error_Code_OK);
    ExpectElements(z, 3);
    for (Buffer* buffer : {x, y, z}) DestroyBuffer(buffer);
  }
  Call(api.Client_Destroy, Client_Destroy_Args{{}, client});
}

// A child may use a buffer that other threads were using when it was forked.
[[maybe_unused]] void ForksWhileABufferIsUsed() {
  client = NewClient();
  Buffer* x = NewBuffer(client, 1);
  const auto use = [x] { return Call(api.Buffer_IsDeleted, Buffer_IsDeleted_Args{{}, x, false}).is_deleted; };
  std::atomic<bool> stop{false};
  std::vector<std::thread> users;
  for (int i = 0; i < 2; ++i) {
    users.emplace_back([&] {
      while (!stop) use();
    });
  }
  for (int turn = 0; turn < 200; ++turn) {
    const pid_t child = fork();
    if (child == 0) std::_Exit(use() ? 1 : 0);
    int status = 1;
    EXPECT(waitpid(child, &status, 0) == child && status == 0);
  }
  stop = true;
  for (std::thread& user : users) user.join();
  DestroyBuffer(x);
  Call(api.Client_Destroy, Client_Destroy_Args{{}, client});
}

// A child may listen to what runs, although other threads were reporting theirs when it was forked.
[[maybe_unused]] void ForksWhileThreadsAreTraced() {
  using namespace trivium::trace;
  constexpr size_t kEvents = 1000;  // copying them takes a while, in which a fork finds the lock taken
  Start();
  for (size_t i = 0; i < kEvents; ++i) const Span span("run", "line");
  std::atomic<bool> stop{false};
  std::vector<std::thread> reporters;
  for (int i = 0; i < 2; ++i) {
    reporters.emplace_back([&] {
      while (!stop) {
        Events();
        std::this_thread::yield();  // the fork gets the lock too
      }
    });
  }
  for (int turn = 0; turn < 50; ++turn) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(10);
      { const Span span("run", "line"); }
      std::_Exit(Events().size() == kEvents + 1 ? 0 : 1);
    }
    int status = 1;
    EXPECT(waitpid(child, &status, 0) == child && status == 0);
  }
  stop = true;
  for (std::thread& reporter : reporters) reporter.join();
  EXPECT(Events().size() == kEvents);
  Stop();
}

// After the queues were closed, runs are done by their callers.
void QueuesThatEnd() {
  client = NewClient();
  {
    const Slow slow, last;
    closed = 1;
    Buffer *x = NewBuffer(client, 1), *y = slow(x);
    std::thread opener([] {
      usleep(1000);
      Open();
    });
    trivium_pjrt_finish();
    opener.join();
    Buffer* z = last(y);
    Event *first = ReadyEvent(y), *second = ReadyEvent(z);
    EXPECT(IsReady(first) && IsReady(second));
    EXPECT(Awaited(first) == Error_Code_OK && Awaited(second) == Error_Code_OK);
    for (Buffer* buffer : {x, y, z}) DestroyBuffer(buffer);
  }
  Call(api.Client_Destroy, Client_Destroy_Args{{}, client});
  trivium_pjrt_set_compiler(nullptr, nullptr);
}
