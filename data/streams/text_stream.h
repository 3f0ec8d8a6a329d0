#pragma once

#include <memory>
#include <string>

#include "data/dataset.h"
#include "data/streams/sample_stream.h"
#include "data/texts/tokenized_texts.h"

namespace tutti {

// Samples for a language model of the documents that a command writes, a line each. With `first_fit`, samples
// are as PackedTexts' (but see FirstFitPacking), else as TokenDataset's. All documents become tokens on each
// rank.
class TextStream final : public Dataset {
 public:
  struct Options {
    Tokenization how;  // its files are not read
    bool json_lines = true;
    int64_t sequence_length = 256;
    bool first_fit = false;
    int32_t filling = 0;  // of first_fit
  };

  // Throws UserError with the command.
  TextStream(const Options& options, SampleStream::Options stream);

  int64_t size() const override { return stream_.size(); }
  SampleSpec spec() const override;
  Batch get(std::span<const int64_t> indices, const Epoch& epoch) const override;
  int64_t order(uint64_t seed, int64_t epoch, int64_t position, bool shuffle) const override {
    return stream_.order(seed, epoch, position, shuffle);
  }
  void scan() const override;
  uint64_t digest() const override { return stream_.digest(); }
  std::string advice() const override {
    const std::string chat_advice = options_.how.advice();
    return chat_advice.empty() ? stream_.advice() : chat_advice;
  }
  std::string replaced() const override { return left_out_->text(); }
  std::shared_ptr<const Tokenizer> tokenizer() const override { return options_.how.tokenizer; }
  int64_t memory_bytes() const override;

 private:
  int64_t arrays() const { return options_.first_fit ? 4 : 2; }

  Options options_;
  int64_t kept_;  // samples
  std::shared_ptr<LeftOutRecords> left_out_ = std::make_shared<LeftOutRecords>("line");
  SampleStream stream_;
};

}  // namespace tutti
