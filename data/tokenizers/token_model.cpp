#include "data/tokenizers/token_model.h"

#include <functional>

#include "data/tokenizers/unicode/byte_characters.h"
#include "runtime/text.h"

namespace tutti {
namespace {

// Models other than BPE take words as they come.
class ByteWritingModel final : public TokenModel {
 public:
  explicit ByteWritingModel(std::unique_ptr<const TokenModel> model)
      : TokenModel(model->vocabulary()), model_(std::move(model)) {}

  std::unique_ptr<Workspace> make_workspace() const override { return model_->make_workspace(); }
  void encode(std::string_view word, Workspace& workspace, std::vector<uint32_t>& ids) const override {
    model_->encode(byte_characters(word), workspace, ids);
  }

 private:
  std::unique_ptr<const TokenModel> model_;
};

using ReadModel = std::function<std::unique_ptr<const TokenModel>(const JsonPlace& place)>;

}  // namespace

std::array<uint32_t, 256> byte_tokens(const Vocabulary& vocabulary) {
  std::array<uint32_t, 256> ids{};
  for (uint32_t byte = 0; byte < 256; ++byte)
    ids[byte] = vocabulary.id_of(formatted("<0x%02X>", byte)).value_or(kNoToken);
  return ids;
}

std::unique_ptr<const TokenModel> read_token_model(const JsonPlace& place, bool writes_bytes) {
  const std::vector<std::pair<std::string, ReadModel>> all{
      {"BPE", [&](const JsonPlace& bpe) { return read_bpe(bpe, writes_bytes); }},
      {"Unigram", read_unigram},
      {"WordLevel", read_word_level},
      {"WordPiece", read_word_piece}};
  const auto& kind = kind_at(place, all);
  auto model = kind.second(place);
  if (!writes_bytes || kind.first == "BPE") return model;
  return std::make_unique<ByteWritingModel>(std::move(model));
}

}  // namespace tutti
