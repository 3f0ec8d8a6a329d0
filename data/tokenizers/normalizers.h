#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizers/json_place.h"

namespace tutti {

// The effect of a normalizer. kStart: the text's first character is gone, too. (Metaspace's scheme "first"
// asks where in the original text a piece begins.)
enum class Change { kNone, kText, kStart };

// The limit of a text's growth: NFKD makes 18 characters of one character.
inline constexpr std::size_t kMostGrowth = 64, kGrowthAnyway = std::size_t{1} << 20;
// Throws UserError if `bytes` are more than a text of `from` bytes may become.
void require_growth(std::size_t from, std::size_t bytes);

// One step of `normalizer` in a tokenizer.json. Immutable.
class Normalizer {
 public:
  virtual ~Normalizer() = default;
  // Writes the normalized text to `out`, which is empty, and stays empty for an unchanged text. The texts are
  // valid UTF-8.
  virtual Change apply(std::string_view text, std::string& out) const = 0;
};

using Normalizers = std::vector<std::unique_ptr<const Normalizer>>;

// BertNormalizer, ByteLevel, Lowercase, NFC, NFD, NFKC, NFKD, Nmt, Precompiled, Prepend, Replace, Strip and
// StripAccents, and Sequence of normalizers. Throws UserError with the position of the error.
void read_normalizers(const JsonPlace& place, Normalizers& to);

// A normalized text, which lies in the original text or in a buffer. Throws UserError if the text grows to
// more than kMostGrowth times its length and kGrowthAnyway bytes.
struct NormalizedText {
  std::string_view text;
  bool start_gone = false;  // a first character of the original text is gone
};
NormalizedText apply_normalizers(const Normalizers& normalizers, std::string_view text,
                                 std::string (&buffers)[2]);

}  // namespace tutti
