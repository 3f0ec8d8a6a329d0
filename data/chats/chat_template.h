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
// renders it. A part of Jinja is known (data/chats/jinja_functions.cpp); a
// template has no files, no clock and a largest number of steps.
class ChatTemplate {
 public:
  // chat_template.jinja beside the tokenizer's file, else the member chat_template of tokenizer_config.json;
  // null if there is neither. Throws UserError with file and line of what is not known, or if the template
  // does not write what an assistant says.
  static std::shared_ptr<const ChatTemplate> beside(const Tokenizer& tokenizer);
  ChatTemplate(const std::string& source, const Tokenizer& tokenizer);

  // A chat, of messages as JSON objects: role and content, or ShareGPT's from and value. `tools`: functions
  // as JSON; none: "". What counts is what the chat up to an assistant's message has beyond the prompt for it
  // (the chat before it with add_generation_prompt), and in a template with {% generation %} what stands
  // there. Where the prompt does not begin the chat, or in a chat of more than 64 messages, it is the content
  // of the message and what the same turn of the template's loop has behind it; of the last message all
  // behind it. Throws UserError.
  TextDocument write(const std::vector<std::string>& messages, const std::string& tools = "") const;

  const std::string& source() const { return source_; }
  // What counts behind the last answer of a chat.
  const std::string& behind_answer() const { return behind_answer_; }

 private:
  void try_out();

  std::string source_;
  std::shared_ptr<const jinja::Node> program_;
  jinja::Map special_;  // bos_token, ...
  std::string behind_answer_;
};

}  // namespace tutti
