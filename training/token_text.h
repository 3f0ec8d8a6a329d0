#pragma once

#include <memory>

#include "models/generation.h"

namespace tutti {

class Dataset;
class Tokenizer;

// A tokenizer as the text of a model's tokens. The empty text is the token that begins texts, else the token
// that ends texts, else a line break.
TokenTextPtr tokenizer_as_text(std::shared_ptr<const Tokenizer> tokenizer);

// How the tokens of a model with this vocabulary are text: by the tokenizer of the data, or as bytes. Null:
// they are numbers.
TokenTextPtr token_text_of(const Dataset* data, int64_t vocabulary);

}  // namespace tutti
