#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizers/vocabulary.h"

namespace tutti {

// The `model` of a tokenizer.json: makes ids of a word. Immutable.
class TokenModel {
 public:
  // An encoder's memory from word to word, so that a word needs no allocation.
  struct Workspace {
    virtual ~Workspace() = default;
  };

  virtual ~TokenModel() = default;
  virtual std::unique_ptr<Workspace> make_workspace() const { return std::make_unique<Workspace>(); }
  // Appends the ids of a word, which is valid UTF-8 and not empty. Throws UserError if the word is unknown,
  // and the model has no token for unknown words.
  virtual void encode(std::string_view word, Workspace& workspace, std::vector<uint32_t>& ids) const = 0;
  // A character before which pieces may be cut without a change of ids; "" if there is none.
  virtual std::string safe_marker() const { return ""; }

  const Vocabulary& vocabulary() const { return vocabulary_; }

 protected:
  explicit TokenModel(Vocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {}

 private:
  Vocabulary vocabulary_;
};

// The ids of "<0x00>" to "<0xFF>"; kNoToken where the vocabulary has none.
inline constexpr uint32_t kNoToken = 0xffffffff;
std::array<uint32_t, 256> byte_tokens(const Vocabulary& vocabulary);

// BPE, Unigram, WordPiece or WordLevel. Throws UserError with the position of the error. `writes_bytes`:
// words come as bytes, each of which the vocabulary knows as a character (append_byte_character).
std::unique_ptr<const TokenModel> read_token_model(const JsonPlace& place, bool writes_bytes);

// One each of these; word_models.h has WordPiece and WordLevel.
std::unique_ptr<const TokenModel> read_bpe(const JsonPlace& place, bool writes_bytes);
std::unique_ptr<const TokenModel> read_unigram(const JsonPlace& place);
std::unique_ptr<const TokenModel> read_word_piece(const JsonPlace& place);
std::unique_ptr<const TokenModel> read_word_level(const JsonPlace& place);

}  // namespace tutti
