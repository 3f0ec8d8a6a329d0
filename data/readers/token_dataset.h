#pragma once

#include <memory>
#include <span>
#include <string>

#include "data/dataset.h"
#include "io/mapped_file.h"

namespace tutti {

// A sequence of tokens, cut into samples for a language model. With L = sequence_length, sample i is
// "input" = tokens [i L, i L + L) and "target" = tokens [i L + 1, i L + L + 1), both int64 [L].
class TokenDataset final : public Dataset {
 public:
  enum class Format { kBytes, kUint16 };  // a text file; a file of little-endian uint16 without a header
  enum class Split { kAll, kTrain, kEval };

  struct Options {
    std::string path;
    Format format = Format::kBytes;
    int64_t sequence_length = 256;
    Split split = Split::kAll;
    double eval_fraction = 0.1;  // the part of the tokens, at the file's end, for kEval
    int64_t vocab_size = 0;      // for kUint16: tokens are below; 0: the largest token + 1
  };

  // Throws UserError if the split has no sample or a token is out of range. Tokens are checked if there are
  // at most kMaxCheckedTokens.
  explicit TokenDataset(const Options& options);

  static constexpr int64_t kMaxCheckedTokens = int64_t{256} << 20;

  int64_t size() const override { return size_; }
  SampleSpec spec() const override;
  Batch get(std::span<const int64_t> indices, const Epoch& epoch) const override;
  void scan() const override;
  uint64_t digest() const override;

 private:
  int64_t item_bytes() const { return options_.format == Format::kBytes ? 1 : 2; }
  const std::byte* item(int64_t token) const { return file_.bytes().data() + token * item_bytes(); }
  std::span<const uint16_t> uint16_tokens() const;  // of the split
  void find_classes();
  // Converts `count` tokens of the split, from `first` on.
  void widen(int64_t first, int64_t count, int64_t* to) const;

  Options options_;
  MappedFile file_;
  int64_t first_ = 0;   // the split's first token in the file
  int64_t tokens_ = 0;  // of the split
  int64_t size_ = 0;
  int64_t classes_ = 0;
};

}  // namespace tutti
