#include "tensors/digests.h"

#include <ATen/ops/as_strided.h>
#include <ATen/ops/contiguous.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <span>

#include "tensors/kernels/digest_sums.h"
#include "tensors/kernels/operator.h"
#include "tensors/vectors.h"

namespace tutti {
namespace {

// Bytes of a part.
struct ByteRange {
  int64_t begin = 0;
  int64_t end = 0;
};

// The step's window of parts one behind the other: of each part, what is in it.
std::vector<ByteRange> window_of(std::span<const int64_t> sizes, int64_t step, int64_t window) {
  int64_t at = 0;
  const int64_t total = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
  const int64_t windows = std::max<int64_t>(1, (total + window - 1) / window);
  const int64_t first = step % windows * window, last = first + window;
  std::vector<ByteRange> ranges;
  for (const int64_t bytes : sizes) {
    const int64_t begin = std::clamp(first - at, int64_t{0}, bytes);
    ranges.push_back({begin, std::clamp(last - at, begin, bytes)});
    at += bytes;
  }
  return ranges;
}

using DigestWord [[gnu::may_alias, gnu::aligned(1)]] = uint32_t;

// Pairs from `pair` on.
[[gnu::always_inline]] inline void add_pairs(const DigestWord* first, const DigestWord* second, int64_t count,
                                             int64_t pair, DigestSums& sums) {
  uint64_t products = 0;
  uint32_t words = 0;
  DigestKeys keys = digest_keys(pair);
  for (int64_t i = 0; i < count; ++i) {
    products += digest_product(first[i], second[i], keys);
    words += first[i] + second[i];
    keys = {keys.first + kDigestKeySteps.first, keys.second + kDigestKeySteps.second};
  }
  sums.products += products;
  sums.words += words;
}

// Two streams of 2 KiB are too short for the processor to fetch ahead.
[[gnu::always_inline]] inline void fetch_block(const std::byte* block) {
  for (int64_t line = 0; line < kDigestBlock; line += 64) __builtin_prefetch(block + line);
}

TUTTI_VECTORS void add_digest_sums(const std::byte* bytes, int64_t count, DigestSums& sums) {
  int64_t block = 0;
  const int64_t whole = count / kDigestBlock, rest = count % kDigestBlock;
  for (; block < whole; ++block) {
    const auto* words = reinterpret_cast<const DigestWord*>(bytes + block * kDigestBlock);
    if (block + 1 < whole) fetch_block(bytes + (block + 1) * kDigestBlock);
    add_pairs(words, words + kDigestPairs, kDigestPairs, block * kDigestPairs, sums);
  }
  if (rest == 0) return;
  uint32_t words[2 * kDigestPairs];
  const int64_t pairs = (rest + 7) / 8;
  std::fill(words + rest / 4, words + 2 * pairs, 0);
  std::memcpy(words, bytes + whole * kDigestBlock, static_cast<std::size_t>(rest));
  add_pairs(words, words + pairs, pairs, whole * kDigestPairs, sums);
}

// A row of `sums` for each range [begins[i], ends[i]) of the bytes.
at::Tensor& add_digest_sums_on_cpus(at::Tensor& sums, const at::Tensor& bytes, at::IntArrayRef begins,
                                    at::IntArrayRef ends) {
  const auto* data = static_cast<const std::byte*>(bytes.const_data_ptr());
  auto* rows = reinterpret_cast<DigestSums*>(sums.mutable_data_ptr<int64_t>());
  for (std::size_t i = 0; i < begins.size(); ++i)
    add_digest_sums(data + begins[i], ends[i] - begins[i], rows[i]);
  return sums;
}

void add_digest_sums_on_device(at::Tensor sums, const at::Tensor& bytes, at::IntArrayRef begins,
                               at::IntArrayRef ends) {
  static const auto on_devices = device_operator(
      "add_digest_sums_", "(Tensor(a!) sums, Tensor bytes, int[] begins, int[] ends) -> Tensor(a!)",
      add_digest_sums_on_cpus);
  on_devices.call(sums, bytes, begins, ends);
}

at::Tensor zero_sums(std::size_t parts, const at::Device& device) {
  return at::zeros({static_cast<int64_t>(parts), 2}, at::TensorOptions(device).dtype(at::kLong));
}

const DigestSums* rows_of(const at::Tensor& sums) {
  return reinterpret_cast<const DigestSums*>(sums.const_data_ptr<int64_t>());
}

// A part outside of the window gets 0.
uint64_t digest_of_parts(const DigestSums* sums, std::span<const ByteRange> ranges,
                         std::vector<uint16_t>& parts) {
  parts.assign(ranges.size(), 0);
  uint64_t whole = 0;
  for (std::size_t p = 0; p < ranges.size(); ++p) {
    const int64_t bytes = ranges[p].end - ranges[p].begin;
    if (bytes == 0) continue;
    const uint64_t digest = digest_of(sums[p], bytes);
    parts[p] = static_cast<uint16_t>(digest);
    whole = mix_bits(mix_bits(whole + p) ^ digest);
  }
  return whole;
}

// Of each part in the step's window, its bytes in the flat tensor.
std::vector<ByteRange> window_of_flat(const std::vector<DigestPart>& parts, int64_t step) {
  std::vector<int64_t> sizes;
  for (const DigestPart& part : parts) sizes.push_back(part.end - part.begin);
  auto ranges = window_of(sizes, step, WindowedDigest::kWindow);
  for (std::size_t p = 0; p < parts.size(); ++p) {
    ranges[p].begin += parts[p].begin;
    ranges[p].end += parts[p].begin;
  }
  return ranges;
}

// Of tensors that are dense in memory, the bytes of each in the order of its memory. The host waits once if
// there are tensors of a device.
std::vector<DigestSums> sums_of(const std::vector<at::Tensor>& tensors, std::span<const ByteRange> ranges) {
  std::vector<DigestSums> sums(tensors.size());
  at::Tensor on_device;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto& [begin, end] = ranges[i];
    if (tensors[i].is_cpu()) {
      add_digest_sums(static_cast<const std::byte*>(tensors[i].const_data_ptr()) + begin, end - begin,
                      sums[i]);
      continue;
    }
    if (!on_device.defined()) on_device = zero_sums(tensors.size(), tensors[i].device());
    const at::Tensor bytes = tensors[i].detach().as_strided({tensors[i].numel()}, {1}).view(at::kByte);
    add_digest_sums_on_device(on_device.narrow(0, static_cast<int64_t>(i), 1), bytes, begin, end);
  }
  if (!on_device.defined()) return sums;
  const at::Tensor on_host = on_device.cpu();
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (!tensors[i].is_cpu()) sums[i] = rows_of(on_host)[i];
  return sums;
}

template <class Items>
std::vector<std::string> names_of(const Items& items) {
  std::vector<std::string> names;
  for (const auto& item : items) names.push_back(item.name);
  return names;
}

}  // namespace

std::vector<DigestPart> parts_of_chunk(const std::vector<DigestPart>& parts, int64_t bytes, int world,
                                       int rank) {
  const int64_t begin = bytes * rank / world, end = bytes * (rank + 1) / world;
  std::vector<DigestPart> own;
  for (const auto& part : parts) {
    DigestPart cut{part.name, std::max(part.begin, begin), std::min(part.end, end)};
    if (cut.begin < cut.end) own.push_back(std::move(cut));
  }
  return own;
}

WindowedDigest::WindowedDigest(std::string key, std::vector<DigestPart> parts, Recorder& recorder)
    : key_(std::move(key)), parts_(std::move(parts)), recorder_(recorder) {
  recorder_.name_parts(key_, names_of(parts_));
}

void WindowedDigest::record(int64_t step, const at::Tensor& flat) {
  const std::vector<ByteRange> ranges = window_of_flat(parts_, step);
  if (flat.is_cpu()) {
    std::vector<DigestSums> sums(parts_.size());
    const auto* bytes = static_cast<const std::byte*>(flat.const_data_ptr());
    for (std::size_t p = 0; p < ranges.size(); ++p)
      add_digest_sums(bytes + ranges[p].begin, ranges[p].end - ranges[p].begin, sums[p]);
    const uint64_t value = digest_of_parts(sums.data(), ranges, digests_);
    return recorder_.digest({key_, step, value, digests_});
  }
  std::vector<int64_t> begins, ends;
  for (const ByteRange& range : ranges) {
    begins.push_back(range.begin);
    ends.push_back(range.end);
  }
  const Device device{flat.device()};
  const at::Tensor sums = zero_sums(parts_.size(), flat.device());
  add_digest_sums_on_device(sums, flat.view(at::kByte), begins, ends);
  if (!staging_.defined()) staging_ = staging_memory(sums.sizes(), at::kLong, device);
  staging_.copy_(sums, /*non_blocking=*/true);
  copy_ = {step, StreamOrder::record(device)};
}

void WindowedDigest::finish() {
  if (!copy_) return;
  copy_->done.synchronize();
  const uint64_t value = digest_of_parts(rows_of(staging_), window_of_flat(parts_, copy_->step), digests_);
  recorder_.digest({key_, copy_->step, value, digests_});
  copy_.reset();
}

TensorsDigest::TensorsDigest(std::string key, Recorder& recorder, int64_t window)
    : key_(std::move(key)), window_(window), recorder_(recorder) {}

void TensorsDigest::record(int64_t step, const Named& tensors) {
  std::vector<std::string> names;
  std::vector<at::Tensor> dense;
  std::vector<int64_t> sizes;
  for (const auto& [name, tensor] : tensors) {
    names.push_back(name);
    dense.push_back(tensor.is_non_overlapping_and_dense() ? tensor : tensor.contiguous());
    sizes.push_back(static_cast<int64_t>(tensor.nbytes()));
  }
  if (names != names_) recorder_.name_parts(key_, names_ = std::move(names));
  const std::vector<ByteRange> ranges = window_of(sizes, step, window_);
  const std::vector<DigestSums> sums = sums_of(dense, ranges);
  std::vector<uint16_t> digests;
  const uint64_t value = digest_of_parts(sums.data(), ranges, digests);
  recorder_.digest({key_, step, value, digests});
}

}  // namespace tutti
