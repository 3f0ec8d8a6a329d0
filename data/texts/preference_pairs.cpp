#include "data/texts/preference_pairs.h"

#include <ATen/ops/ones.h>

#include <algorithm>
#include <utility>

#include "runtime/error.h"

namespace tutti {
namespace {

int64_t token_at(const TokenFile& file, int64_t at) {
  const std::byte* bytes = file.bytes().data();
  return file.format() == TokenFormat::kUint16 ? reinterpret_cast<const uint16_t*>(bytes)[at]
                                               : reinterpret_cast<const int32_t*>(bytes)[at];
}

// The tokens at the beginning that do not count.
int64_t prompt_length(const TokenizedTexts& texts, int64_t document) {
  const uint8_t* begin = texts.counts() + texts.documents().begin(document);
  return std::find(begin, begin + texts.documents().length(document), 1) - begin;
}

void require_all_texts(const TokenizedTexts& texts) {
  if (!texts.left_out().empty())
    throw UserError({texts.tokens().path()}, "a pair needs both of its answers; " + texts.left_out());
}

// A document's inputs and targets from place `at` of a sample on; returns the place behind.
int64_t fill(const TokenizedTexts& texts, int64_t document, int64_t segment, int64_t at,
             const PackedRows& rows) {
  const int64_t begin = texts.documents().begin(document), inputs = texts.documents().length(document) - 1;
  for (int64_t i = 0; i < inputs; ++i, ++at) {
    rows.input[at] = token_at(texts.tokens(), begin + i);
    if (texts.counts()[begin + i + 1]) rows.target[at] = token_at(texts.tokens(), begin + i + 1);
    rows.segments[at] = segment;
    rows.positions[at] = i;
  }
  return at;
}

}  // namespace

PreferencePairs::PreferencePairs(TokenizedTexts chosen, TokenizedTexts rejected, const Options& options)
    : chosen_(std::move(chosen)), rejected_(std::move(rejected)), options_(options) {
  require_all_texts(chosen_);
  require_all_texts(rejected_);
  if (chosen_.documents().size() != rejected_.documents().size())
    throw UserError({chosen_.tokens().path()}, "there are not as many chosen as rejected answers");
  choose_pairs();
}

void PreferencePairs::choose_pairs() {
  for (int64_t d = options_.first_document; d < options_.first_document + options_.documents; ++d) {
    const int64_t prompt = std::min(prompt_length(chosen_, d), prompt_length(rejected_, d));
    for (int64_t i = 0; i < prompt; ++i)
      if (token_at(chosen_.tokens(), chosen_.documents().begin(d) + i) !=
          token_at(rejected_.tokens(), rejected_.documents().begin(d) + i))
        throw UserError("pair " + std::to_string(d + 1) + ": chosen and rejected answer different prompts");
    if (chosen_.documents().length(d) + rejected_.documents().length(d) - 2 <= options_.sequence_length)
      pairs_.push_back(d);
  }
  const int64_t count = options_.documents - size();
  if (size() == 0)
    throw UserError("no pair of answers fits into sequence_length = " +
                    std::to_string(options_.sequence_length) + ", which holds both with their prompts");
  if (count > 0)
    left_out_ = std::to_string(count) + " of " + std::to_string(options_.documents) +
                " pairs do not fit into sequence_length and are left out";
}

SampleSpec PreferencePairs::spec() const {
  SampleSpec spec = packed_spec(options_);
  spec.shapes[kPairs] = {};
  spec.dtypes[kPairs] = at::kLong;
  return spec;
}

Batch PreferencePairs::get(std::span<const int64_t> indices, const Epoch&) const {
  auto arrays = unfilled_samples(std::ssize(indices), options_);
  arrays.emplace_back(kPairs, at::ones({std::ssize(indices)}, at::kLong));
  Batch samples(std::move(arrays));
  PackedRows rows(samples);
  for (const int64_t sample : indices) {
    TUTTI_ASSERT(sample >= 0 && sample < size(), "sample " + std::to_string(sample));
    const int64_t document = pairs_[static_cast<std::size_t>(sample)];
    fill(rejected_, document, kRejectedSegment, fill(chosen_, document, kChosenSegment, 0, rows), rows);
    rows.advance(options_.sequence_length);
  }
  return samples;
}

uint64_t PreferencePairs::digest() const { return digest_of_samples(*this); }

}  // namespace tutti
