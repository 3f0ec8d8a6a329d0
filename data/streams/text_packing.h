#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "data/streams/sample_stream.h"
#include "data/texts/first_fit.h"
#include "data/texts/tokenized_texts.h"

namespace tutti {

// Rows of arrays, of equal lengths; `segments` and `positions` are empty without first fit.
struct TextSample final : StreamSample {
  std::vector<int32_t> input, target, segments, positions;

  void add_to(StreamedHash& hash) const override;
};
using TextSamplePtr = std::shared_ptr<TextSample>;

// Makes samples of `length` tokens of documents on arrival. Arrays as of TokenDataset or PackedTexts.
class TextPacking {
 public:
  virtual ~TextPacking() = default;
  virtual void add(const EncodedDocument& document) = 0;
  virtual void finish() = 0;  // no document follows

  // The next sample that is complete; null if there is none.
  virtual TextSamplePtr pop() = 0;
};

// Joined documents, cut into samples; an incomplete sample at the end is left out.
class CutPacking final : public TextPacking {
 public:
  explicit CutPacking(int64_t length) : length_(length) {}

  void add(const EncodedDocument& document) override;
  void finish() override {}
  TextSamplePtr pop() override;

 private:
  int64_t length_;
  EncodedDocument tokens_;  // from begin_ on not yet in a sample
  std::size_t begin_ = 0;
};

// Whole documents beside each other, each in the first sample with room among the kOpenSamples begun last;
// longer documents are cut.
class FirstFitPacking final : public TextPacking {
 public:
  static constexpr std::size_t kOpenSamples = 256;

  FirstFitPacking(int64_t length, int32_t filling)
      : length_(length), filling_(filling), fit_(length, kOpenSamples) {}

  void add(const EncodedDocument& document) override;
  void finish() override { ended_ = true; }
  TextSamplePtr pop() override;

 private:
  void place(const EncodedDocument& document, std::size_t begin, int64_t inputs);

  int64_t length_;
  int32_t filling_;
  FirstFit fit_;
  int64_t popped_ = 0;
  std::deque<TextSamplePtr> begun_;  // that have not been popped
  bool ended_ = false;
};

}  // namespace tutti
