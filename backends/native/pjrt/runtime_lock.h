// The locks for the short sections in which threads of the runtime change what they share: a fork waits until nobody is in one, so that the
// child does not inherit a lock that nobody releases.

#pragma once

#include <mutex>

namespace trivium::pjrt {

// Held for a few instructions only, and while nothing of anybody else is called.
std::mutex& RuntimeLock();

// The lock of one object, which others may have too: whoever holds it takes no other lock of these.
std::mutex& LockOf(const void* object);

// Makes forks wait for the locks, from the first call on.
void RegisterRuntimeLock();

}  // namespace trivium::pjrt
