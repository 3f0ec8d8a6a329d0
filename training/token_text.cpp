#include "training/token_text.h"

#include <utility>

#include "data/dataset.h"
#include "data/tokenizers/tokenizer.h"

namespace tutti {
namespace {

class TokenizerAsText final : public TokenText {
 public:
  explicit TokenizerAsText(std::shared_ptr<const Tokenizer> tokenizer) : tokenizer_(std::move(tokenizer)) {}

  Tokens encode(const std::string& text) const override {
    const SpecialIds& special = tokenizer_->special_ids();
    if (text.empty() && special.begin) return {*special.begin};
    if (text.empty() && special.end) return {*special.end};
    std::vector<uint32_t> ids = tokenizer_->encode(text.empty() ? "\n" : text, false);
    if (ids.empty())
      ids.push_back(special.classify.value_or(0));  // BERT's normalizer leaves nothing of blanks
    return {ids.begin(), ids.end()};
  }
  std::string decode(const Tokens& tokens) const override {
    const std::vector<uint32_t> ids(tokens.begin(), tokens.end());
    return tokenizer_->decode(ids);
  }

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
};

}  // namespace

TokenTextPtr tokenizer_as_text(std::shared_ptr<const Tokenizer> tokenizer) {
  return std::make_shared<const TokenizerAsText>(std::move(tokenizer));
}

TokenTextPtr token_text_of(const Dataset* data, int64_t vocabulary) {
  if (auto tokenizer = data ? data->tokenizer() : nullptr; tokenizer && vocabulary > 0)
    return tokenizer_as_text(std::move(tokenizer));
  return tokens_are_bytes(vocabulary) ? bytes_as_text() : nullptr;
}

}  // namespace tutti
