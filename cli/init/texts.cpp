#include <algorithm>
#include <filesystem>
#include <optional>

#include "cli/init/look.h"
#include "data/tokenizers/tokenizer.h"
#include "data/tokenizers/tokenizer_files.h"
#include "io/formats/file_head.h"
#include "io/formats/json_document.h"
#include "io/formats/json_rows.h"
#include "runtime/error.h"
#include "runtime/text.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kHeadBytes = 1 << 20;
constexpr double kBytesOfToken = 4;  // where no text was looked at

// Names of members, as datasets have them: a document, or a prompt and its response, or a chat.
const std::vector<std::string> kTexts = {"text", "content", "body", "document"};
const std::vector<std::pair<std::string, std::string>> kPrompts = {
    {"prompt", "response"}, {"prompt", "completion"}, {"instruction", "output"}, {"question", "answer"}};
const std::vector<std::string> kChats = {"messages", "conversations"};

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::count(names, name) > 0;
}

// The recipe's lines about the members of a line of JSON.
RecipeLines field_lines(const std::string& file, const std::string& line) try {
  const JsonDocument document(line);
  const std::vector<std::string> texts = document.texts(), lists = document.lists();
  for (const std::string& chat : kChats)
    if (has(lists, chat))
      return {{"messages_field", toml_text(chat), "a chat; the assistant's messages count in the loss"},
              {"packing", "\"first_fit\"", "whole documents beside each other"}};
  if (has(texts, "instruction") && has(texts, "input") && has(texts, "output"))
    return {{"prompt_field", "[\"instruction\", \"input\"]",
             "a line each, if not empty; does not count in the loss"},
            {"response_field", "\"output\""},
            {"packing", "\"first_fit\"", "whole documents beside each other"}};
  for (const auto& [prompt, response] : kPrompts)
    if (has(texts, prompt) && has(texts, response))
      return {{"prompt_field", toml_text(prompt), "does not count in the loss"},
              {"response_field", toml_text(response)},
              {"packing", "\"first_fit\"", "whole documents beside each other"}};
  for (const std::string& text : kTexts)
    if (has(texts, text)) return {{"text_field", toml_text(text), "the member that is the text"}};
  if (texts.empty()) throw UserError("its members are no texts");
  return {{"text_field", toml_text(texts.front()), "the member that is the text; one of its texts"}};
} catch (const UserError& error) {
  throw UserError({file}, "its first object: " + error.message() +
                              "; expected JSON objects, one a line, or an array of them");
}

// The first object of lines of JSON, or of a JSON array; "" of other files.
std::string first_object(const std::string& file) {
  if (!has_json_rows(file)) return "";
  const std::vector<uint8_t> head = file_head(file, kHeadBytes);
  JsonRows rows(file, {reinterpret_cast<const char*>(head.data()), head.size()});
  return std::string(rows.next().value_or(""));
}

// About as many tokens as the file has, by those of its beginning.
int64_t tokens_in(const std::string& file, const Tokenizer& tokenizer) {
  const std::vector<uint8_t> head = file_head(file, kHeadBytes);
  const std::size_t tokens =
      tokenizer.encode({reinterpret_cast<const char*>(head.data()), head.size()}, false).size();
  const double bytes_of_token =
      tokens > 0 ? static_cast<double>(head.size()) / static_cast<double>(tokens) : kBytesOfToken;
  return static_cast<int64_t>(static_cast<double>(fs::file_size(file)) / bytes_of_token);
}

}  // namespace

FoundData look_into_texts(const std::string& file, const std::string& recipe_folder,
                          const std::string& tokenizer) {
  if (tokenizer.empty())
    throw UserError({file}, "texts in JSON need a tokenizer: --tokenizer tokenizer.json");
  const std::string reads = tokenizer_file(tokenizer);
  const auto reader = Tokenizer::read(reads);
  const int64_t tokens = tokens_in(file, *reader);
  const std::string first = first_object(file);
  const bool has_lines = !first.empty();
  FoundData data{.name = fs::path(file).stem(),
                 .found = std::string(has_lines ? "JSON objects" : "a text") + " of about " +
                          grouped(tokens) + " tokens",
                 .samples = SampleKind::kTokens};
  data.sequence_length = sequence_for(tokens, file);
  data.count = tokens * 9 / 10 / data.sequence_length;
  data.vocabulary = vocabulary_for(reader->vocab_size());
  RecipeLines lines = {
      {"kind", "\"text\"", data.found},
      {"path", recipe_path(file, recipe_folder), "relative to this file"},
      {"tokenizer", recipe_path(reads, recipe_folder), std::to_string(reader->vocab_size()) + " tokens"}};
  if (has_lines)
    for (RecipeLine& line : field_lines(file, first)) lines.push_back(std::move(line));
  if (!reader->special_ids().end)
    lines.push_back({"add_eos_token", "false", "the tokenizer does not say which token ends a document"});
  lines.push_back({"sequence_length", std::to_string(data.sequence_length), "tokens of a sample"});
  data.train = data.eval = lines;
  data.train.push_back({"split", "\"train\"", "all but the last tenth of the file"});
  data.eval.push_back({"split", "\"eval\"", "the last tenth"});
  return data;
}

}  // namespace tutti
