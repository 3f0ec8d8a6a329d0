#include <algorithm>
#include <filesystem>
#include <optional>

#include "data/proposals/look.h"
#include "data/tokenizers/tokenizer.h"
#include "data/tokenizers/tokenizer_files.h"
#include "io/formats/file_head.h"
#include "io/json/json_document.h"
#include "io/json_rows.h"
#include "runtime/error.h"
#include "runtime/printable.h"
#include "runtime/text.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kHeadBytes = 1 << 20;
constexpr double kBytesOfToken = 4;  // where no text was looked at

// Names of members, as datasets have them: a document, or a prompt and its response, or a chat.
const std::vector<std::string> kTexts = {"text", "content", "body", "document"};
const std::vector<std::pair<std::string, std::string>> kPrompts = {
    {"prompt", "response"}, {"prompt", "completion"}, {"instruction", "output"}, {"instruction", "response"},
    {"question", "answer"}, {"question", "response"}, {"query", "response"},     {"input", "output"}};
const std::vector<std::string> kBehindInstructions = {"input", "context"};
const std::vector<std::string> kChats = {"messages", "conversations"};

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::count(names, name) > 0;
}

constexpr const char* kExpectedObjects = "; expected JSON objects, one a line, or an array of them";

// Names of an object's members.
struct MemberNames {
  std::vector<std::string> texts, lists;
};

MemberNames member_names(const std::string& file, const std::string& object) try {
  const JsonDocument document(object);
  return {document.texts(), document.lists()};
} catch (const UserError& error) {
  throw UserError({file}, "its first object: " + error.message() + kExpectedObjects);
}

// "'a', 'b'"
std::string quoted_names(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "'" : ", '") + shown(name) + '\'';
  return text;
}

// The recipe's lines about members, and which members these are.
struct ReadMembers {
  RecipeLines lines;
  std::vector<std::string> names;
};

ReadMembers read_pair(const std::vector<std::string>& prompts, const std::string& response) {
  ReadMembers read;
  if (prompts.size() == 1)
    read.lines.push_back({"prompt_field", toml_text(prompts[0]), "does not count in the loss"});
  else
    read.lines.push_back(
        {"prompt_field", toml_texts(prompts), "a line each, if not empty; does not count in the loss"});
  read.lines.push_back({"response_field", toml_text(response)});
  read.lines.push_back({"packing", "\"first_fit\"", "whole documents beside each other"});
  read.names = prompts;
  read.names.push_back(response);
  return read;
}

// A prompt and its response by names that are known.
std::optional<ReadMembers> known_pair(const std::vector<std::string>& texts) {
  for (const auto& [prompt, response] : kPrompts) {
    if (!has(texts, prompt) || !has(texts, response)) continue;
    std::vector<std::string> prompts = {prompt};
    if (prompt == "instruction")
      for (const std::string& more : kBehindInstructions)
        if (has(texts, more)) prompts.push_back(more);
    return read_pair(prompts, response);
  }
  return std::nullopt;
}

ReadMembers members_to_read(const std::string& file, const MemberNames& members) {
  ReadMembers read;
  for (const std::string& chat : kChats) {
    if (!has(members.lists, chat)) continue;
    read.lines.push_back(
        {"messages_field", toml_text(chat), "a chat; the assistant's messages count in the loss"});
    read.lines.push_back({"packing", "\"first_fit\"", "whole documents beside each other"});
    read.names = {chat};
    return read;
  }
  if (const auto pair = known_pair(members.texts)) return *pair;
  for (const std::string& text : kTexts)
    if (read.names.empty() && has(members.texts, text)) read.names = {text};
  if (members.texts.empty())
    throw UserError({file}, std::string("its first object: its members are no texts") + kExpectedObjects);
  if (read.names.empty() && members.texts.size() > 1)
    throw UserError({file},
                    "its first object has several texts, of no known names: " + quoted_names(members.texts) +
                        "; a recipe's text_field says which to read, or prompt_field and "
                        "response_field (docs/data.md)");
  if (read.names.empty()) read.names = members.texts;
  read.lines.push_back({"text_field", toml_text(read.names.front()), "the member that is the text"});
  return read;
}

// "" if every text and list is read.
std::string unread_members(const MemberNames& members, const ReadMembers& read) {
  std::vector<std::string> left_out;
  for (const auto* names : {&members.texts, &members.lists})
    for (const std::string& name : *names)
      if (!has(read.names, name)) left_out.push_back(name);
  return left_out.empty() ? "" : "members that are not read: " + quoted_names(left_out);
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

Proposal look_at_texts(const std::string& file, const std::string& tokenizer) {
  if (tokenizer.empty())
    throw UserError({file}, "texts in JSON need a tokenizer: --tokenizer tokenizer.json");
  const std::string tokenizer_path = tokenizer_file(tokenizer);
  const auto reader = Tokenizer::read(tokenizer_path);
  const int64_t tokens = tokens_in(file, *reader);
  const std::string first = first_object(file);
  const int64_t length = sequence_for(tokens, file);
  Proposal proposal{
      .name = fs::path(file).stem(),
      .summary =
          (first.empty() ? "a text of about " : "JSON objects of about ") + grouped(tokens) + " tokens",
      .count = tokens * 9 / 10 / length,
      .samples = TokenSamples{.sequence_length = length, .vocabulary = vocabulary_for(reader->vocab_size())}};
  RecipeLines lines = {
      {"kind", "\"text\"", proposal.summary},
      path_line(file),
      path_line(tokenizer_path, std::to_string(reader->vocab_size()) + " tokens", "tokenizer")};
  if (!first.empty()) {
    const MemberNames members = member_names(file, first);
    const ReadMembers read = members_to_read(file, members);
    lines.insert(lines.end(), read.lines.begin(), read.lines.end());
    if (const std::string unread = unread_members(members, read); !unread.empty())
      proposal.remarks.push_back(file + ": " + unread);
  }
  if (!reader->special_ids().end)
    lines.push_back({"add_eos_token", "false", "the tokenizer does not say which token ends a document"});
  lines.push_back({"sequence_length", std::to_string(length), "tokens of a sample"});
  proposal.train = proposal.eval = lines;
  proposal.train.push_back({"split", "\"train\"", "all but the last tenth of the file"});
  proposal.eval.push_back({"split", "\"eval\"", "the last tenth"});
  return proposal;
}

}  // namespace tutti
