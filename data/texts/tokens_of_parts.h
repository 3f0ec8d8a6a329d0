#pragma once

#include <cstdint>
#include <vector>

#include "data/texts/documents.h"
#include "data/tokenizers/tokenizer.h"

namespace tutti {

// The tokens of each part of a text: the whole text's tokens, cut where parts end; if a token lies in two
// parts, the tokens of each part alone. Long chats take a time in proportion to the text: two parts alone
// mostly show whether a token lies in both parts, and only an unclear case needs all of the text before.
std::vector<std::vector<uint32_t>> tokens_of_parts(const Tokenizer& tokenizer, const TextDocument& parts);

}  // namespace tutti
