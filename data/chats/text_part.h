#pragma once

#include <string>
#include <vector>

namespace tutti {

// A part of a document to train a language model on.
struct TextPart {
  std::string text;
  bool counts = true;  // in the loss; prompts do not
};
using TextDocument = std::vector<TextPart>;  // no two neighbours that count alike

}  // namespace tutti
