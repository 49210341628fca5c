// How the processor rounds while a program runs: hosts have threads that flush denormal numbers to zero, such as those of XLA, or after
// torch.set_flush_denormal. Programs need the standard mode, in which they have the same results on every thread, and narrow floats their
// denormal numbers.

#pragma once

#include <cstdint>

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace trivium {

// The standard mode as long as the object lives.
class StandardFloats {
 public:
  StandardFloats() : before_(Mode()) {
    if (Rounding(before_) != kStandard) SetMode(kStandard);
  }

  ~StandardFloats() {
    if (Rounding(before_) != kStandard) SetMode(before_);
  }

  StandardFloats(const StandardFloats&) = delete;
  StandardFloats& operator=(const StandardFloats&) = delete;

 private:
#if defined(__SSE__)
  using Bits = uint32_t;
  static constexpr Bits kStandard = 0x1F80, kFlags = 0x3F;  // no exception is raised; which ones there were
  static Bits Mode() { return _mm_getcsr(); }
  static void SetMode(Bits mode) { _mm_setcsr(mode); }
#elif defined(__aarch64__)
  using Bits = uint64_t;
  static constexpr Bits kStandard = 0, kFlags = 0;
  static Bits Mode() {
    Bits mode;
    asm volatile("mrs %0, fpcr" : "=r"(mode));
    return mode;
  }
  static void SetMode(Bits mode) { asm volatile("msr fpcr, %0" : : "r"(mode)); }
#else
  using Bits = int;
  static constexpr Bits kStandard = 0, kFlags = 0;
  static Bits Mode() { return kStandard; }
  static void SetMode(Bits) {}
#endif
  static Bits Rounding(Bits mode) { return mode & ~kFlags; }

  const Bits before_;
};

}  // namespace trivium
