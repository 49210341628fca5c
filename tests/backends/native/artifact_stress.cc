// Stress tests of artifact readers, and of packing, for builds with sanitizers: descriptions of random numbers, read from memory that ends
// where they end, and operands whose memory ends where the last element does.

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "artifact_reader.h"
#include "packing.h"
#include "pjrt/serialization.h"

extern "C" int trivium_runtime_version();

namespace {

using namespace trivium;

#define EXPECT(condition)                                                        \
  do {                                                                           \
    if (!(condition)) {                                                          \
      std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      std::_Exit(1);                                                             \
    }                                                                            \
  } while (false)

// An artifact of random spans: small ones and huge ones, inside it and outside. The machine is this one, so that reading continues.
std::string RandomArtifact(std::mt19937_64& draws) {
  const std::string triple = "x86_64-unknown-linux-gnu";
  std::string body(64 + draws() % 2000, '\0');
  for (char& byte : body) byte = draws() % 3 ? static_cast<char>(draws() % 4) : static_cast<char>(draws());
  artifact::Header header{};
  std::memcpy(header.magic, artifact::kMagic, sizeof(header.magic));
  header.format = artifact::kFormat;
  header.size = sizeof(header) + triple.size() + 1 + body.size();
  header.runtime = static_cast<uint32_t>(trivium_runtime_version());
  header.arena_bytes = draws() % 2 ? 64 : draws();
  header.arena_alignment = draws() % 4 ? 64 : draws() % 200;
  const auto span = [&]() -> artifact::Span {
    if (draws() % 20 == 0) return {draws(), draws()};
    return {sizeof(header) + draws() % (body.size() + 40), draws() % 3};
  };
  for (artifact::Span* field : {&header.name, &header.producer, &header.cpu, &header.features, &header.inputs, &header.outputs,
                                &header.host_calls, &header.constants, &header.texts, &header.code, &header.data}) {
    *field = draws() % 2 ? artifact::Span{sizeof(header) + triple.size(), 0} : span();
  }
  header.triple = {sizeof(header), triple.size()};
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof(header));
  bytes += triple + '\0' + body;
  const uint32_t checksum = artifact::Checksum(bytes.data() + 16, bytes.size() - 16);
  std::memcpy(bytes.data() + 12, &checksum, sizeof(checksum));
  return bytes;
}

void Load(const std::string& bytes) {
  // Memory of exactly that size, whose end the sanitizer checks.
  const std::unique_ptr<char[]> exact(new char[bytes.size()]);
  std::memcpy(exact.get(), bytes.data(), bytes.size());
  try {
    pjrt::LoadArtifact({exact.get(), bytes.size()});
    EXPECT(false);  // it has no machine code
  } catch (const pjrt::Failure& failure) {
    EXPECT(!failure.error.message.empty());
  }
}

// Packs [column][line] of a matrix, in memory of exactly its size, into panels of four columns.
void CheckPack(int64_t columns, int64_t lines, bool across) {
  const std::unique_ptr<float[]> matrix(new float[columns * lines]);
  for (int64_t i = 0; i < columns * lines; ++i) matrix[i] = static_cast<float>(i + 1);
  const PackingAxis column{columns, across ? 1 : lines}, line{lines, across ? columns : 1};
  const std::vector<int64_t> widths((columns + 3) / 4 + 1, 4);
  const auto panels = static_cast<int64_t>(widths.size());
  const std::unique_ptr<float[]> packed(new float[panels * 4 * lines]);
  const Packing packing{sizeof(float), 0, {nullptr, 0}, {&column, 1}, {&line, 1}, widths.data(), widths.size()};
  EXPECT(Pack(packing, matrix.get(), packed.get()) == 0);
  for (int64_t panel = 0; panel < panels; ++panel) {
    for (int64_t i = 0; i < lines; ++i) {
      for (int64_t j = 0; j < 4; ++j) {
        const int64_t c = panel * 4 + j;
        const float expected = c < columns ? matrix[c * column.stride + i * line.stride] : 0;
        EXPECT(packed[(panel * lines + i) * 4 + j] == expected);
      }
    }
  }
}

}  // namespace

void ArtifactsOfRandomNumbers() {
  EXPECT(artifact::Checksum("123456789", 9) == 0xCBF43926);
  std::mt19937_64 draws(1);
  for (int turn = 0; turn < 3000; ++turn) Load(RandomArtifact(draws));
}

void Packings() {
  std::vector<std::thread> threads;
  for (int number = 0; number < 4; ++number) {
    threads.emplace_back([number] {
      for (int64_t columns = 1; columns < 20; columns += 3) {
        for (const int64_t lines : {1, 5, 16, 17, 40}) CheckPack(columns + number, lines, (columns + number) % 2 == 0);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}
