#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/tokenizers/json_place.h"

namespace tutti {

// One step of `decoder` in a tokenizer.json: makes text of tokens. Immutable.
class TokenDecoder {
 public:
  using Tokens = std::vector<std::string>;

  virtual ~TokenDecoder() = default;
  virtual void apply(Tokens& tokens) const = 0;
};

using TokenDecoders = std::vector<std::unique_ptr<const TokenDecoder>>;

// BPEDecoder, ByteFallback, ByteLevel, CTC, Fuse, Metaspace, Replace, Strip, WordPiece, and Sequence of
// decoders. Throws UserError with the position of the error.
void read_decoders(const JsonPlace& place, TokenDecoders& to);

}  // namespace tutti
