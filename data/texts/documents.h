#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/chats/chat_template.h"
#include "data/chats/text_part.h"
#include "io/mapped_file.h"

namespace tutti {

// How documents stand in files. A file whose name ends in .jsonl, .ndjson or .json has a document in each
// line, or is a JSON array of documents; any other file is a document.
struct DocumentFormat {
  // Members of the JSON objects. With `messages`, or with `prompt` and `response`, `text` is not read.
  std::string text = "text";
  std::vector<std::string> prompt = {};  // several members have a line each, empty members none
  std::string response = "";
  std::string messages = "";
  // How a message of a chat is written. The content of the assistant's messages counts, and the text of
  // `turn` behind the content.
  std::string turn = "<|im_start|>{role}\n{content}<|im_end|>\n";
  std::shared_ptr<const ChatTemplate> chat_template = nullptr;  // in the place of `turn`

  bool has_prompts() const { return !messages.empty() || !prompt.empty(); }
  // Throws UserError with the reason, without the place.
  TextDocument read(std::string_view line) const;
};

// Calls visit(text of the document, true for JSON, "FILE", "FILE:LINE" or "FILE: object 3") for each document
// of a file, in order. Lines of blanks are no documents.
using VisitDocument = std::function<void(std::string_view text, bool is_json, const std::string& place)>;
void for_each_document(const MappedFile& file, const VisitDocument& visit);

}  // namespace tutti
