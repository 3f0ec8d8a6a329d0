#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/texts/tokenized_texts.h"

namespace tutti {

// A row of each of the four arrays of such samples (PackedTexts).
struct PackedRows {
  int64_t *input, *target, *segments, *positions;

  explicit PackedRows(const Batch& arrays);  // the first
  void advance(int64_t sequence_length);
};

// Whole documents beside each other in samples of `sequence_length` tokens L: each in the first sample with
// room, among the kOpenSamples that were begun last (first fit); longer documents are cut. A sample is
// "input" int64 [L]: documents without their last tokens, and at the end `filling` "target" int64 [L]: the
// next token of the document; -100 for one that does not count in the loss, and for the filling "segments"
// int64 [L]: which document of the sample, from 1; 0: filling. Attention stays in a document "positions"
// int64 [L]: the place in the document, or in its part, from 0; 0 in the filling
class PackedTexts final : public Dataset {
 public:
  static constexpr std::size_t kOpenSamples = 1024;

  struct Options {
    int64_t sequence_length = 256;
    int64_t first_document = 0, documents = 0;  // those that are read
    int64_t filling = 0;
    std::shared_ptr<const Tokenizer> tokenizer;
    std::string advice = "";
  };

  // Throws UserError if no document has two tokens.
  PackedTexts(TokenizedTexts texts, const Options& options);

  int64_t size() const override { return std::ssize(starts_) - 1; }
  SampleSpec spec() const override;
  Batch get(std::span<const int64_t> indices, const Epoch& epoch) const override;
  uint64_t digest() const override;
  std::string advice() const override { return options_.advice; }
  std::string replaced() const override { return texts_.left_out(); }
  std::shared_ptr<const Tokenizer> tokenizer() const override { return options_.tokenizer; }

 private:
  // Tokens of a document that are inputs; the token behind an input is its target.
  struct Piece {
    int64_t begin = 0;
    int64_t length = 0;
  };
  std::vector<Piece> all_pieces() const;
  void pack(const std::vector<Piece>& pieces);
  template <class Token>
  void fill(std::span<const int64_t> samples, const Token* tokens, PackedRows rows) const;

  TokenizedTexts texts_;
  Options options_;
  std::vector<Piece> pieces_;    // sample by sample
  std::vector<int64_t> starts_;  // the first piece of each sample, and the number of pieces
};

// Of such samples, without any document: inputs of `filling`, targets that do not count, zeros.
TensorTree::Children unfilled_samples(int64_t samples, const PackedTexts::Options& options);
SampleSpec packed_spec(const PackedTexts::Options& options);

}  // namespace tutti
