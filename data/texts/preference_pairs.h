#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/texts/packed_texts.h"
#include "data/texts/tokenized_texts.h"

namespace tutti {

// The batch's name for the pairs: int64 [N] of 1. Its presence says that a loss is a mean over pairs.
inline constexpr const char* kPairs = "pairs";
// Segments of a sample (as of PackedTexts).
inline constexpr int64_t kChosenSegment = 1, kRejectedSegment = 2;

// Two answers to the same prompt, the better one first, as DPO needs them. A sample of `sequence_length` has
// both documents beside each other, in the arrays of PackedTexts: segment 1 is the chosen, segment 2 the
// rejected one; targets of prompts are -100. Pairs that do not fit are left out.
class PreferencePairs final : public Dataset {
 public:
  using Options = PackedTexts::Options;  // documents: the pairs that are read

  // Document i of both is of the same line. Throws UserError: texts were left out, prompts differ, or no pair
  // fits.
  PreferencePairs(TokenizedTexts chosen, TokenizedTexts rejected, const Options& options);

  int64_t size() const override { return std::ssize(pairs_); }
  SampleSpec spec() const override;
  Batch get(std::span<const int64_t> indices, const Epoch& epoch) const override;
  uint64_t digest() const override;
  std::string advice() const override { return options_.advice; }
  std::string replaced() const override { return left_out_; }
  std::shared_ptr<const Tokenizer> tokenizer() const override { return options_.tokenizer; }

 private:
  void choose_pairs();

  TokenizedTexts chosen_, rejected_;
  Options options_;
  std::vector<int64_t> pairs_;  // documents
  std::string left_out_;
};

}  // namespace tutti
