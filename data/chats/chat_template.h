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

// A tokenizer's format of chats: a template in Jinja, as for transformers' apply_chat_template. A part of
// Jinja is known (data/chats/jinja_functions.cpp); a template has no files, no clock and a largest number of
// steps.
class ChatTemplate {
 public:
  // chat_template.jinja beside the tokenizer's file, else the member chat_template of tokenizer_config.json;
  // null without both. Throws UserError with file and line of an unknown construct, or if the template does
  // not write an assistant's content.
  static std::shared_ptr<const ChatTemplate> beside(const Tokenizer& tokenizer);
  ChatTemplate(const std::string& source, const Tokenizer& tokenizer);

  // A chat, of messages as JSON objects: role and content, or ShareGPT's from and value. `tools`: functions
  // as JSON; none: "". The counted text of an assistant's message is the chat up to that message without the
  // prompt (the chat before the message with add_generation_prompt), and in a template with {% generation %}
  // the text in that tag. Where the prompt does not begin the chat, or in a chat of more than 64 messages,
  // the counted text is the content of the message and the text behind the content in the same turn of the
  // template's loop; of the last message, all text behind the content. Throws UserError.
  TextDocument write(const std::vector<std::string>& messages, const std::string& tools = "") const;

  const std::string& source() const { return source_; }
  // The counted text behind the last answer of a chat.
  const std::string& behind_answer() const { return behind_answer_; }

 private:
  void try_out();

  std::string source_;
  std::shared_ptr<const jinja::Node> program_;
  jinja::Map special_;  // bos_token, ...
  std::string behind_answer_;
};

}  // namespace tutti
