#include <algorithm>

#include "data/chats/chat_template.h"
#include "data/proposals/look.h"
#include "data/texts/choice_rows.h"
#include "data/texts/documents.h"
#include "data/texts/prompt_rows.h"
#include "data/texts/tokenized_texts.h"
#include "data/tokenizers/tokenizer.h"
#include "io/mapped_file.h"
#include "io/tables/json_lines_file.h"
#include "tests/fuzz/file_in_memory.h"
#include "tests/fuzz/targets.h"

namespace tutti::fuzz {

void texts(const std::string& bytes) {
  static const auto tokenizer =
      Tokenizer::read(write_file("gpt2.json", source_file("tests/golden/tokenizers/gpt2.json")));
  const std::string path = write_file("a.jsonl", bytes);
  static const DocumentFormat plain, pairs{.prompt = {"prompt", "more"}, .response = "response"},
      chat{.messages = "messages"};
  for (const DocumentFormat* format : {&plain, &pairs, &chat}) {
    for (const bool skip_bad : {false, true}) {
      read_or_refuse([&] {
        tokenize(
            {.files = {path}, .format = *format, .tokenizer = tokenizer, .begin = 1, .skip_bad = skip_bad},
            folder() + "/tokenized");
        TokenizedTexts(folder() + "/tokenized");
      });
    }
  }
}

void json_array(const std::string& bytes) {
  static const auto tokenizer =
      Tokenizer::read(write_file("gpt2.json", source_file("tests/golden/tokenizers/gpt2.json")));
  const std::string path = write_file("a.json", bytes);
  static const DocumentFormat fields{.prompt = {"instruction", "input"}, .response = "output"};
  read_or_refuse([&] {
    tokenize({.files = {path}, .format = fields, .tokenizer = tokenizer, .skip_bad = true},
             folder() + "/tokenized");
  });
  read_or_refuse([&] {
    JsonLinesFile table(path);
    std::vector<WantedColumn> wanted;
    for (std::size_t i = 0; i < table.columns().size(); ++i) wanted.push_back({i, CellType::kText});
    table.read(wanted, [](auto, auto) {});
  });
  read_or_refuse([&] { look_at(path, {.tokenizer = folder() + "/gpt2.json"}); });
}

void tasks(const std::string& bytes) {
  static const auto tokenizer =
      Tokenizer::read(write_file("gpt2.json", source_file("tests/golden/tokenizers/gpt2.json")));
  const std::vector<std::string> files = {write_file("a.jsonl", bytes)};
  const int64_t first = 0;
  read_or_refuse([&] { ChoiceRows(files, {.tokens = {tokenizer}}).get({&first, 1}, {}); });
  read_or_refuse([&] { PromptRows(files, {.tokens = {tokenizer}, .stop = {"."}}).get({&first, 1}, {}); });
}

void chat_template(const std::string& bytes) {
  static const auto tokenizer =
      Tokenizer::read(write_file("gpt2.json", source_file("tests/golden/tokenizers/gpt2.json")));
  const std::size_t end = std::min(bytes.find('\0'), bytes.size());
  std::vector<std::string> chat = {R"({"role": "user", "content": "a b\u00e9"})",
                                   R"({"role": "assistant", "content": "c", "tool_calls": [{"name": "f"}]})"};
  if (end < bytes.size()) chat.push_back(bytes.substr(end + 1));
  read_or_refuse([&] { ChatTemplate(bytes.substr(0, end), *tokenizer).write(chat, "[{}]"); });
}

// A tokenizer.json, and behind the first zero byte the text to encode.
void tokenizer(const std::string& bytes) {
  const std::size_t end = std::min(bytes.find('\0'), bytes.size());
  const std::string text = end < bytes.size() ? bytes.substr(end + 1) : "Hello, World! \xc3\xa9 1234  <s>";
  const std::string path = write_file("tokenizer.json", bytes.substr(0, end));
  read_or_refuse([&] {
    const auto tokenizer = Tokenizer::read(path);
    const auto ids = tokenizer->encode(text);
    tokenizer->decode(ids);
    read_or_refuse([&] { tokenizer->encode_pair(text, "b"); });
    TokenStream stream(tokenizer, false);
    for (const uint32_t id : ids) {
      tokenizer->token_of(id);
      stream.add(id);
    }
    stream.finish();
  });
}

}  // namespace tutti::fuzz
