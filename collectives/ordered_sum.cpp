#include "collectives/ordered_sum.h"

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

#include "runtime/error.h"
#include "tensors/finite.h"

// All clones add the same pairs, so the bits do not depend on the vector instructions.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define TUTTI_VECTORS __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define TUTTI_VECTORS
#endif

namespace tutti {
namespace {

// Appends the subtrees of `node`; merges the two halves if both are complete subtrees.
void collect(RankRange node, const std::function<bool(int)>& member, std::vector<RankRange>& out) {
  if (node.count() == 1) {
    if (member(node.begin)) out.push_back(node);
    return;
  }
  const std::size_t before = out.size();
  const int middle = split_point(node);
  collect({node.begin, middle}, member, out);
  collect({middle, node.end}, member, out);
  const bool halves = out.size() == before + 2 && out[before] == RankRange{node.begin, middle} &&
                      out[before + 1] == RankRange{middle, node.end};
  if (halves) {
    out.resize(before);
    out.push_back(node);
  }
}

// Small enough that a block of each partial sum stays in the L1 cache.
constexpr int64_t kBlockBytes = 8 << 10;

// `out` may be `a` or `b`.
TUTTI_VECTORS void add(const float* a, const float* b, float* out, int64_t count) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) out[i] = a[i] + b[i];
}

TUTTI_VECTORS void add(const double* a, const double* b, double* out, int64_t count) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) out[i] = a[i] + b[i];
}

TUTTI_VECTORS void add(const uint32_t* a, const uint32_t* b, uint32_t* out, int64_t count) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) out[i] = a[i] + b[i];
}

TUTTI_VECTORS void add(const uint64_t* a, const uint64_t* b, uint64_t* out, int64_t count) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) out[i] = a[i] + b[i];
}

TUTTI_VECTORS void add(const c10::BFloat16* a, const c10::BFloat16* b, c10::BFloat16* out, int64_t count) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t wide_a = static_cast<uint32_t>(a[i].x) << 16;
    const uint32_t wide_b = static_cast<uint32_t>(b[i].x) << 16;
    const float sum = __builtin_bit_cast(float, wide_a) + __builtin_bit_cast(float, wide_b);
    const uint32_t bits = __builtin_bit_cast(uint32_t, sum);
    const uint32_t rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16;  // to nearest, ties to even
    out[i].x = sum == sum ? static_cast<uint16_t>(rounded) : uint16_t{0x7FC0};
  }
}

void add(const c10::Half* a, const c10::Half* b, c10::Half* out, int64_t count) {
  for (int64_t i = 0; i < count; ++i) out[i] = static_cast<float>(a[i]) + static_cast<float>(b[i]);
}

// Computes the sum one block of elements at a time.
template <class T>
class BlockSum {
 public:
  static constexpr int64_t kElements = kBlockBytes / sizeof(T);

  explicit BlockSum(std::span<const Summand> summands) : summands_(summands) {}

  // Writes elements [first, first + count) of the sum to out[first...].
  void run(int64_t first, int64_t count, T* out) {
    first_ = first;
    count_ = count;
    next_ = 0;
    const RankRange root{summands_.front().ranks.begin, summands_.back().ranks.end};
    const T* sum = node(root, out + first);
    TUTTI_ASSERT(next_ == summands_.size(), "the summands do not tile a subtree");
    if (sum != out + first) std::memcpy(out + first, sum, count * sizeof(T));
  }

 private:
  // Returns the node's elements: the summand's memory if the node is a summand, else `target` with the sum of
  // the halves.
  const T* node(RankRange range, T* target) {
    const Summand& summand = summands_[next_];
    if (summand.ranks == range) {
      ++next_;
      return static_cast<const T*>(summand.data) + first_;
    }
    TUTTI_ASSERT(range.count() >= 2, "the summands do not tile a subtree");
    return inner(range, target);
  }

  // Writes `target` last, since it may be the memory of a summand.
  const T* inner(RankRange range, T* target) {
    alignas(64) std::byte left_block[kBlockBytes];
    alignas(64) std::byte right_block[kBlockBytes];
    const int middle = split_point(range);
    const T* left = node({range.begin, middle}, reinterpret_cast<T*>(left_block));
    const T* right = node({middle, range.end}, reinterpret_cast<T*>(right_block));
    add(left, right, target, count_);
    return target;
  }

  std::span<const Summand> summands_;
  std::size_t next_ = 0;
  int64_t first_ = 0;
  int64_t count_ = 0;
};

template <class T>
bool sum_blocks(std::span<const Summand> summands, std::span<void* const> outputs, int64_t count) {
  constexpr c10::ScalarType kType = c10::CppTypeToScalarType<T>::value;
  BlockSum<T> sum(summands);
  bool finite = true;
  T* first_output = static_cast<T*>(outputs.front());
  for (int64_t at = 0; at < count; at += BlockSum<T>::kElements) {
    const int64_t n = std::min(count - at, BlockSum<T>::kElements);
    sum.run(at, n, first_output);
    finite = finite && all_finite(kType, first_output + at, n);
    for (void* output : outputs.subspan(1)) {
      if (output != first_output) std::memcpy(static_cast<T*>(output) + at, first_output + at, n * sizeof(T));
    }
  }
  return finite;
}

}  // namespace

int split_point(RankRange range) {
  TUTTI_ASSERT(range.count() >= 2, "one rank cannot be split");
  return range.begin + static_cast<int>(std::bit_floor(static_cast<unsigned>(range.count() - 1)));
}

std::vector<RankRange> subtrees_within(RankRange tree, const std::function<bool(int)>& member) {
  std::vector<RankRange> out;
  if (tree.count() > 0) collect(tree, member, out);
  return out;
}

bool can_sum(c10::ScalarType dtype) {
  using c10::ScalarType;
  return dtype == ScalarType::Float || dtype == ScalarType::Double || dtype == ScalarType::BFloat16 ||
         dtype == ScalarType::Half || dtype == ScalarType::Int || dtype == ScalarType::Long;
}

bool ordered_sum(c10::ScalarType dtype, std::span<const Summand> summands, std::span<void* const> outputs,
                 int64_t count) {
  TUTTI_ASSERT(!summands.empty() && !outputs.empty(), "a sum without inputs or outputs");
  if (count == 0) return true;
  switch (dtype) {
    case c10::ScalarType::Float:
      return sum_blocks<float>(summands, outputs, count);
    case c10::ScalarType::Double:
      return sum_blocks<double>(summands, outputs, count);
    case c10::ScalarType::BFloat16:
      return sum_blocks<c10::BFloat16>(summands, outputs, count);
    case c10::ScalarType::Half:
      return sum_blocks<c10::Half>(summands, outputs, count);
    case c10::ScalarType::Int:
      return sum_blocks<uint32_t>(summands, outputs, count);
    case c10::ScalarType::Long:
      return sum_blocks<uint64_t>(summands, outputs, count);
    default:
      TUTTI_ASSERT(false, std::string("no sums of ") + c10::toString(dtype));
  }
}

}  // namespace tutti
