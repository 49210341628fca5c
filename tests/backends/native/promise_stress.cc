// Stress tests of what the host says later, through PJRT's table: what an alias becomes, where a copy goes, when a donated buffer may be used,
// and which runs the host makes fail.

#include <atomic>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "promise_host.h"
#include "trace.h"

namespace {

using namespace trivium::pjrt;
using namespace trivium::pjrt::host;

std::pair<Buffer*, FulfillAliasBufferCallback*> NewAlias(const Session& session) {
  Client_CreateAliasBuffer_Args args{};
  args.client = session.client;
  args.memory = session.memory;
  args.shape_dims = &kSize;
  args.shape_num_dims = 1;
  args.shape_element_type = Buffer_Type_F32;
  args = Call(api.Client_CreateAliasBuffer, args);
  return {args.alias_buffer, args.fulfill_alias_buffer_cb};
}

Error_Code Fulfill(const Session& session, FulfillAliasBufferCallback* alias, Buffer* source, Error_Code code = Error_Code_OK) {
  return Refusal(api.Client_FulfillAliasBuffer, Client_FulfillAliasBuffer_Args{{}, session.client, source, code, "stop", 4, alias});
}

// Threads use an alias, and drop it, while others compute what it becomes: of an alias again, and after wrong attempts.
void CheckAliases(const Session& session) {
  const auto [first, first_callback] = NewAlias(session);
  const auto [second, second_callback] = NewAlias(session);
  std::vector<std::thread> users;
  for (int number = 0; number < 3; ++number) {
    users.emplace_back([&, alias = number % 2 ? first : second] {
      Buffer *y = session.Run(alias), *z = session.Run(y);
      ExpectElements(z, 9);
      ExpectElements(alias, 7);
      for (Buffer* buffer : {y, z}) DestroyBuffer(buffer);
    });
  }
  EXPECT(Refusal(api.Buffer_UnsafePointer, Buffer_UnsafePointer_Args{{}, first, 0}) == Error_Code_FAILED_PRECONDITION || IsReady(first));
  Buffer *small = NewBuffer(session.client, 1, 3), *six = NewBuffer(session.client, 6), *gone = NewBuffer(session.client, 1);
  Call(api.Buffer_Delete, Buffer_Delete_Args{{}, gone});
  for (Buffer* wrong : {small, gone, first, static_cast<Buffer*>(nullptr)}) {
    EXPECT(Fulfill(session, first_callback, wrong) == Error_Code_INVALID_ARGUMENT);
  }
  EXPECT(Fulfill(session, second_callback, first) == Error_Code_OK);
  Buffer* source = session.Run(six);
  EXPECT(Fulfill(session, first_callback, source) == Error_Code_OK);
  Call(api.Buffer_Delete, Buffer_Delete_Args{{}, source});
  for (std::thread& user : users) user.join();
  EXPECT(Call(api.Buffer_UnsafePointer, Buffer_UnsafePointer_Args{{}, first, 0}).buffer_pointer ==
         Call(api.Buffer_UnsafePointer, Buffer_UnsafePointer_Args{{}, second, 0}).buffer_pointer);
  for (Buffer* buffer : {first, second, small, six, gone, source}) DestroyBuffer(buffer);
}

// An error instead of a buffer reaches those that use the alias, even if the alias is no more.
void CheckAliasesThatFail(const Session& session) {
  const auto [alias, callback] = NewAlias(session);
  Buffer* result = session.Run(alias);
  DestroyBuffer(alias);
  const int before = runs;
  std::string text;
  EXPECT(Fulfill(session, callback, nullptr, Error_Code_ABORTED) == Error_Code_OK);
  EXPECT(ErrorOfBuffer(result, &text) == Error_Code_ABORTED && text == "stop" && runs == before);
  DestroyBuffer(result);
}

// Copies to memory that another thread names later; the buffer is deleted, or fails, before that.
void CheckCopiesToCome(const Session& session, Error_Code code) {
  Buffer *x = NewBuffer(session.client, 1), *y = session.Run(x);
  Buffer_CopyRawToHostFuture_Args args{};
  args.buffer = y;
  args.offset = 8;
  args.transfer_size = 3 * sizeof(float);
  args = Call(api.Buffer_CopyRawToHostFuture, args);
  DestroyBuffer(y);
  std::vector<float> found(4, -1);
  std::thread host([&] {
    Buffer_CopyRawToHostFuture_Callback_Args answer{sizeof(answer), args.callback_data, code, "stop", 4, found.data()};
    args.future_ready_callback(&answer);
  });
  EXPECT(Awaited(args.event) == code);
  host.join();
  EXPECT(found == (code == Error_Code_OK ? std::vector<float>({2, 2, 2, -1}) : std::vector<float>(4, -1)));
  args.offset = kBytes - 8;
  args.buffer = x;
  EXPECT(Refusal(api.Buffer_CopyRawToHostFuture, args) == Error_Code_INVALID_ARGUMENT);
  DestroyBuffer(x);
}

// A donated buffer whose elements are there before the host allows their use.
void CheckDependencies(const Session& session, Error_Code code) {
  Buffer* x = NewBuffer(session.client, 1);
  const auto args = Call(api.Buffer_DonateWithControlDependency, Buffer_DonateWithControlDependency_Args{{}, x, nullptr, nullptr, nullptr});
  EXPECT(Call(api.Buffer_IsDeleted, Buffer_IsDeleted_Args{{}, x, false}).is_deleted);
  EXPECT(Refusal(api.Buffer_DonateWithControlDependency, Buffer_DonateWithControlDependency_Args{{}, x, nullptr, nullptr, nullptr}) ==
         Error_Code_INVALID_ARGUMENT);
  Buffer* y = session.Run(args.out_buffer);
  EXPECT(!IsReady(args.out_buffer) && !IsReady(y));
  std::thread host([&] {
    Buffer_DonateWithControlDependency_Callback_Args answer{sizeof(answer), args.callback_data, code, "stop", 4};
    args.dependency_ready_callback(&answer);
  });
  if (code == Error_Code_OK) ExpectElements(y, 2);
  EXPECT(ErrorOfBuffer(y) == code && ErrorOfBuffer(args.out_buffer) == code);
  host.join();
  for (Buffer* buffer : {x, y, args.out_buffer}) DestroyBuffer(buffer);
}

Buffer* RunNumbered(const Session& session, Buffer* x, int number) {
  ExecuteOptions options{};
  options.struct_size = sizeof(options);
  options.launch_id = number;
  Buffer *y = nullptr, **made = &y, *const* list = &x;
  LoadedExecutable_Execute_Args args{};
  args.executable = session.add_one;
  args.options = &options;
  args.argument_lists = &list;
  args.num_devices = args.num_args = 1;
  args.output_lists = &made;
  Call(api.LoadedExecutable_Execute, args);
  return y;
}

// Threads poison the runs of one number while these finish: each is poisoned by at most one thread, and then its result is an error.
void CheckPoison(const Session& session) {
  const auto [alias, callback] = NewAlias(session);
  std::vector<Buffer*> results;
  for (int i = 0; i < 6; ++i) results.push_back(RunNumbered(session, alias, 5));
  Buffer* other = RunNumbered(session, alias, 6);
  std::atomic<int> poisoned{0};
  const auto poison = [&](int times) {
    for (int i = 0; i < times; ++i) {
      const Device_PoisonExecution_Args args{{}, session.device, 5, Error_Code_DATA_LOSS, "gone", 4, false};
      poisoned += Call(api.Device_PoisonExecution, args).poisoned;
    }
  };
  poison(1);
  EXPECT(poisoned == 1 && ErrorOfBuffer(results[0]) == Error_Code_DATA_LOSS);
  std::vector<std::thread> threads;
  for (int number = 0; number < 2; ++number) threads.emplace_back(poison, 3);
  Buffer* source = NewBuffer(session.client, 1);
  EXPECT(Fulfill(session, callback, source) == Error_Code_OK);
  for (std::thread& thread : threads) thread.join();
  int failed = 0;
  for (Buffer* result : results) failed += ErrorOfBuffer(result) == Error_Code_DATA_LOSS;
  EXPECT(failed == poisoned);
  ExpectElements(other, 2);
  poison(1);
  EXPECT(failed == poisoned);
  for (Buffer* result : results) DestroyBuffer(result);
  for (Buffer* buffer : {alias, other, source}) DestroyBuffer(buffer);
}

void CheckTrackingEvents(const Session& session) {
  const auto args = Call(api.Device_CreateAsyncTrackingEvent, Device_CreateAsyncTrackingEvent_Args{{}, session.device, "work", 4, nullptr});
  trivium::trace::Start();
  Call(api.AsyncTrackingEvent_Destroy, AsyncTrackingEvent_Destroy_Args{{}, args.event});
  trivium::trace::Stop();
  const auto events = trivium::trace::Events();
  EXPECT(events.size() == 1 && events[0].name == "work" && events[0].source == "TriviumDevice(id=0)");
  Call(api.AsyncTrackingEvent_Destroy, AsyncTrackingEvent_Destroy_Args{});
}

}  // namespace

void PromisedBuffers() {
  const Session session;
  for (int turn = 0; turn < 20; ++turn) {
    CheckAliases(session);
    CheckAliasesThatFail(session);
    for (const Error_Code code : {Error_Code_OK, Error_Code_ABORTED}) {
      CheckCopiesToCome(session, code);
      CheckDependencies(session, code);
    }
    CheckPoison(session);
    CheckTrackingEvents(session);
  }
}
