#include "data/texts/packed_texts.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <utility>

#include "data/texts/first_fit.h"
#include "data/transforms/ignore_index.h"
#include "runtime/error.h"
#include "runtime/hashes.h"

namespace tutti {

PackedRows::PackedRows(const Batch& arrays)
    : input(arrays["input"].mutable_data_ptr<int64_t>()),
      target(arrays["target"].mutable_data_ptr<int64_t>()),
      segments(arrays["segments"].mutable_data_ptr<int64_t>()),
      positions(arrays["positions"].mutable_data_ptr<int64_t>()) {}

void PackedRows::advance(int64_t sequence_length) {
  for (int64_t** row : {&input, &target, &segments, &positions}) *row += sequence_length;
}

TensorTree::Children unfilled_samples(int64_t samples, const PackedTexts::Options& options) {
  const Shape shape = {samples, options.sequence_length};
  return {{"input", at::full(shape, options.filling, at::kLong)},
          {"target", at::full(shape, kIgnoredTarget, at::kLong)},
          {"segments", at::zeros(shape, at::kLong)},
          {"positions", at::zeros(shape, at::kLong)}};
}

SampleSpec packed_spec(const PackedTexts::Options& options) {
  SampleSpec spec{.classes = options.tokenizer->vocab_size()};
  for (const char* name : {"input", "target", "segments", "positions"}) {
    spec.shapes[name] = {options.sequence_length};
    spec.dtypes[name] = at::kLong;
  }
  return spec;
}

PackedTexts::PackedTexts(TokenizedTexts texts, const Options& options)
    : texts_(std::move(texts)), options_(options) {
  pack(all_pieces());
  if (size() == 0) throw UserError({texts_.tokens().path()}, "no document has two tokens");
}

std::vector<PackedTexts::Piece> PackedTexts::all_pieces() const {
  std::vector<Piece> pieces;
  for (int64_t d = options_.first_document; d < options_.first_document + options_.documents; ++d) {
    const int64_t begin = texts_.documents().begin(d), inputs = texts_.documents().length(d) - 1;
    for (int64_t at = 0; at < inputs; at += options_.sequence_length)
      pieces.push_back({begin + at, std::min(options_.sequence_length, inputs - at)});
  }
  return pieces;
}

void PackedTexts::pack(const std::vector<Piece>& pieces) {
  std::vector<int64_t> sample_of, pieces_of;  // of each piece; of each sample, how many
  FirstFit fit(options_.sequence_length, kOpenSamples);
  for (const Piece& piece : pieces) {
    sample_of.push_back(fit.place(piece.length).sample);
    pieces_of.resize(static_cast<std::size_t>(fit.begun()));
    ++pieces_of[static_cast<std::size_t>(sample_of.back())];
  }
  starts_.assign(1, 0);
  for (const int64_t count : pieces_of) starts_.push_back(starts_.back() + count);
  std::vector<int64_t> next(starts_.begin(), starts_.end() - 1);
  pieces_.resize(pieces.size());
  for (std::size_t i = 0; i < pieces.size(); ++i)
    pieces_[static_cast<std::size_t>(next[static_cast<std::size_t>(sample_of[i])]++)] = pieces[i];
}

SampleSpec PackedTexts::spec() const { return packed_spec(options_); }

template <class Token>
void PackedTexts::fill(std::span<const int64_t> samples, const Token* tokens, PackedRows rows) const {
  const uint8_t* counts = texts_.counts();
  for (const int64_t sample : samples) {
    TUTTI_ASSERT(sample >= 0 && sample < size(), "sample " + std::to_string(sample));
    int64_t at = 0, segment = 0;
    for (int64_t p = starts_[static_cast<std::size_t>(sample)];
         p < starts_[static_cast<std::size_t>(sample) + 1]; ++p) {
      const Piece& piece = pieces_[static_cast<std::size_t>(p)];
      ++segment;
      for (int64_t i = 0; i < piece.length; ++i, ++at) {
        const int64_t token = piece.begin + i;
        rows.input[at] = tokens[token];
        if (!counts || counts[token + 1]) rows.target[at] = tokens[token + 1];
        rows.segments[at] = segment;
        rows.positions[at] = i;
      }
    }
    rows.advance(options_.sequence_length);
  }
}

Batch PackedTexts::get(std::span<const int64_t> indices, const Epoch&) const {
  Batch samples(unfilled_samples(std::ssize(indices), options_));
  const PackedRows rows(samples);
  const std::byte* tokens = texts_.tokens().bytes().data();
  if (texts_.tokens().format() == TokenFormat::kUint16)
    fill(indices, reinterpret_cast<const uint16_t*>(tokens), rows);
  else
    fill(indices, reinterpret_cast<const int32_t*>(tokens), rows);
  return samples;
}

uint64_t PackedTexts::digest() const { return digest_of_samples(*this); }

}  // namespace tutti
