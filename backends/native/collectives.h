// Collectives: the threads that run one program for several devices meet in them, and exchange values in place.

#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace trivium {

// The state that the devices of one run share.
class Communicator {
 public:
  explicit Communicator(int devices) : ended_(devices, false) {}
  Communicator(const Communicator&) = delete;

  // A group that meets: once all members have arrived, their memory stays unchanged until all have left.
  struct Meeting {
    std::vector<const void*> sources;
    std::vector<void*> destinations;
    int64_t present = 0;
    int64_t turn = 0;
    bool is_full = false;
  };

  // Identifies a collective of the program, and one of its groups.
  using Key = std::pair<const int64_t*, int64_t>;

  // Waits until all members of the group have arrived at `key`. Returns nothing if one will not arrive, since its run has ended.
  Meeting* Enter(Key key, const std::vector<int64_t>& members, int64_t place, const void* source, void* destination);

  // Waits until all members have arrived here: afterwards nobody reads or writes another member's memory.
  void Leave(Meeting* meeting);

  // A device has ended its run: the others must not wait for it.
  void End(int64_t device);

 private:
  bool Misses(const std::vector<int64_t>& members) const;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<bool> ended_;
  std::map<Key, Meeting> meetings_;
};

// While it exists, collectives that this thread runs are those of `device`.
class DeviceScope {
 public:
  DeviceScope(Communicator* communicator, int64_t device);
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
};

// Copies a box between arrays of elements of `width` bytes. `begins` are the positions of the box in the two arrays.
void CopyBox(const char* source, const std::vector<int64_t>& source_shape, const std::vector<int64_t>& source_begins, char* destination,
             const std::vector<int64_t>& destination_shape, const std::vector<int64_t>& destination_begins,
             const std::vector<int64_t>& extents, int64_t width);

}  // namespace trivium
