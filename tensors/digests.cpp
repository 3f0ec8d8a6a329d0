#include "tensors/digests.h"

#include <ATen/ops/contiguous.h>

#include <algorithm>
#include <span>

#include "runtime/hashes.h"

namespace tutti {
namespace {

struct Slice {
  const std::byte* data = nullptr;
  int64_t bytes = 0;
};

// Bytes of a slice.
struct ByteRange {
  int64_t begin = 0;
  int64_t end = 0;
};

// The step's window of slices one behind the other: of each slice, what is in it.
template <class Slices, class BytesOf>
std::vector<ByteRange> window_of(const Slices& slices, const BytesOf& bytes_of, int64_t step,
                                 int64_t window) {
  int64_t total = 0, at = 0;
  for (const auto& slice : slices) total += bytes_of(slice);
  const int64_t windows = std::max<int64_t>(1, (total + window - 1) / window);
  const int64_t first = step % windows * window, last = first + window;
  std::vector<ByteRange> ranges;
  for (const auto& slice : slices) {
    const int64_t bytes = bytes_of(slice), begin = std::max(first - at, int64_t{0});
    ranges.push_back({begin, std::max(begin, std::min(last - at, bytes))});
    at += bytes;
  }
  return ranges;
}

// A part outside of the window gets 0.
uint64_t hash_window(std::span<const Slice> slices, int64_t step, int64_t window,
                     std::vector<uint16_t>& parts) {
  const auto ranges = window_of(
      slices, [](const Slice& slice) { return slice.bytes; }, step, window);
  parts.assign(slices.size(), 0);
  uint64_t whole = 0;
  for (std::size_t p = 0; p < slices.size(); ++p) {
    const auto [begin, end] = ranges[p];
    if (begin == end) continue;
    const uint64_t hash = XXH3_64bits(slices[p].data + begin, static_cast<std::size_t>(end - begin));
    parts[p] = static_cast<uint16_t>(hash);
    whole = XXH3_64bits_withSeed(&hash, sizeof hash, whole + p);
  }
  return whole;
}

// Bytes of a flat tensor, from the first to the last that are in the step's window of its parts.
ByteRange window_of_flat(const std::vector<DigestPart>& parts, int64_t step) {
  const auto bytes_of = [](const DigestPart& part) { return part.end - part.begin; };
  const auto ranges = window_of(parts, bytes_of, step, WindowedDigest::kWindow);
  ByteRange found;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    if (ranges[p].begin == ranges[p].end) continue;
    if (found.end == 0) found.begin = parts[p].begin + ranges[p].begin;
    found.end = parts[p].begin + ranges[p].end;
  }
  return found;
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
  if (flat.is_cpu()) return record_bytes(step, static_cast<const std::byte*>(flat.const_data_ptr()), 0);
  const Device device{flat.device()};
  const ByteRange window = window_of_flat(parts_, step);
  const int64_t bytes = window.end - window.begin;
  if (!staging_.defined() || staging_.numel() < bytes) staging_ = staging_memory({bytes}, at::kByte, device);
  staging_.narrow(0, 0, bytes)
      .copy_(flat.view(at::kByte).narrow(0, window.begin, bytes), /*non_blocking=*/true);
  copy_ = {step, window.begin, StreamOrder::record(device)};
}

void WindowedDigest::finish() {
  if (!copy_) return;
  copy_->done.synchronize();
  record_bytes(copy_->step, static_cast<const std::byte*>(staging_.const_data_ptr()), copy_->begin);
  copy_.reset();
}

// `bytes`: of the tensor, from byte `begin` on.
void WindowedDigest::record_bytes(int64_t step, const std::byte* bytes, int64_t begin) {
  std::vector<Slice> slices;
  slices.reserve(parts_.size());
  for (const auto& part : parts_) slices.push_back({bytes + (part.begin - begin), part.end - part.begin});
  const uint64_t value = hash_window(slices, step, kWindow, hashes_);
  recorder_.digest({key_, step, value, hashes_});
}

TensorsDigest::TensorsDigest(std::string key, Recorder& recorder, int64_t window)
    : key_(std::move(key)), window_(window), recorder_(recorder) {}

void TensorsDigest::record(int64_t step, const Named& tensors) {
  std::vector<std::string> names;
  std::vector<at::Tensor> dense;
  std::vector<Slice> slices;
  for (const auto& [name, tensor] : tensors) {
    names.push_back(name);
    dense.push_back((tensor.is_non_overlapping_and_dense() ? tensor : tensor.contiguous()).cpu());
    slices.push_back({static_cast<const std::byte*>(dense.back().const_data_ptr()),
                      static_cast<int64_t>(dense.back().nbytes())});
  }
  if (names != names_) recorder_.name_parts(key_, names_ = std::move(names));
  std::vector<uint16_t> hashes;
  const uint64_t value = hash_window(slices, step, window_, hashes);
  recorder_.digest({key_, step, value, hashes});
}

}  // namespace tutti
