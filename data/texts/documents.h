#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "io/mapped_file.h"

namespace tutti {

// A document to train a language model on.
struct TextPart {
  std::string text;
  bool counts = true;  // in the loss; prompts do not
};
using TextDocument = std::vector<TextPart>;  // no two neighbours that count alike

// How documents stand in files. A file whose name ends in .jsonl, .ndjson or .json has a document in each
// line, any other file is a document.
struct DocumentFormat {
  // Members of the JSON objects. With `messages`, or with `prompt` and `response`, `text` is not read.
  std::string text = "text";
  std::string prompt = "", response = "";
  std::string messages = "";
  // How a message of a chat is written. What counts is the content of the assistant's messages, and what
  // `turn` has behind it.
  std::string turn = "<|im_start|>{role}\n{content}<|im_end|>\n";

  bool has_prompts() const { return !messages.empty() || !prompt.empty(); }
  // Throws UserError that says what is wrong, without the place.
  TextDocument read(std::string_view line) const;
};

// Calls visit(text of the document, whether it is a line of JSON, "FILE" or "FILE:LINE") for each document of
// a file, in order. Lines of blanks are no documents.
using VisitDocument = std::function<void(std::string_view text, bool is_json, const std::string& place)>;
void for_each_document(const MappedFile& file, const VisitDocument& visit);

}  // namespace tutti
