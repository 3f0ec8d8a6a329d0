#include "data/tokenizers/encoder.h"

#include <algorithm>

namespace tutti {

class TokenEncoder::WordSink final : public PieceSink {
 public:
  explicit WordSink(const TokenModel& model) : model_(model), workspace_(model.make_workspace()) {}

  void set_ids(std::vector<uint32_t>* ids) { ids_ = ids; }

  void add(Piece piece) override {
    if (piece.text.size() > WordCache::kMostBytes) return model_.encode(piece.text, *workspace_, *ids_);
    const auto [slot, known] = cache_.find(piece.text);
    if (!known) return encode_into(slot, piece.text);
    for (uint8_t i = 0; i < slot.ids_count; ++i) ids_->push_back(slot.ids[i]);
  }

 private:
  void encode_into(WordCache::Slot& slot, std::string_view word) {
    slot.bytes = 0;  // no word's, unless its ids fit
    const std::size_t before = ids_->size();
    model_.encode(word, *workspace_, *ids_);
    const std::size_t count = ids_->size() - before;
    if (count > WordCache::kMostIds) return;
    std::copy(ids_->begin() + static_cast<std::ptrdiff_t>(before), ids_->end(), slot.ids.begin());
    slot.ids_count = static_cast<uint8_t>(count);
    slot.bytes = static_cast<uint8_t>(word.size());
  }

  const TokenModel& model_;
  std::unique_ptr<TokenModel::Workspace> workspace_;
  WordCache cache_;
  std::vector<uint32_t>* ids_ = nullptr;
};

// A step, and where its pieces go.
class TokenEncoder::Link final : public PieceSink {
 public:
  Link(const PreTokenizer& step, PieceSink& next) : step_(step), next_(next) {}
  void add(Piece piece) override { step_.split(piece, scratch_, next_); }

 private:
  const PreTokenizer& step_;
  PieceSink& next_;
  std::string scratch_;
};

TokenEncoder::TokenEncoder(const TokenizerSteps& steps)
    : steps_(steps), words_(std::make_unique<WordSink>(*steps.model)) {
  PieceSink* next = words_.get();
  for (auto step = steps.pre_tokenizers.rbegin(); step != steps.pre_tokenizers.rend(); ++step) {
    links_.push_back(std::make_unique<Link>(**step, *next));
    next = links_.back().get();
  }
}

TokenEncoder::~TokenEncoder() = default;

void TokenEncoder::encode(std::string_view text, std::vector<uint32_t>& ids) {
  ids_ = &ids;
  words_->set_ids(&ids);
  steps_.added.in_text().split(
      text, [&](std::string_view part) { encode_part(part, part.data() == text.data()); },
      [&](const AddedToken& token) { ids.push_back(token.id); });
}

void TokenEncoder::encode_part(std::string_view part, bool first) {
  const NormalizedText normalized = apply_normalizers(steps_.normalizers, part, buffers_);
  first = first && !normalized.start_gone;
  PieceSink& sink = links_.empty() ? static_cast<PieceSink&>(*words_) : *links_.back();
  steps_.added.in_normalized().split(
      normalized.text,
      [&](std::string_view piece) {
        sink.add({piece, first && piece.data() == normalized.text.data()});
      },
      [&](const AddedToken& token) { ids_->push_back(token.id); });
}

}  // namespace tutti
