#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizers/normalizers.h"

namespace tutti {

// SentencePiece's table of replacements (normalizer_spec.precompiled_charsmap): the bytes of a double array
// (Darts-clone) as a little-endian u32, the array, whose values are offsets into a text of replacements, each
// of which ends with a zero byte. Used as `tokenizers` does: a grapheme of up to 5 bytes, or else each of its
// characters, is replaced by the replacement of the shortest text of the table with which the grapheme or
// character begins.
class Charsmap final : public Normalizer {
 public:
  // `place`: the map, in base 64. Throws UserError if it is damaged.
  explicit Charsmap(const JsonPlace& place);
  Change apply(std::string_view text, std::string& out) const override;

 private:
  std::optional<std::string_view> replacement(std::string_view part) const;
  void add_grapheme(std::string_view grapheme, std::string& out) const;

  std::vector<uint32_t> units_;
  std::string replacements_;
  // Of the characters below U+10000: true if neither replaced nor joined to a neighbour.
  std::vector<bool> plain_;
};

}  // namespace tutti
