#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "data/dataset.h"
#include "data/readers/options.h"
#include "data/texts/tokenized_texts.h"
#include "io/tokens/token_file.h"

namespace tutti {

// A sequence of tokens, cut into samples for a language model. With L = sequence_length, sample i is
// "input" = tokens [i L, i L + L) and "target" = tokens [i L + 1, i L + L + 1), both int64 [L].
class TokenDataset final : public Dataset {
 public:
  using Format = TokenFormat;
  using Split = TokenSplit;

  struct Options {
    std::string path;
    std::optional<Format> format = Format::kBytes;  // as in TokenFile
    int64_t sequence_length = 256;
    Split split = Split::kAll;
    double eval_fraction = 0.1;                // the part of the tokens, at the file's end, for kEval
    int64_t vocab_size = 0;                    // not for kBytes: tokens are below; 0: the largest token + 1
    std::optional<TokenizedTexts> texts = {};  // of which `path` is; targets that do not count become -100
    std::shared_ptr<const Tokenizer> tokenizer = nullptr;
    std::string advice = "";
  };

  // Throws WrongKey if a file without a header seems to be of another format, UserError if the split
  // has no sample or a token is out of range. Tokens are checked if there are at most kMaxCheckedTokens.
  explicit TokenDataset(const Options& options);

  static constexpr int64_t kMaxCheckedTokens = int64_t{256} << 20;

  int64_t size() const override { return size_; }
  SampleSpec spec() const override;
  Batch get(std::span<const int64_t> indices, const Epoch& epoch) const override;
  void scan() const override;
  uint64_t digest() const override;
  std::string advice() const override { return options_.advice; }
  std::string replaced() const override { return options_.texts ? options_.texts->left_out() : ""; }
  std::shared_ptr<const Tokenizer> tokenizer() const override { return options_.tokenizer; }

 private:
  int64_t item_bytes() const { return static_cast<int64_t>(token_bytes(file_->format())); }
  const std::byte* item(int64_t token) const { return file_->bytes().data() + token * item_bytes(); }
  void leave_out_targets(std::span<const int64_t> indices, int64_t* targets) const;
  // function(span of the split's tokens, of their type)
  template <class Function>
  auto on_tokens(Function function) const;
  void require_format() const;
  // True if most tokens are too large, as two uint16 that are read as one int32 are.
  bool is_beyond_vocabulary() const;
  void find_classes();

  Options options_;
  std::shared_ptr<const TokenFile> file_;
  int64_t first_ = 0;   // the split's first token in the file
  int64_t tokens_ = 0;  // of the split
  int64_t size_ = 0;
  int64_t classes_ = 0;
};

}  // namespace tutti
