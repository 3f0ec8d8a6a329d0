#include "data/readers/token_dataset.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "runtime/error.h"
#include "runtime/hashes.h"

namespace tutti {
namespace {

constexpr int64_t kSamplesInDigest = 16;
constexpr int64_t kByteValues = 256;

template <class Item>
void widen_items(const std::byte* from, int64_t count, int64_t* to) {
  const auto* items = reinterpret_cast<const Item*>(from);
  std::copy(items, items + count, to);
}

// A loop that the compiler vectorizes: opening a file checks all its tokens.
int64_t largest(std::span<const uint16_t> tokens) {
  uint16_t most = 0;
  for (const uint16_t token : tokens) most = token > most ? token : most;
  return most;
}

}  // namespace

TokenDataset::TokenDataset(const Options& options) : options_(options), file_(options.path) {
  const auto bytes = static_cast<int64_t>(file_.bytes().size());
  if (bytes % item_bytes() != 0) {
    throw UserError({options.path},
                    "" + std::to_string(bytes) + " bytes are not a whole number of uint16 tokens");
  }
  const int64_t all = bytes / item_bytes();
  const auto training = static_cast<int64_t>(static_cast<double>(all) * (1 - options.eval_fraction));
  first_ = options.split == Split::kEval ? training : 0;
  tokens_ = (options.split == Split::kTrain ? training : all) - first_;
  size_ = std::max<int64_t>(0, (tokens_ - 1) / options.sequence_length);
  if (size_ == 0) {
    throw UserError({options.path}, "has " + std::to_string(tokens_) + " tokens, but a sample needs " +
                                        std::to_string(options.sequence_length + 1));
  }
  if (tokens_ <= kMaxCheckedTokens) scan();
  find_classes();
}

void TokenDataset::find_classes() {
  classes_ = options_.format == Format::kBytes ? kByteValues : options_.vocab_size;
  if (classes_ == 0 && tokens_ <= kMaxCheckedTokens) classes_ = largest(uint16_tokens()) + 1;
}

SampleSpec TokenDataset::spec() const {
  const Shape shape = {options_.sequence_length};
  return {{{"input", shape}, {"target", shape}}, classes_, {{"input", at::kLong}, {"target", at::kLong}}};
}

void TokenDataset::widen(int64_t first, int64_t count, int64_t* to) const {
  const std::byte* from = item(first_ + first);
  options_.format == Format::kBytes ? widen_items<uint8_t>(from, count, to)
                                    : widen_items<uint16_t>(from, count, to);
}

std::span<const uint16_t> TokenDataset::uint16_tokens() const {
  return {reinterpret_cast<const uint16_t*>(item(first_)), static_cast<size_t>(tokens_)};
}

Batch TokenDataset::get(std::span<const int64_t> indices, const Epoch&) const {
  const int64_t length = options_.sequence_length;
  const Shape shape = {static_cast<int64_t>(indices.size()), length};
  const at::Tensor input = at::empty(shape, at::kLong), target = at::empty(shape, at::kLong);
  auto* inputs = input.mutable_data_ptr<int64_t>();
  auto* targets = target.mutable_data_ptr<int64_t>();
  for (const int64_t index : indices) {
    TUTTI_ASSERT(index >= 0 && index < size_, options_.path + ": sample " + std::to_string(index));
    widen(index * length, length, inputs);
    widen(index * length + 1, length, targets);
    inputs += length;
    targets += length;
  }
  return TensorTree::Children{{"input", input}, {"target", target}};
}

void TokenDataset::scan() const {
  if (options_.format == Format::kBytes || options_.vocab_size == 0) return;
  const auto tokens = uint16_tokens();
  if (largest(tokens) < options_.vocab_size) return;
  const auto bad = std::find_if(tokens.begin(), tokens.end(),
                                [&](uint16_t token) { return token >= options_.vocab_size; });
  throw UserError({options_.path}, "token " + std::to_string(first_ + (bad - tokens.begin())) + " is " +
                                       std::to_string(*bad) + ", which is not in [0, " +
                                       std::to_string(options_.vocab_size) + ")");
}

uint64_t TokenDataset::digest() const {
  uint64_t digest =
      XXH3_64bits_withSeed(&tokens_, sizeof tokens_, static_cast<uint64_t>(options_.sequence_length));
  for (int64_t i = 0; i < kSamplesInDigest; ++i) {
    const int64_t sample = i * (size_ - 1) / (kSamplesInDigest - 1);
    const auto bytes = static_cast<size_t>(options_.sequence_length * item_bytes());
    digest = XXH3_64bits_withSeed(item(first_ + sample * options_.sequence_length), bytes, digest);
  }
  return digest;
}

}  // namespace tutti
