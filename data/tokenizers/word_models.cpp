#include "data/tokenizers/byte_trie.h"
#include "data/tokenizers/token_model.h"
#include "runtime/error.h"
#include "runtime/printable.h"

namespace tutti {
namespace {

// The token for unknown words. Throws UserError if the vocabulary has none.
uint32_t unknown_word(const Vocabulary& vocabulary, const std::string& name, std::string_view word) {
  const auto id = vocabulary.id_of(name);
  if (!id)
    throw UserError("a tokenizer does not know the word '" + shown(word) +
                    "', and its token for unknown words, '" + shown(name) + "', is not in its vocabulary");
  return *id;
}

// The longest token with which the word begins, then the longest with which its rest begins, among tokens
// with the prefix of such parts (BERT's tokenization.py). If there is none, the whole word is unknown.
class WordPiece final : public TokenModel {
 public:
  explicit WordPiece(const JsonPlace& place)
      : TokenModel(Vocabulary(place.at("vocab"))),
        unknown_(place.at("unk_token").text()),
        most_characters_(place.at("max_input_chars_per_word").number(0xffffffff)) {
    const std::string prefix = place.at("continuing_subword_prefix").text();
    std::vector<ByteTrie::Entry> begins, continues;
    for (const auto& [token, id] : vocabulary().ids()) {
      begins.emplace_back(token, id);
      if (token.starts_with(prefix)) continues.emplace_back(token.substr(prefix.size()), id);
    }
    begins_ = ByteTrie(std::move(begins));
    continues_ = ByteTrie(std::move(continues));
  }

  void encode(std::string_view word, Workspace&, std::vector<uint32_t>& ids) const override {
    const std::size_t before = ids.size();
    if (!is_too_long(word) && add_parts(word, ids)) return;
    ids.resize(before);
    ids.push_back(unknown_word(vocabulary(), unknown_, word));
  }

 private:
  bool is_too_long(std::string_view word) const {
    std::size_t characters = 0;
    for (const char byte : word) characters += (static_cast<unsigned char>(byte) & 0xc0) != 0x80;
    return characters > most_characters_;
  }

  bool add_parts(std::string_view word, std::vector<uint32_t>& ids) const {
    for (const ByteTrie* trie = &begins_; !word.empty(); trie = &continues_) {
      const auto [bytes, id] = trie->longest(word);
      if (bytes == 0) return false;
      ids.push_back(id);
      word.remove_prefix(bytes);
    }
    return true;
  }

  std::string unknown_;
  uint32_t most_characters_;
  ByteTrie begins_, continues_;
};

class WordLevel final : public TokenModel {
 public:
  explicit WordLevel(const JsonPlace& place)
      : TokenModel(Vocabulary(place.at("vocab"))), unknown_(place.at("unk_token").text()) {}

  void encode(std::string_view word, Workspace&, std::vector<uint32_t>& ids) const override {
    const auto id = vocabulary().id_of(word);
    ids.push_back(id ? *id : unknown_word(vocabulary(), unknown_, word));
  }

 private:
  std::string unknown_;
};

}  // namespace

std::unique_ptr<const TokenModel> read_word_piece(const JsonPlace& place) {
  return std::make_unique<WordPiece>(place);
}

std::unique_ptr<const TokenModel> read_word_level(const JsonPlace& place) {
  return std::make_unique<WordLevel>(place);
}

}  // namespace tutti
