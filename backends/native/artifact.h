// A compiled program as bytes: machine code, its interface, and its constants. backends/artifact.py writes and reads the same layout;
// tests/backends/test_artifact.py reads it according to this description. A file that is mapped or read into memory is used in place: all
// numbers are little-endian, records start at multiples of 8, and everything of variable size is found through a Span.
//
// The description is separate from the machine code: it is checked, and the target compared, before any code of the artifact is loaded.
//
// To run a program: write the bytes of `code` to a file (memfd_create), dlopen it while libtrivium_runtime.so is loaded, and call
//
//   int32_t trivium_entry(void** arguments, void* arena, void** context);
//
//   arguments  addresses of the inputs, then of the outputs; dense, row-major, `Slot::bytes` each
//   arena      `arena_bytes` of memory for this call alone, at a multiple of `arena_alignment`
//   context    two addresses for each host call, of its function and of its routine (or null), then one for each constant
//
// It returns 0, or another number if a host call failed or a signal ended it. Calls may run concurrently, with the same context.

#pragma once

#include <cstdint>

namespace trivium::artifact {

// A range in the artifact. `offset` counts from its first byte. `count` is the number of bytes of a UTF-8 text, without the zero byte that
// follows it; of records in a list; or of plain bytes.
struct Span {
  uint64_t offset;
  uint64_t count;
};

inline constexpr char kMagic[8] = {'\x93', 'T', 'R', 'I', 'V', 'I', 'U', 'M'};
inline constexpr uint32_t kFormat = 1;

// Element types, by the numbers of PJRT_Buffer_Type (xla/pjrt/c/pjrt_c_api.h); those that PJRT has no number for start at 1000. Elements of
// less than a byte take one byte each.
enum class ElementType : uint32_t {
  kPred = 1,
  kS8 = 2,
  kS16 = 3,
  kS32 = 4,
  kS64 = 5,
  kU8 = 6,
  kU16 = 7,
  kU32 = 8,
  kU64 = 9,
  kF16 = 10,
  kF32 = 11,
  kF64 = 12,
  kBF16 = 13,
  kC64 = 14,
  kC128 = 15,
  kF8E5M2 = 16,
  kF8E4M3FN = 17,
  kF8E4M3B11FNUZ = 18,
  kF8E5M2FNUZ = 19,
  kF8E4M3FNUZ = 20,
  kS4 = 21,
  kU4 = 22,
  kS2 = 24,
  kU2 = 25,
  kF8E4M3 = 26,
  kF8E3M4 = 27,
  kF8E8M0FNU = 28,
  kF4E2M1FN = 29,
  kF6E2M3FN = 1000,
  kF6E3M2FN = 1001,
};

// An input or output.
struct Slot {
  ElementType type;
  uint32_t reserved;
  uint64_t bytes;
  Span dimensions;  // int64_t
};

enum class HostCallKind : uint32_t {
  // `function` is a symbol of libtrivium_runtime.so; `routine` names the LAPACK or BLAS routine that is passed to it, such as "dpotrf", and
  // is empty if it needs none.
  kNative = 0,
  // Calls Python: `function` is the target of a custom call that the user registered, `program` the text of a module with that one op. The
  // host function is `trivium_call_python`, its routine a Python callable that takes the index of this host call.
  kPython = 1,
};

// A function that the program calls by address. Its attributes are in the code.
struct HostCall {
  HostCallKind kind;
  uint32_t reserved;
  Span function;  // text
  Span routine;   // text
  Span program;   // text
};

enum class ConstantSource : uint32_t {
  // In `data`, from byte `offset` of it on.
  kEmbedded = 0,
  // In constant number `index` of the module that was compiled, in the order of its ops, viewed as dense and row-major, from its byte
  // `offset` on.
  kModule = 1,
};

// Strides of an operand, in elements.
struct Axis {
  int64_t extent;
  int64_t stride;
};

// How the operand of a contraction is rearranged. It is read as [batch][column][reduction], each of which is the product of a list of axes,
// the first one outermost, from element `offset` on. It is written as [batch][panel][reduction][column of the panel]: panel i takes the
// next `widths[i]` columns, and zeros where none are left.
struct Packing {
  uint64_t element_bytes;
  uint64_t offset;
  Span batch;      // Axis
  Span columns;    // Axis
  Span reduction;  // Axis
  Span widths;     // int64_t
};

struct Constant {
  ConstantSource source;
  uint32_t index;
  uint64_t offset;
  uint64_t source_bytes;  // before packing
  uint64_t bytes;         // as the program reads them
  uint64_t alignment;     // for the fastest access; any address works
  Span packing;           // Packing: none, or one
};

// Information about the program for people and for Python, by name.
struct Text {
  Span name;
  Span text;
};

// The first bytes of an artifact.
struct Header {
  char magic[8];
  uint32_t format;
  uint32_t checksum;  // CRC-32, as zlib's, of all bytes after this field
  uint64_t size;      // of the whole artifact
  uint32_t runtime;   // the required value of trivium_runtime_version()
  uint32_t threads;   // the maximal number that a run uses
  uint64_t arena_bytes;
  uint64_t arena_alignment;
  Span name;      // text
  Span producer;  // text: the program that made the code, with versions
  Span triple;    // text, in LLVM's form
  Span cpu;       // text: the processor that the code is scheduled for
  Span features;  // text: LLVM's names, "+avx2,+fma,-avx512f"; those with a plus are required
  Span inputs;    // Slot
  Span outputs;   // Slot
  Span host_calls;  // HostCall
  Span constants;   // Constant
  Span texts;       // Text
  Span code;        // a shared object
  Span data;        // embedded constants, at a multiple of 4096
};

static_assert(sizeof(Slot) == 32 && sizeof(HostCall) == 56 && sizeof(Packing) == 80 && sizeof(Constant) == 56);
static_assert(sizeof(Header) == 48 + 12 * sizeof(Span));

}  // namespace trivium::artifact
