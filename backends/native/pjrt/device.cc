#include "device.h"

#include <unistd.h>

#include "extensions.h"
#include "guard.h"

namespace trivium::pjrt {
namespace {

// The first one is the default.
constexpr std::array<MemoryDescription, 3> kMemoryKinds = {{{0, "device"}, {1, "pinned_host"}, {2, "unpinned_host"}}};

Memory MakeMemory(Device* device, int id, int kind) {
  const int number = id * static_cast<int>(kMemoryKinds.size()) + kind;
  std::string text = std::string(kMemoryKinds[kind].name) + " memory of device " + std::to_string(id);
  return Memory{number, &kMemoryKinds[kind], std::move(text), device};
}

}  // namespace

bool Memory::is_on_host() const { return device->accelerator == nullptr || kind != &kMemoryKinds[0]; }

void RequireHost(const Memory& memory, const std::string& what) {
  if (memory.device->accelerator == nullptr) return;
  throw Failure(Error_Code_UNIMPLEMENTED, what + " is for the host's memory only, but was requested for " + memory.text);
}

void Statistics::Allocated(int64_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  const int64_t now = bytes_in_use.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  // If two threads reach a new peak at once, either may win: a statistic may be off by the amount freed in between.
  if (now > peak_bytes_in_use.load(std::memory_order_relaxed)) peak_bytes_in_use.store(now, std::memory_order_relaxed);
  if (bytes > largest_allocation.load(std::memory_order_relaxed)) largest_allocation.store(bytes, std::memory_order_relaxed);
}

DeviceDescription Describe(int id) { return {id, "cpu", "TriviumDevice(id=" + std::to_string(id) + ")", kMemoryKinds.size()}; }

Device::Device(Client* client, int id)
    : client(client),
      description(Describe(id)),
      memories{MakeMemory(this, id, 0), MakeMemory(this, id, 1), MakeMemory(this, id, 2)},
      itself{this} {
  for (Memory& memory : memories) memory_list.push_back(&memory);
}

Device::Device(Client* client, int id, std::string name, std::string kind)
    : client(client),
      description{id, std::move(kind), "TriviumDevice(id=" + std::to_string(id) + ", " + name + ")", kMemoryKinds.size()},
      memories{MakeMemory(this, id, 0), MakeMemory(this, id, 1), MakeMemory(this, id, 2)},
      itself{this},
      accelerator(std::make_unique<Accelerator>(std::move(name))) {
  for (Memory& memory : memories) memory_list.push_back(&memory);
}

Readiness Device::Start(bool is_quick, std::vector<CompletionPtr> inputs, Queue::Work work) {
  if (accelerator != nullptr) return accelerator->Start(queue, std::move(inputs), std::move(work));
  return queue.Do(is_quick, std::move(inputs), std::move(work));
}

namespace {

void DescriptionId(DeviceDescription_Id_Args& args) { args.id = args.device_description->id; }

void ProcessIndex(DeviceDescription_ProcessIndex_Args& args) { args.process_index = 0; }

void Attributes(DeviceDescription_Attributes_Args& args) {
  args.attributes = nullptr;
  args.num_attributes = 0;
}

void Kind(DeviceDescription_Kind_Args& args) {
  args.device_kind = args.device_description->kind.data();
  args.device_kind_size = args.device_description->kind.size();
}

void DebugString(DeviceDescription_DebugString_Args& args) {
  args.debug_string = args.device_description->text.data();
  args.debug_string_size = args.device_description->text.size();
}

void ToString(DeviceDescription_ToString_Args& args) {
  args.to_string = args.device_description->text.data();
  args.to_string_size = args.device_description->text.size();
}

void GetDescription(Device_GetDescription_Args& args) { args.device_description = &args.device->description; }

void IsAddressable(Device_IsAddressable_Args& args) { args.is_addressable = true; }

void LocalHardwareId(Device_LocalHardwareId_Args& args) { args.local_hardware_id = args.device->description.id; }

void AddressableMemories(Device_AddressableMemories_Args& args) {
  args.memories = args.device->memory_list.data();
  args.num_memories = args.device->memory_list.size();
}

void DefaultMemory(Device_DefaultMemory_Args& args) { args.memory = &args.device->default_memory(); }

void MemoryStats(Device_MemoryStats_Args& args) {
  const Statistics& statistics = args.device->statistics;
  args.bytes_in_use = statistics.bytes_in_use;
  args.peak_bytes_in_use = statistics.peak_bytes_in_use;
  args.num_allocs = statistics.allocations;
  args.largest_alloc_size = statistics.largest_allocation;
  args.bytes_limit = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  args.bytes_limit_is_set = args.device->accelerator == nullptr;
  args.peak_bytes_in_use_is_set = args.num_allocs_is_set = args.largest_alloc_size_is_set = true;
  args.bytes_reserved_is_set = args.peak_bytes_reserved_is_set = args.bytes_reservable_limit_is_set = false;
  args.largest_free_block_bytes_is_set = args.pool_bytes_is_set = args.peak_pool_bytes_is_set = false;
}

void MemoryId(Memory_Id_Args& args) { args.id = args.memory->id; }

void MemoryKind(Memory_Kind_Args& args) {
  args.kind = args.memory->kind->name.data();
  args.kind_size = args.memory->kind->name.size();
}

void MemoryKindId(Memory_Kind_Id_Args& args) { args.kind_id = args.memory->kind->id; }

void MemoryDebugString(Memory_DebugString_Args& args) {
  args.debug_string = args.memory->text.data();
  args.debug_string_size = args.memory->text.size();
}

void MemoryToString(Memory_ToString_Args& args) {
  args.to_string = args.memory->text.data();
  args.to_string_size = args.memory->text.size();
}

void AddressableByDevices(Memory_AddressableByDevices_Args& args) {
  args.devices = args.memory->device->itself.data();
  args.num_devices = 1;
}

void MemoryDescriptions(DeviceDescription_MemoryDescriptions_Args& args) {
  static constexpr std::array<const MemoryDescription*, 3> kinds = {&kMemoryKinds[0], &kMemoryKinds[1], &kMemoryKinds[2]};
  args.memory_descriptions = kinds.data();
  args.num_memory_descriptions = args.device_description->num_memories;
  args.default_memory_index = 0;
}

void DescribedKind(MemoryDescription_Kind_Args& args) {
  args.kind = args.memory_description->name.data();
  args.kind_size = args.memory_description->name.size();
  args.kind_id = args.memory_description->id;
}

void NoAttributes(Device_GetAttributes_Args& args) {
  args.attributes = nullptr;
  args.num_attributes = 0;
  args.device_attributes = nullptr;
  args.attributes_deleter = [](Device_Attributes*) {};
}

}  // namespace

void BindDevices(Api& api) {
  api.DeviceDescription_Id = Method<DescriptionId>;
  api.DeviceDescription_ProcessIndex = Method<ProcessIndex>;
  api.DeviceDescription_Attributes = Method<Attributes>;
  api.DeviceDescription_Kind = Method<Kind>;
  api.DeviceDescription_DebugString = Method<DebugString>;
  api.DeviceDescription_ToString = Method<ToString>;
  api.Device_GetDescription = Method<GetDescription>;
  api.Device_IsAddressable = Method<IsAddressable>;
  api.Device_LocalHardwareId = Method<LocalHardwareId>;
  api.Device_AddressableMemories = Method<AddressableMemories>;
  api.Device_DefaultMemory = Method<DefaultMemory>;
  api.Device_MemoryStats = Method<MemoryStats>;
  api.Device_GetAttributes = Method<NoAttributes>;
  api.Memory_Id = Method<MemoryId>;
  api.Memory_Kind = Method<MemoryKind>;
  api.Memory_Kind_Id = Method<MemoryKindId>;
  api.Memory_DebugString = Method<MemoryDebugString>;
  api.Memory_ToString = Method<MemoryToString>;
  api.Memory_AddressableByDevices = Method<AddressableByDevices>;
}

Extension_Base* MemoryDescriptionsExtension(Extension_Base* next) {
  static MemoryDescriptions_Extension extension{
      {sizeof(MemoryDescriptions_Extension), Extension_Type_MemoryDescriptions, next}, Method<MemoryDescriptions>, Method<DescribedKind>};
  return &extension.base;
}

}  // namespace trivium::pjrt
