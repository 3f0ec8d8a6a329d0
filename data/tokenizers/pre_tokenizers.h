#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizers/json_place.h"

namespace tutti {

// A part of a normalized text. `first`: the part begins where the original text begins.
struct Piece {
  std::string_view text;
  bool first = false;
};

// Gets the pieces of a text, none of which is empty. They last for the call.
class PieceSink {
 public:
  virtual void add(Piece piece) = 0;

 protected:
  ~PieceSink() = default;
};

// One step of `pre_tokenizer` in a tokenizer.json: cuts a piece into smaller pieces. Immutable.
class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  // `scratch` has room for changed pieces.
  virtual void split(Piece piece, std::string& scratch, PieceSink& sink) const = 0;
};

struct PreTokenizers {
  std::vector<std::unique_ptr<const PreTokenizer>> steps;
  // The last step is to write bytes as their characters (append_byte_character). The model does so for new
  // words.
  bool writes_bytes = false;
};

// BertPreTokenizer, ByteLevel, CharDelimiterSplit, Digits, FixedLength, Metaspace, Punctuation, Split,
// Whitespace and WhitespaceSplit, and Sequence of pre-tokenizers. Throws UserError with the position of the
// error.
PreTokenizers read_pre_tokenizers(const JsonPlace& place);

// Cuts before each `marker` that stands behind another character: separate pieces for a BPE model without
// merges there.
std::unique_ptr<const PreTokenizer> splitter_before(std::string marker);

}  // namespace tutti
