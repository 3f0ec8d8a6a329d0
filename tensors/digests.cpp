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

int64_t total(std::span<const Slice> slices) {
  int64_t bytes = 0;
  for (const Slice& slice : slices) bytes += slice.bytes;
  return bytes;
}

// Hashes the step's window of the concatenated slices; a part outside of the window gets 0.
uint64_t hash_window(std::span<const Slice> slices, int64_t step, int64_t window,
                     std::vector<uint16_t>& parts) {
  const int64_t windows = std::max<int64_t>(1, (total(slices) + window - 1) / window);
  const int64_t first = step % windows * window, last = first + window;
  parts.assign(slices.size(), 0);
  uint64_t whole = 0;
  int64_t at = 0;
  for (std::size_t p = 0; p < slices.size(); ++p) {
    const int64_t begin = std::max(first - at, int64_t{0});
    const int64_t end = std::min(last - at, slices[p].bytes);
    if (begin < end) {
      const uint64_t hash = XXH3_64bits(slices[p].data + begin, static_cast<std::size_t>(end - begin));
      parts[p] = static_cast<uint16_t>(hash);
      whole = XXH3_64bits_withSeed(&hash, sizeof hash, whole + p);
    }
    at += slices[p].bytes;
  }
  return whole;
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
  const at::Tensor host = flat.cpu();
  const auto* data = static_cast<const std::byte*>(host.const_data_ptr());
  std::vector<Slice> slices;
  slices.reserve(parts_.size());
  for (const auto& part : parts_) slices.push_back({data + part.begin, part.end - part.begin});
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
