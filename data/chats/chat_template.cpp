#include "data/chats/chat_template.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "data/chats/jinja.h"
#include "data/tokenizers/json_place.h"
#include "io/formats/json_text.h"
#include "io/mapped_file.h"
#include "runtime/error.h"
#include "runtime/text.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int64_t kMostWork = 2'000'000, kWorkOfByte = 200;
constexpr std::size_t kLongestTemplate = std::size_t{1} << 20;

jinja::Value value_of(const Json& json, char mark) {
  switch (json.type()) {
    case Json::value_t::string: {
      jinja::MarkedText text{json.get<std::string>()};
      if (mark != jinja::kTemplates) text.marks.assign(text.chars.size(), mark);
      return text;
    }
    case Json::value_t::boolean:
      return json.get<bool>();
    case Json::value_t::number_integer:
    case Json::value_t::number_unsigned:
      return json.get<int64_t>();
    case Json::value_t::number_float:
      return json.get<double>();
    case Json::value_t::array: {
      jinja::List list;
      for (const Json& one : json) list.push_back(value_of(one, mark));
      return list;
    }
    case Json::value_t::object: {
      jinja::Map map;
      for (const auto& [key, one] : json.items()) map.emplace_back(key, value_of(one, mark));
      return map;
    }
    default:
      return nullptr;
  }
}

Json json_of(const std::string& text) try {
  return parse_json<Json>(text);
} catch (const nlohmann::json::exception& error) {
  throw UserError("not JSON: " + json_problem(error));
}

// The role by the name that templates know.
std::string usual_role(const std::string& role) {
  return role == "human" ? "user" : role == "gpt" ? "assistant" : role;
}

jinja::Value message_of(const std::string& json) {
  const Json message = json_of(json);
  const auto role = message.find(message.contains("role") ? "role" : "from");
  if (role == message.end() || !role->is_string()) throw UserError("a message lacks 'role'");
  const std::string name = usual_role(role->get<std::string>());
  jinja::Map map{{"role", jinja::Value::text(name)}};
  for (const auto& [key, value] : message.items())
    if (&value != &*role)
      map.emplace_back(key == "value" && !message.contains("content") ? "content" : key,
                       value_of(value, name == "assistant" ? jinja::kAssistants : jinja::kOthers));
  return map;
}

TextDocument parts_of(const jinja::MarkedText& text) {
  const bool is_marked = text.marks.find(jinja::kGenerated) != std::string::npos;
  std::string counts(text.chars.size(), '\0');
  for (std::size_t i = 0; i < counts.size(); ++i)
    counts[i] = text.mark(i) == (is_marked ? jinja::kGenerated : jinja::kAssistants);
  for (std::size_t i = counts.size(); i-- > 1;)  // such a blank is mostly a part of the first word's token
    if (counts[i] && text.chars[i - 1] == ' ') counts[i - 1] = 1;
  TextDocument parts;
  for (std::size_t begin = 0; begin < counts.size();) {
    const std::size_t end = std::min(counts.find_first_not_of(counts[begin], begin), counts.size());
    parts.push_back({text.chars.substr(begin, end - begin), counts[begin] != 0});
    begin = end;
  }
  return parts;
}

// The template of a tokenizer_config.json: a text, or the one called "default" of several.
std::optional<std::string> template_in(const JsonPlace& config) {
  const auto found = config.find("chat_template");
  if (!found) return std::nullopt;
  if (!found->json().is_array()) return found->text();
  for (const JsonPlace& one : found->elements())
    if (one.at("name").text() == "default") return one.at("template").text();
  return std::nullopt;
}

std::string text_of_file(const std::string& path) {
  const MappedFile file(path);
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

}  // namespace

std::shared_ptr<const ChatTemplate> ChatTemplate::beside(const Tokenizer& tokenizer) {
  const fs::path folder = fs::path(tokenizer.path()).parent_path();
  std::string path = (folder / "chat_template.jinja").string();
  std::optional<std::string> source;
  if (fs::exists(path)) {
    source = text_of_file(path);
  } else if (path = (folder / "tokenizer_config.json").string(); fs::exists(path)) {
    source = template_in(JsonFile(path).root());
  }
  if (!source) return nullptr;
  try {
    return std::make_shared<const ChatTemplate>(*source, tokenizer);
  } catch (const UserError& error) {
    throw UserError({path}, "its chat template cannot be used: " + error.message() +
                                "; give turn, which says how a message is written");
  }
}

ChatTemplate::ChatTemplate(const std::string& source, const Tokenizer& tokenizer) : source_(source) {
  if (source.size() > kLongestTemplate || !is_utf8(source))
    throw UserError("no text in UTF-8 of at most " + std::to_string(kLongestTemplate) + " bytes");
  program_ = std::make_shared<const jinja::Node>(jinja::parse_template(source));
  const SpecialIds& ids = tokenizer.special_ids();
  const std::pair<const char*, std::optional<uint32_t>> tokens[] = {
      {"bos_token", ids.begin},   {"eos_token", ids.end},   {"pad_token", ids.pad},
      {"unk_token", ids.unknown}, {"mask_token", ids.mask}, {"cls_token", ids.classify},
      {"sep_token", ids.separate}};
  for (const auto& [name, id] : tokens)
    if (const auto token = id ? tokenizer.token_of(*id) : std::nullopt)
      special_.emplace_back(name, jinja::Value::text(*token));
  try_out();
}

// The least chat that all templates write.
void ChatTemplate::try_out() const {
  const TextDocument parts =
      write({R"({"role": "user", "content": "question"})", R"({"role": "assistant", "content": "answer"})"});
  const auto says = [](const TextPart& part) {
    return part.counts && part.text.find("answer") != std::string::npos;
  };
  if (!std::ranges::any_of(parts, says)) throw UserError("it does not write what an assistant says");
}

TextDocument ChatTemplate::write(const std::vector<std::string>& messages, const std::string& tools) const {
  jinja::Map variables = special_;
  jinja::List list;
  std::size_t bytes = tools.size();
  for (const std::string& one : messages) {
    list.push_back(message_of(one));
    bytes += one.size();
  }
  variables.emplace_back("messages", std::move(list));
  variables.emplace_back("tools",
                         tools.empty() ? jinja::Value(nullptr) : value_of(json_of(tools), jinja::kTemplates));
  variables.emplace_back("documents", nullptr);
  variables.emplace_back("add_generation_prompt", false);
  return parts_of(jinja::render(*program_, variables, kMostWork + kWorkOfByte * static_cast<int64_t>(bytes)));
}

}  // namespace tutti
