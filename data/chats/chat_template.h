#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/chats/jinja_value.h"
#include "data/chats/text_part.h"
#include "data/tokenizers/tokenizer.h"

namespace tutti {

namespace jinja {
struct Node;
}

// How a tokenizer says that chats are written: a template in Jinja, as transformers' apply_chat_template
// renders it (without a generation prompt). A part of Jinja is known (data/chats/jinja_functions.cpp); a
// template has no files, no clock and a largest number of steps.
class ChatTemplate {
 public:
  // chat_template.jinja beside the tokenizer's file, else the member chat_template of tokenizer_config.json;
  // null if there is neither. Throws UserError with file and line of what is not known, or if the template
  // does not write what an assistant says.
  static std::shared_ptr<const ChatTemplate> beside(const Tokenizer& tokenizer);
  ChatTemplate(const std::string& source, const Tokenizer& tokenizer);

  // A chat, of messages as JSON objects: role and content, or ShareGPT's from and value. `tools`: functions
  // as JSON; none: "". What counts is the content of an assistant's messages and what the same turn of the
  // template's loop has behind it, with blanks before; in a template with {% generation %} what stands there.
  // Throws UserError.
  TextDocument write(const std::vector<std::string>& messages, const std::string& tools = "") const;

  const std::string& source() const { return source_; }

 private:
  void try_out() const;

  std::string source_;
  std::shared_ptr<const jinja::Node> program_;
  jinja::Map special_;  // bos_token, ...
};

}  // namespace tutti
