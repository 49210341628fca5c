#include "processor.h"

#if defined(__x86_64__)
#include <cpuid.h>

#include <array>
#include <cstdint>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#elif defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace trivium {
namespace {

#if defined(__x86_64__)

enum Register { kEax, kEbx, kEcx, kEdx };

// State that the system saves for each thread, as bits of XCR0: without it, instructions exist but must not be used.
enum State : uint64_t { kNone = 0, kAvx = 0x6, kAvx512 = 0xE6, kAmx = 0x60000 };

// The location of a feature in CPUID's results.
struct Feature {
  std::string_view name;
  uint32_t leaf;
  uint32_t subleaf;
  Register where;
  int bit;
  State state = kNone;
};

constexpr Feature kFeatures[] = {
    {"cx8", 1, 0, kEdx, 8}, {"cmov", 1, 0, kEdx, 15}, {"mmx", 1, 0, kEdx, 23}, {"fxsr", 1, 0, kEdx, 24}, {"sse", 1, 0, kEdx, 25},
    {"sse2", 1, 0, kEdx, 26}, {"sse3", 1, 0, kEcx, 0}, {"pclmul", 1, 0, kEcx, 1}, {"ssse3", 1, 0, kEcx, 9},
    {"fma", 1, 0, kEcx, 12, kAvx}, {"cx16", 1, 0, kEcx, 13}, {"sse4.1", 1, 0, kEcx, 19}, {"sse4.2", 1, 0, kEcx, 20},
    {"crc32", 1, 0, kEcx, 20}, {"movbe", 1, 0, kEcx, 22}, {"popcnt", 1, 0, kEcx, 23}, {"aes", 1, 0, kEcx, 25},
    {"xsave", 1, 0, kEcx, 27}, {"avx", 1, 0, kEcx, 28, kAvx}, {"f16c", 1, 0, kEcx, 29, kAvx}, {"rdrnd", 1, 0, kEcx, 30},
    {"fsgsbase", 7, 0, kEbx, 0}, {"bmi", 7, 0, kEbx, 3}, {"avx2", 7, 0, kEbx, 5, kAvx}, {"bmi2", 7, 0, kEbx, 8},
    {"invpcid", 7, 0, kEbx, 10}, {"rtm", 7, 0, kEbx, 11}, {"avx512f", 7, 0, kEbx, 16, kAvx512},
    {"avx512dq", 7, 0, kEbx, 17, kAvx512}, {"rdseed", 7, 0, kEbx, 18}, {"adx", 7, 0, kEbx, 19},
    {"avx512ifma", 7, 0, kEbx, 21, kAvx512}, {"clflushopt", 7, 0, kEbx, 23}, {"clwb", 7, 0, kEbx, 24},
    {"avx512cd", 7, 0, kEbx, 28, kAvx512}, {"sha", 7, 0, kEbx, 29}, {"avx512bw", 7, 0, kEbx, 30, kAvx512},
    {"avx512vl", 7, 0, kEbx, 31, kAvx512}, {"avx512vbmi", 7, 0, kEcx, 1, kAvx512}, {"pku", 7, 0, kEcx, 4},
    {"waitpkg", 7, 0, kEcx, 5}, {"avx512vbmi2", 7, 0, kEcx, 6, kAvx512}, {"shstk", 7, 0, kEcx, 7}, {"gfni", 7, 0, kEcx, 8},
    {"vaes", 7, 0, kEcx, 9, kAvx}, {"vpclmulqdq", 7, 0, kEcx, 10, kAvx}, {"avx512vnni", 7, 0, kEcx, 11, kAvx512},
    {"avx512bitalg", 7, 0, kEcx, 12, kAvx512}, {"avx512vpopcntdq", 7, 0, kEcx, 14, kAvx512}, {"rdpid", 7, 0, kEcx, 22},
    {"cldemote", 7, 0, kEcx, 25}, {"movdiri", 7, 0, kEcx, 27}, {"movdir64b", 7, 0, kEcx, 28}, {"enqcmd", 7, 0, kEcx, 29},
    {"uintr", 7, 0, kEdx, 5}, {"avx512vp2intersect", 7, 0, kEdx, 8, kAvx512}, {"serialize", 7, 0, kEdx, 14},
    {"tsxldtrk", 7, 0, kEdx, 16}, {"pconfig", 7, 0, kEdx, 18}, {"amx-bf16", 7, 0, kEdx, 22, kAmx},
    {"avx512fp16", 7, 0, kEdx, 23, kAvx512}, {"amx-tile", 7, 0, kEdx, 24, kAmx}, {"amx-int8", 7, 0, kEdx, 25, kAmx},
    {"sha512", 7, 1, kEax, 0}, {"sm3", 7, 1, kEax, 1}, {"sm4", 7, 1, kEax, 2}, {"avxvnni", 7, 1, kEax, 4, kAvx},
    {"avx512bf16", 7, 1, kEax, 5, kAvx512}, {"cmpccxadd", 7, 1, kEax, 7}, {"amx-fp16", 7, 1, kEax, 21, kAmx},
    {"hreset", 7, 1, kEax, 22}, {"avxifma", 7, 1, kEax, 23, kAvx}, {"avxvnniint8", 7, 1, kEdx, 4, kAvx},
    {"avxneconvert", 7, 1, kEdx, 5, kAvx}, {"amx-complex", 7, 1, kEdx, 8, kAmx}, {"avxvnniint16", 7, 1, kEdx, 10, kAvx},
    {"prefetchi", 7, 1, kEdx, 14}, {"xsaveopt", 13, 1, kEax, 0}, {"xsavec", 13, 1, kEax, 1}, {"xsaves", 13, 1, kEax, 3},
    {"ptwrite", 20, 0, kEbx, 4}, {"sahf", 0x80000001, 0, kEcx, 0}, {"lzcnt", 0x80000001, 0, kEcx, 5},
    {"sse4a", 0x80000001, 0, kEcx, 6}, {"prfchw", 0x80000001, 0, kEcx, 8}, {"xop", 0x80000001, 0, kEcx, 11, kAvx},
    {"lwp", 0x80000001, 0, kEcx, 15}, {"fma4", 0x80000001, 0, kEcx, 16, kAvx}, {"tbm", 0x80000001, 0, kEcx, 21},
    {"mwaitx", 0x80000001, 0, kEcx, 29}, {"64bit", 0x80000001, 0, kEdx, 29}, {"clzero", 0x80000008, 0, kEbx, 0},
    {"rdpru", 0x80000008, 0, kEbx, 4}, {"wbnoinvd", 0x80000008, 0, kEbx, 9},
};

std::array<uint32_t, 4> Registers(uint32_t leaf, uint32_t subleaf) {
  std::array<uint32_t, 4> found{};
  // Returns nothing if the processor has no such leaf.
  if (__get_cpuid_count(leaf, subleaf, &found[kEax], &found[kEbx], &found[kEcx], &found[kEdx]) == 0) return {};
  return found;
}

uint64_t SavedState() {
  if (!(Registers(1, 0)[kEcx] >> 27 & 1)) return 0;  // XGETBV is not available
  uint32_t low = 0, high = 0;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return static_cast<uint64_t>(high) << 32 | low;
}

bool IsOfTiles(std::string_view name) { return name.starts_with("amx-"); }

// Asks the system to save the registers of AMX, which Linux does only for processes that ask.
bool MayUseTiles() {
#if defined(__linux__)
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  static const bool granted = syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  return granted;
#else
  return true;
#endif
}

bool Has(std::string_view name) {
  for (const Feature& feature : kFeatures) {
    if (feature.name != name) continue;
    const bool there = Registers(feature.leaf, feature.subleaf)[feature.where] >> feature.bit & 1;
    return there && (SavedState() & feature.state) == feature.state && (!IsOfTiles(name) || MayUseTiles());
  }
  return false;
}

#elif defined(__aarch64__) && defined(__linux__)

bool IsOfTiles(std::string_view) { return false; }

// The bits by which Linux says that a feature is there, and in which of its two words.
struct Feature {
  std::string_view name;
  unsigned long word;
  unsigned long bits;
};

constexpr Feature kFeatures[] = {
    {"fp-armv8", AT_HWCAP, HWCAP_FP}, {"neon", AT_HWCAP, HWCAP_ASIMD}, {"aes", AT_HWCAP, HWCAP_AES | HWCAP_PMULL},
    {"sha2", AT_HWCAP, HWCAP_SHA1 | HWCAP_SHA2}, {"crc", AT_HWCAP, HWCAP_CRC32}, {"lse", AT_HWCAP, HWCAP_ATOMICS},
    {"fullfp16", AT_HWCAP, HWCAP_FPHP | HWCAP_ASIMDHP}, {"rdm", AT_HWCAP, HWCAP_ASIMDRDM}, {"jsconv", AT_HWCAP, HWCAP_JSCVT},
    {"complxnum", AT_HWCAP, HWCAP_FCMA}, {"rcpc", AT_HWCAP, HWCAP_LRCPC}, {"rcpc-immo", AT_HWCAP, HWCAP_ILRCPC},
    {"ccpp", AT_HWCAP, HWCAP_DCPOP}, {"sha3", AT_HWCAP, HWCAP_SHA3 | HWCAP_SHA512}, {"sm4", AT_HWCAP, HWCAP_SM3 | HWCAP_SM4},
    {"dotprod", AT_HWCAP, HWCAP_ASIMDDP}, {"sve", AT_HWCAP, HWCAP_SVE}, {"fp16fml", AT_HWCAP, HWCAP_ASIMDFHM},
    {"dit", AT_HWCAP, HWCAP_DIT}, {"lse2", AT_HWCAP, HWCAP_USCAT}, {"flagm", AT_HWCAP, HWCAP_FLAGM}, {"ssbs", AT_HWCAP, HWCAP_SSBS},
    {"sb", AT_HWCAP, HWCAP_SB}, {"pauth", AT_HWCAP, HWCAP_PACA | HWCAP_PACG}, {"ccdp", AT_HWCAP2, HWCAP2_DCPODP},
    {"sve2", AT_HWCAP2, HWCAP2_SVE2}, {"sve-aes", AT_HWCAP2, HWCAP2_SVEAES}, {"sve-bitperm", AT_HWCAP2, HWCAP2_SVEBITPERM},
    {"sve-sha3", AT_HWCAP2, HWCAP2_SVESHA3}, {"sve-sm4", AT_HWCAP2, HWCAP2_SVESM4}, {"altnzcv", AT_HWCAP2, HWCAP2_FLAGM2},
    {"fptoint", AT_HWCAP2, HWCAP2_FRINT}, {"i8mm", AT_HWCAP2, HWCAP2_I8MM}, {"bf16", AT_HWCAP2, HWCAP2_BF16},
    {"rand", AT_HWCAP2, HWCAP2_RNG}, {"bti", AT_HWCAP2, HWCAP2_BTI}, {"mte", AT_HWCAP2, HWCAP2_MTE}, {"wfxt", AT_HWCAP2, HWCAP2_WFXT},
};

bool Has(std::string_view name) {
  for (const Feature& feature : kFeatures) {
    if (feature.name == name) return (getauxval(feature.word) & feature.bits) == feature.bits;
  }
  return false;
}

#else

bool IsOfTiles(std::string_view) { return false; }

bool Has(std::string_view) { return false; }

#endif

}  // namespace

std::string LackingFeatures(std::string_view features) {
  std::string lacking;
  bool tiles = false;
  while (!features.empty()) {
    const size_t end = features.find(',');
    const std::string_view feature = features.substr(0, end);
    features = end == std::string_view::npos ? std::string_view() : features.substr(end + 1);
    if (feature.empty() || feature[0] != '+' || Has(feature.substr(1))) continue;
    if (!lacking.empty()) lacking += ", ";
    lacking += feature.substr(1);
    tiles = tiles || IsOfTiles(feature.substr(1));
  }
  if (tiles) lacking += " (or the system does not permit amx)";
  return lacking;
}

}  // namespace trivium
