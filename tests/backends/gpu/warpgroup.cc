// The matrix instructions that four warps share, and the memory that they read: they see it through a view of their own,
// in which writes of a thread appear when it publishes them, and are garbage before. An instruction may read at any time
// between its issue and the end of the wait for it, so that what it reads must be the same all the time; its sums exist
// only after that.
#include <algorithm>
#include <cstring>

#include "block.h"

namespace simulator {
namespace {

constexpr size_t kWindow = 227 << 10;
constexpr unsigned kGroup = 128, kBytes = 32, kRows = 64;
constexpr unsigned kRegisters = 1 << 16;  // of a multiprocessor, which has one block that exchanges them
constexpr uint32_t kPending = 0x7fa00000, kGarbage = 0x7fc0a5a5;
constexpr char kUntouched = 0x5a;

struct Product {
  int32_t kind;
  uint64_t lhs, rhs;           // their descriptions
  std::vector<uint8_t> words;  // or the warp's rows of the left one, which were in registers
  bool ordered;                // whether the sums were in their registers
  int64_t previous;            // the product whose sums it goes on with; -1: `sums`
  std::vector<uint8_t> seen;   // what it reads, when it was issued
  std::vector<uint32_t> sums;  // of all lanes
  bool done;

  unsigned columns() const { return kind & 0xfff; }
  int32_t type() const { return kind >> 12 & 0xf; }
  bool across(unsigned side) const { return kind >> (16 + side) & 1; }
  bool held() const { return kind >> 18 & 1; }
  unsigned size() const { return type() < 2 ? 2 : type() == 2 ? 4 : 1; }
};

struct Warp {
  std::vector<Product> products;
  std::deque<std::vector<size_t>> groups;  // of products that nobody has waited for; the last group is open
  bool ordered;                            // whether nothing has touched the registers of sums
  unsigned registers;                      // of each thread, if they have been exchanged; else 0
};

struct Issued {
  int32_t kind;
  uint64_t lhs, rhs;
  bool operator==(const Issued &) const = default;
};

Warp warps[kMaxThreads / kWarp];
std::vector<Issued> issued[kMaxThreads / kGroup];  // by each four warps
std::vector<char> view(kWindow);

void fail(const char *what) {
  if (block.wrong.empty()) block.wrong = what;
}

// The byte of the window at an address of 18 bits, after the permutation by 128 bytes.
const char *at(uint64_t address) {
  address ^= (address >> 7 & 7) << 4;
  size_t offset = (address - reinterpret_cast<uint64_t>(block.window)) & 0x3ffff;
  if (offset < block.granted) return view.data() + offset;
  fail("a matrix is not in the memory that the launch grants");
  return view.data();
}

// Appends `lines` lines of 32 bytes of depth.
void read(std::vector<uint8_t> &bytes, uint64_t description, const Product &product, bool across, unsigned lines,
          unsigned first) {
  uint64_t start = (description & 0x3fff) << 4, lead = (description >> 16 & 0x3fff) << 4;
  uint64_t stride = (description >> 32 & 0x3fff) << 4;
  if (description >> 62 != 1 || description & 0x3fffc000c000c000) fail("a matrix has an unknown description");
  if (across && product.size() != 2) fail("only matrices of 16 bits are transposed");
  for (unsigned line = first; line < first + lines; line++) {
    for (unsigned place = 0; place < kBytes / product.size(); place++) {
      uint64_t address = across ? start + line / 64 * lead + line % 64 * 2 + place / 8 * stride + place % 8 * 128
                                : start + line / 8 * stride + line % 8 * 128 + place * product.size();
      const char *source = at(address);
      bytes.insert(bytes.end(), source, source + product.size());
    }
  }
}

// What a warp's part of a product reads: 16 rows, then all columns.
std::vector<uint8_t> operands(const Product &product, unsigned warp) {
  std::vector<uint8_t> bytes = product.words;
  if (!product.held()) read(bytes, product.lhs, product, product.across(0), kRows / 4, warp % 4 * kRows / 4);
  read(bytes, product.rhs, product, product.across(1), product.columns(), 0);
  return bytes;
}

double element_at(const Product &product, const uint8_t *line, unsigned place) {
  unsigned each = 4 / product.size();
  uint32_t word;
  memcpy(&word, line + place / each * 4, 4);
  return element(product.type(), word, place % each);
}

// Lane `lane` of a warp has two neighbours of each 8 columns, of one row, and of the eighth row after that.
void finish(Product &product, Warp &own, unsigned warp) {
  if (product.done) return;
  product.done = true;
  if (product.previous >= 0) product.sums = own.products[product.previous].sums;
  unsigned count = product.columns() / 2;
  if (!product.ordered || operands(product, warp) != product.seen || product.sums.size() != kWarp * count) {
    product.sums.assign(kWarp * count, kGarbage);
    return;
  }
  const uint8_t *rows = product.seen.data(), *columns = rows + kRows / 4 * kBytes;
  for (unsigned lane = 0; lane < kWarp; lane++) {
    for (unsigned number = 0; number < count; number++) {
      const uint8_t *row = rows + (lane / 4 + number / 2 % 2 * 8) * kBytes;
      const uint8_t *column = columns + (number / 4 * 8 + lane % 4 * 2 + number % 2) * kBytes;
      double total = 0;
      for (unsigned place = 0; place < kBytes / product.size(); place++) {
        total += element_at(product, row, place) * element_at(product, column, place);
      }
      uint32_t &word = product.sums[lane * count + number];
      if (product.type() < 3) {
        float sum;
        memcpy(&sum, &word, 4);
        sum = static_cast<float>(sum + total);
        memcpy(&word, &sum, 4);
      } else {
        word += static_cast<uint32_t>(static_cast<int64_t>(total));
      }
    }
  }
}

// The product of a warp whose sums a word stands for; null if it is a number.
Product *pending(Warp &own, uint64_t word) {
  uint32_t bits = static_cast<uint32_t>(word), number = bits & 0xfffff;
  return (bits & 0xfff00000) == kPending && number < own.products.size() ? &own.products[number] : nullptr;
}

unsigned registers_at_launch() {
  unsigned groups = (block.count + kGroup - 1) / kGroup;
  return kRegisters / (groups * kGroup) / 8 * 8;
}

// `kind`: the number of registers, and whether they are more than before.
void exchange_registers(unsigned begin, unsigned) {
  Warp &own = warps[begin / kWarp];
  unsigned kind = block.threads[begin].kind, count = kind & 0xffff;
  bool more = kind >> 16;
  if (count % 8 || count < 24 || count > 256) fail("a thread cannot have that many registers");
  if (own.registers || (count > registers_at_launch()) != more) fail("registers are taken where they are left, or twice");
  own.registers = count;
}

// What is wrong with the registers at the end: four warps exchange them together, and as many are taken as are left.
std::string unbalanced() {
  unsigned taken = 0, count = 0;
  for (unsigned warp = 0; warp < block.count / kWarp; warp++) {
    if (warps[warp].registers != warps[warp / 4 * 4].registers) return "four warps do not exchange registers together";
    taken += (warps[warp].registers ? warps[warp].registers : registers_at_launch()) * kWarp;
    count += warps[warp].registers != 0;
  }
  if (count && count != block.count / kWarp) return "registers are left that nobody takes, or the other way round";
  return count && taken > kRegisters ? "more registers are taken than there are" : "";
}

void begin_products(unsigned begin, unsigned end) {
  warps[begin / kWarp].ordered = true;
  for (unsigned thread = begin; thread < end; thread++) {
    Thread &taker = block.threads[thread];
    std::copy(taker.given, taker.given + taker.kind, taker.taken);
  }
}

// A warp's 16 rows of a left factor, of which each lane has four words: of two rows, and of both halves of the depth.
std::vector<uint8_t> rows_in_registers(unsigned begin, unsigned end) {
  std::vector<uint8_t> bytes(kRows / 4 * kBytes);
  for (unsigned lane = 0; lane < end - begin; lane++) {
    for (unsigned number = 0; number < 4; number++) {
      auto word = static_cast<uint32_t>(block.threads[begin + lane].given[number]);
      memcpy(&bytes[(lane / 4 + number % 2 * 8) * kBytes + number / 2 * 16 + lane % 4 * 4], &word, 4);
    }
  }
  return bytes;
}

void multiply(unsigned begin, unsigned end) {
  unsigned warp = begin / kWarp;
  Warp &own = warps[warp];
  const Thread &first = block.threads[begin];
  bool held = first.kind >> 18 & 1;
  size_t factors = held ? 5 : 2;
  uint64_t lhs = held ? 0 : first.given[0];
  Product made{first.kind, lhs, first.given[factors - 1], {}, own.ordered, -1, {}, {}, false};
  unsigned count = made.columns() / 2;
  std::vector<Issued> &others = issued[begin / kGroup];
  Issued one{made.kind, made.lhs, made.rhs};
  if (end - begin != kWarp || begin / kGroup * kGroup + kGroup > block.count) fail("a group of four warps is not whole");
  if (own.products.size() == others.size()) others.push_back(one);
  if (!(others[own.products.size()] == one)) fail("four warps do not multiply the same matrices");
  Product *before = pending(own, first.given[factors]);
  if (before) {
    made.previous = before - own.products.data();
    made.ordered = before->kind == made.kind;
  }
  for (unsigned thread = begin; thread < end; thread++) {
    Thread &lane = block.threads[thread];
    bool same = lane.given[factors - 1] == made.rhs && (held || lane.given[0] == made.lhs);
    if (!same) fail("a warp's threads multiply different matrices");
    for (unsigned number = 0; number < count; number++) {
      if (pending(own, lane.given[factors + number]) != before) fail("sums of several products are mixed");
      made.sums.push_back(static_cast<uint32_t>(lane.given[factors + number]));
      lane.taken[number] = kPending | static_cast<uint32_t>(own.products.size());
    }
  }
  if (held) made.words = rows_in_registers(begin, end);
  made.seen = operands(made, warp);
  own.groups.back().push_back(own.products.size());
  own.products.push_back(std::move(made));
}

void commit_products(unsigned begin, unsigned) { warps[begin / kWarp].groups.emplace_back(); }

// `kind`: the number of groups that may be left, and of words from the ninth bit on.
void end_products(unsigned begin, unsigned end) {
  unsigned warp = begin / kWarp;
  Warp &own = warps[warp];
  size_t left = block.threads[begin].kind & 0xff, count = block.threads[begin].kind >> 8;
  for (; own.groups.size() > left + 1; own.groups.pop_front()) {
    for (size_t number : own.groups.front()) finish(own.products[number], own, warp);
  }
  own.ordered = false;
  for (unsigned thread = begin; thread < end; thread++) {
    Thread &lane = block.threads[thread];
    // Sums of one product follow those of another.
    Product *before = nullptr;
    for (size_t number = 0, first = 0; number < count; number++) {
      Product *product = pending(own, lane.given[number]);
      if (product != before) first = number;
      before = product;
      lane.taken[number] = static_cast<uint32_t>(lane.given[number]);
      if (!product || !product->done) continue;
      size_t each = product->columns() / 2;
      if (number - first >= each) fail("there are more sums than those of a product");
      lane.taken[number] = product->sums[(thread - begin) * each + number - first];
    }
  }
}

}  // namespace

bool in_window(const void *begin, size_t nbytes) {
  auto offset = static_cast<size_t>(static_cast<const char *>(begin) - block.window);
  return block.window && offset < block.granted && offset + nbytes <= block.granted;
}

bool is_published(const void *begin, const void *expected, size_t nbytes) {
  return in_window(begin, nbytes) && !memcmp(view.data() + (static_cast<const char *>(begin) - block.window), expected, nbytes);
}

bool has_unpublished(const void *begin, size_t nbytes) {
  auto offset = static_cast<size_t>(static_cast<const char *>(begin) - block.window);
  for (unsigned thread = 0; thread < block.count; thread++) {
    for (const Range &range : block.threads[thread].unpublished) {
      if (range.begin < offset + nbytes && offset < range.begin + range.nbytes) return true;
    }
  }
  return false;
}

void async_wrote(const void *begin, size_t nbytes) {
  memcpy(view.data() + (static_cast<const char *>(begin) - block.window), begin, nbytes);
}

void begin_block() {
  block.window = nullptr;
  for (Warp &warp : warps) warp = {{}, {{}}, false, 0};
  for (auto &group : issued) group.clear();
}

std::string end_block() {
  for (unsigned warp = 0; warp < block.count / kWarp; warp++) {
    if (warps[warp].products.size() != issued[warp / 4].size()) return "four warps do not multiply the same matrices";
  }
  if (std::string wrong = unbalanced(); !wrong.empty()) return wrong;
  if (!block.window) return "";
  const char *rest = block.window + block.granted, *end = block.window + kWindow;
  return std::all_of(rest, end, [](char byte) { return byte == kUntouched; }) ? "" : "memory beyond that of the block is written";
}

}  // namespace simulator

using simulator::block;

extern "C" {
// Tells where the memory is that a launch grants. What it holds is garbage, and other garbage for tensor cores.
void sim_window(char *window) {
  if (block.window) return;
  block.window = window;
  memset(window, 0xff, block.granted);
  memset(window + block.granted, simulator::kUntouched, simulator::kWindow - block.granted);
  std::fill(simulator::view.begin(), simulator::view.end(), 0x7f);
}
// Tells what this thread is about to write to shared memory: nobody knows what tensor cores find there.
void sim_writes(void *target, int64_t nbytes) {
  auto offset = static_cast<size_t>(static_cast<char *>(target) - block.window);
  if (!block.window || offset >= simulator::kWindow) return;
  for (int64_t place = 0; place < nbytes; place++) simulator::view[offset + place] += 0x35;
}
// Tells what this thread has written to shared memory.
void sim_wrote(void *target, int64_t nbytes) {
  sim_writes(target, nbytes);
  auto offset = static_cast<size_t>(static_cast<char *>(target) - block.window);
  if (!block.window || offset >= simulator::kWindow) return;
  block.threads[block.current].unpublished.push_back({offset, static_cast<size_t>(nbytes)});
}
void sim_publish(int32_t, const uint64_t *, uint32_t *) {
  auto &ranges = block.threads[block.current].unpublished;
  for (auto [begin, nbytes] : ranges) memcpy(simulator::view.data() + begin, block.window + begin, nbytes);
  ranges.clear();
}
void sim_registers(int32_t kind, const uint64_t *given, uint32_t *) {
  simulator::exchanged(simulator::exchange_registers, kind, given, 0);
}
void sim_begin_products(int32_t kind, const uint64_t *given, uint32_t *taken) {
  const uint32_t *words = simulator::exchanged(simulator::begin_products, kind, given, kind);
  std::copy(words, words + kind, taken);
}
void sim_multiply(int32_t kind, const uint64_t *given, uint32_t *taken) {
  size_t count = (kind & 0xfff) / 2;
  size_t factors = kind >> 18 & 1 ? 5 : 2;
  const uint32_t *words = simulator::exchanged(simulator::multiply, kind, given, factors + count);
  std::copy(words, words + count, taken);
}
void sim_commit_products(int32_t kind, const uint64_t *given, uint32_t *) {
  simulator::exchanged(simulator::commit_products, kind, given, 0);
}
void sim_end_products(int32_t kind, const uint64_t *given, uint32_t *taken) {
  const uint32_t *words = simulator::exchanged(simulator::end_products, kind, given, kind >> 8);
  std::copy(words, words + (kind >> 8), taken);
}
}
