#pragma once

#include <cstdint>
#include <vector>

#include "data/texts/documents.h"
#include "data/tokenizers/tokenizer.h"

namespace tutti {

// The tokens of each part of a text: those of the whole text, cut where parts end; if a token of it lies in
// two parts, those of each part alone. Long chats take a time in proportion to the text: whether a token lies
// in two parts is seen in these two parts alone, and only where that is not clear in all of the text before.
std::vector<std::vector<uint32_t>> tokens_of_parts(const Tokenizer& tokenizer, const TextDocument& parts);

}  // namespace tutti
