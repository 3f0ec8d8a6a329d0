#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "data/tokenizers/byte_trie.h"
#include "data/tokenizers/normalizers.h"
#include "data/tokenizers/vocabulary.h"

namespace tutti {

// An entry of `added_tokens` in a tokenizer.json: a text that is one token everywhere.
struct AddedToken {
  std::string content;
  uint32_t id = 0;
  bool special = false;      // left out of decoded texts on request
  bool single_word = false;  // only between characters that are no letters, digits, ...
  bool lstrip = false;       // with all white space before it
  bool rstrip = false;       // with all white space behind it
  bool normalized = false;   // looked for in the normalized text
};

// Added tokens to look for in a text, the leftmost first, at one place the longest.
class AddedTokenFinder {
 public:
  AddedTokenFinder() = default;
  // Of each token, its text.
  explicit AddedTokenFinder(std::vector<std::pair<std::string, AddedToken>> tokens);

  // Calls between(part) and found(token) for the parts of the text, none of which is empty, and its tokens.
  template <class Between, class Found>
  void split(std::string_view text, Between between, Found at_token) const {
    std::size_t done = 0;
    for (Place place; find_next(text, done, place);) {
      if (place.begin > done) between(text.substr(done, place.begin - done));
      at_token(tokens_[place.token].second);
      done = place.end;
    }
    if (done < text.size()) between(text.substr(done));
  }

 private:
  struct Place {
    std::size_t search = 0;  // where the search continues
    std::size_t begin = 0, end = 0;
    uint32_t token = 0;
  };
  bool find_next(std::string_view text, std::size_t done, Place& place) const;
  bool accept(std::string_view text, std::size_t done, std::size_t at, std::size_t bytes, Place& place) const;

  std::vector<std::pair<std::string, AddedToken>> tokens_;
  ByteTrie trie_;
  std::string first_bytes_;
  bool is_first_byte_[256] = {};
};

// All added tokens of a file. Their ids are as in `tokenizers`: the model's id of the text, else the next
// after the model's ids. (The file's own ids are the same in files that `tokenizers` wrote.)
class AddedTokens {
 public:
  AddedTokens() = default;
  // Throws UserError with the position of the error.
  AddedTokens(const JsonPlace& place, const Vocabulary& vocabulary, const Normalizers& normalizers);

  const AddedTokenFinder& in_text() const { return in_text_; }              // not normalized
  const AddedTokenFinder& in_normalized() const { return in_normalized_; }  // in texts between those

  const Vocabulary& vocabulary() const { return vocabulary_; }
  bool is_special(std::string_view content) const { return special_.contains(std::string(content)); }
  std::vector<uint32_t> special_ids() const;

 private:
  Vocabulary vocabulary_;
  std::unordered_set<std::string> special_;
  AddedTokenFinder in_text_, in_normalized_;
};

}  // namespace tutti
