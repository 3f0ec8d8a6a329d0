#include "data/readers/token_dataset.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>
#include <type_traits>

#include "data/readers/opened.h"
#include "data/transforms/ignore_index.h"
#include "io/tokens/token_type.h"
#include "recipe/wrong_key.h"
#include "runtime/error.h"
#include "runtime/hashes.h"

namespace tutti {
namespace {

constexpr int64_t kSamplesInDigest = 16;
constexpr int64_t kByteValues = 256;

constexpr size_t kFormatBytes = 1 << 20;  // of a file, which show its format
constexpr size_t kFormatTokens = 1 << 17;
constexpr int64_t kMostUint16 = std::numeric_limits<uint16_t>::max();
constexpr uint64_t kNoVocabulary = uint64_t{1} << 31;  // tokens are below

// A loop that the compiler vectorizes: opening a file checks all its tokens. Negative ones are the largest.
template <class Item>
uint64_t largest(std::span<const Item> tokens) {
  std::make_unsigned_t<Item> most = 0;
  for (const Item token : tokens) {
    const auto value = static_cast<std::make_unsigned_t<Item>>(token);
    most = value > most ? value : most;
  }
  return most;
}

}  // namespace

TokenDataset::TokenDataset(const Options& options)
    : options_(options),
      file_(options.texts ? options.texts->file()
                          : std::make_shared<const TokenFile>(options.path, options.format)) {
  const int64_t all = file_->tokens();
  const auto training = static_cast<int64_t>(static_cast<double>(all) * (1 - options.eval_fraction));
  first_ = options.split == Split::kEval ? training : 0;
  tokens_ = (options.split == Split::kTrain ? training : all) - first_;
  size_ = std::max<int64_t>(0, (tokens_ - 1) / options.sequence_length);
  if (size_ == 0) {
    throw UserError({options.path}, "has " + std::to_string(tokens_) + " tokens, but a sample needs " +
                                        std::to_string(options.sequence_length + 1));
  }
  require_format();
  if (tokens_ <= kMaxCheckedTokens) scan();
  find_classes();
}

template <class Function>
auto TokenDataset::on_tokens(Function function) const {
  const auto tokens_of = [this]<class Item>(Item) {
    return std::span<const Item>(reinterpret_cast<const Item*>(item(first_)), static_cast<size_t>(tokens_));
  };
  switch (file_->format()) {
    case Format::kBytes:
      return function(tokens_of(uint8_t{}));
    case Format::kUint16:
      return function(tokens_of(uint16_t{}));
    case Format::kInt32:
      return function(tokens_of(int32_t{}));
    case Format::kUint32:
      return function(tokens_of(uint32_t{}));
    default:
      return function(tokens_of(int64_t{}));
  }
}

void TokenDataset::find_classes() {
  classes_ = file_->format() == Format::kBytes ? kByteValues : options_.vocab_size;
  if (classes_ == 0 && tokens_ <= kMaxCheckedTokens)
    classes_ = on_tokens([](auto tokens) { return static_cast<int64_t>(largest(tokens)) + 1; });
}

SampleSpec TokenDataset::spec() const {
  const Shape shape = {options_.sequence_length};
  return {{{"input", shape}, {"target", shape}}, classes_, {{"input", at::kLong}, {"target", at::kLong}}};
}

Batch TokenDataset::get(std::span<const int64_t> indices, const Epoch&) const {
  const int64_t length = options_.sequence_length;
  const Shape shape = {static_cast<int64_t>(indices.size()), length};
  const at::Tensor input = at::empty(shape, at::kLong), target = at::empty(shape, at::kLong);
  auto* inputs = input.mutable_data_ptr<int64_t>();
  auto* targets = target.mutable_data_ptr<int64_t>();
  on_tokens([&](auto tokens) {
    for (const int64_t index : indices) {
      TUTTI_ASSERT(index >= 0 && index < size_, options_.path + ": sample " + std::to_string(index));
      const auto* from = tokens.data() + index * length;
      inputs = std::copy_n(from, length, inputs);
      targets = std::copy_n(from + 1, length, targets);
    }
  });
  if (options_.texts && options_.texts->counts())
    leave_out_targets(indices, target.mutable_data_ptr<int64_t>());
  return TensorTree::Children{{"input", input}, {"target", target}};
}

void TokenDataset::leave_out_targets(std::span<const int64_t> indices, int64_t* targets) const {
  const int64_t length = options_.sequence_length;
  for (const int64_t index : indices) {
    const uint8_t* counts = options_.texts->counts() + first_ + index * length + 1;
    for (int64_t i = 0; i < length; ++i)
      if (counts[i] == 0) targets[i] = kIgnoredTarget;
    targets += length;
  }
}

void TokenDataset::scan() const {
  if (file_->format() == Format::kBytes || (file_->format() == Format::kUint16 && options_.vocab_size == 0))
    return;
  const uint64_t end = options_.vocab_size > 0 ? static_cast<uint64_t>(options_.vocab_size) : kNoVocabulary;
  on_tokens([&](auto tokens) {
    if (largest(tokens) < end) return;
    const auto bad =
        std::ranges::find_if(tokens, [&](auto token) { return static_cast<uint64_t>(token) >= end; });
    throw UserError({options_.path}, "token " + std::to_string(first_ + (bad - tokens.begin())) + " is " +
                                         std::to_string(*bad) + ", which is not in [0, " +
                                         std::to_string(end) + ")");
  });
}

void TokenDataset::require_format() const {
  if (file_->has_header() || file_->format() == Format::kBytes) return;
  const auto bytes = file_->bytes().first(std::min<size_t>(file_->bytes().size(), kFormatBytes));
  const Format likely = likely_token_type({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
  if (likely == file_->format() || (likely == Format::kInt32 && item_bytes() == sizeof(int32_t))) return;
  const bool wider = likely == Format::kInt64 || file_->format() == Format::kUint16;
  if (!wider && !is_beyond_vocabulary()) return;
  const std::string name = token_type_name(likely);
  throw WrongKey("dtype", {},
                 options_.path + ": the tokens are read as " + token_type_name(file_->format()) +
                     " and look like " + name + "; expected dtype = \"" + name + '"');
}

bool TokenDataset::is_beyond_vocabulary() const {
  const auto end = static_cast<uint64_t>(std::max(options_.vocab_size, kMostUint16 + 1));
  return on_tokens([&](auto tokens) {
    const auto head = tokens.first(std::min<size_t>(tokens.size(), kFormatTokens));
    const auto beyond =
        std::ranges::count_if(head, [&](auto token) { return static_cast<uint64_t>(token) >= end; });
    return 2 * beyond > std::ssize(head);
  });
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

namespace {

DatasetPtr opened_tokens(const Setting& section, const SequenceOptions& sequence,
                         std::optional<TokenFormat> format, int64_t vocab_size) {
  return opened(section, [&] {
    return std::make_shared<const TokenDataset>(
        TokenDataset::Options{.path = sequence.path,
                              .format = format,
                              .sequence_length = sequence.sequence_length,
                              .split = sequence.split,
                              .eval_fraction = sequence.eval_fraction,
                              .vocab_size = vocab_size});
  });
}

}  // namespace

DatasetPtr BytesOptions::make(const Setting& section, const DataEnvironment&) const {
  return opened_tokens(section, *this, TokenFormat::kBytes, 0);
}

DatasetPtr TokensOptions::make(const Setting& section, const DataEnvironment&) const {
  return opened_tokens(section, *this, dtype, vocab_size);
}

}  // namespace tutti
