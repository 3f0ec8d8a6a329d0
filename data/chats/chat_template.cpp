#include "data/chats/chat_template.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "data/chats/jinja.h"
#include "data/chats/jinja_functions.h"
#include "data/tokenizers/json_place.h"
#include "io/json/json_document.h"
#include "io/json/json_text.h"
#include "io/mapped_file.h"
#include "runtime/error.h"
#include "runtime/printable.h"
#include "runtime/text.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int64_t kMostWork = 2'000'000, kWorkOfByte = 200;
constexpr int64_t kPrompts = 8;  // what the prompts in a chat may take, in the work of the whole chat
constexpr std::size_t kMostMessages = 64;  // of a chat whose prompts are written
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
      for (const Json& element : json) list.push_back(value_of(element, mark));
      return list;
    }
    case Json::value_t::object: {
      jinja::Map map;
      for (const auto& [key, value] : json.items()) map.emplace_back(key, value_of(value, mark));
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

struct Message {
  jinja::Value value;
  bool is_learned = false;
};

Message message_of(const std::string& json) {
  const Json message = json_of(json);
  const ChatSpeaker speaker = speaker_of(message);
  jinja::Map map{{"role", jinja::Value::text(usual_role(speaker.role))}};
  for (const auto& [key, value] : message.items())
    if (key != (message.contains("role") ? "role" : "from"))
      map.emplace_back(key == "value" && !message.contains("content") ? "content" : key,
                       value_of(value, speaker.is_learned ? jinja::kAssistants : jinja::kOthers));
  return {map, speaker.is_learned};
}

// With maps of its own: a template may set members of those that it is given.
jinja::Value copy_of(const jinja::Value& value) {
  if (const jinja::List* list = value.list()) {
    jinja::List copy;
    for (const jinja::Value& element : *list) copy.push_back(copy_of(element));
    return copy;
  }
  if (const jinja::Map* map = value.map()) {
    jinja::Map copy;
    for (const auto& [key, value] : *map) copy.emplace_back(key, copy_of(value));
    return copy;
  }
  return value;
}

TextDocument parts_of(const std::string& text, std::string counts) {
  for (std::size_t i = counts.size(); i-- > 1;)  // such a blank is mostly a part of the first word's token
    if (counts[i] && text[i - 1] == ' ') counts[i - 1] = 1;
  TextDocument parts;
  for (std::size_t begin = 0; begin < counts.size();) {
    const std::size_t end = std::min(counts.find_first_not_of(counts[begin], begin), counts.size());
    parts.push_back({text.substr(begin, end - begin), counts[begin] != 0});
    begin = end;
  }
  return parts;
}

// A chat that a template writes.
class Chat {
 public:
  Chat(const jinja::Node& program, jinja::Map variables, const std::vector<std::string>& messages,
       const std::string& tools)
      : program_(program), variables_(std::move(variables)) {
    std::size_t bytes = tools.size();
    for (const std::string& message : messages) {
      messages_.push_back(message_of(message));
      bytes += message.size();
    }
    work_ = kMostWork + kWorkOfByte * static_cast<int64_t>(bytes);
    variables_.emplace_back(
        "tools", tools.empty() ? jinja::Value(nullptr) : value_of(json_of(tools), jinja::kTemplates));
    variables_.emplace_back("documents", nullptr);
  }

  TextDocument parts() const {
    jinja::Work work{work_};
    const jinja::MarkedText whole = rendered(messages_.size(), false, work);
    const bool is_generated = whole.marks.find(jinja::kGenerated) != std::string::npos;
    std::string counts(whole.chars.size(), '\0');
    for (std::size_t i = 0; i < counts.size(); ++i)
      counts[i] = whole.mark(i) == (is_generated ? jinja::kGenerated : jinja::kAssistants);
    if (!is_generated) {
      count_end(whole, counts);
      if (messages_.size() <= kMostMessages) count_beyond_prompts(whole.chars, counts);
    }
    return parts_of(whole.chars, std::move(counts));
  }

 private:
  // The first `count` messages.
  jinja::MarkedText rendered(std::size_t count, bool with_prompt, jinja::Work& work) const {
    jinja::Map variables;
    for (const auto& [name, value] : variables_) variables.emplace_back(name, copy_of(value));
    jinja::List messages;
    for (std::size_t i = 0; i < count; ++i) messages.push_back(copy_of(messages_[i].value));
    variables.emplace_back("messages", std::move(messages));
    variables.emplace_back("add_generation_prompt", with_prompt);
    return jinja::render(program_, variables, work);
  }

  // What stands behind the last message counts with it.
  void count_end(const jinja::MarkedText& whole, std::string& counts) const {
    if (messages_.empty() || !messages_.back().is_learned) return;
    const std::size_t last = whole.marks.find_last_not_of(jinja::kTemplates);
    if (last != std::string::npos && whole.marks[last] == jinja::kAssistants)
      std::fill(counts.begin() + static_cast<std::ptrdiff_t>(last), counts.end(), '\1');
  }

  // Beside messages whose prompt is not known, counts stay as they are.
  void count_beyond_prompts(const std::string& whole, std::string& counts) const {
    jinja::Work work{kPrompts * work_};
    std::size_t known = 0;
    bool stays = false;
    const auto fill = [&](std::size_t begin, std::size_t end, char value) {
      if (begin < end) std::fill_n(counts.begin() + static_cast<std::ptrdiff_t>(begin), end - begin, value);
    };
    for (std::size_t i = 0; i < messages_.size(); ++i) {
      if (!messages_[i].is_learned) continue;
      const auto said = beyond_prompt(i, whole, work);
      if (said) {
        if (!stays) fill(known, said->first, '\0');
        fill(said->first, said->second, '\1');
        known = std::max(known, said->second);
      }
      stays = !said;
    }
    if (!stays) fill(known, counts.size(), '\0');
  }

  // Where a message of the assistant begins and ends in the whole chat, if the template writes what comes
  // before alike without the rest.
  std::optional<std::pair<std::size_t, std::size_t>> beyond_prompt(std::size_t i, const std::string& whole,
                                                                   jinja::Work& work) const {
    try {
      const std::string prompt = rendered(i, true, work).chars;
      if (!whole.starts_with(prompt)) return std::nullopt;
      const bool is_last = i + 1 == messages_.size();
      const std::string said = is_last ? whole : rendered(i + 1, false, work).chars;
      if (said.size() < prompt.size() || !whole.starts_with(said)) return std::nullopt;
      return std::pair(prompt.size(), said.size());
    } catch (const UserError&) {  // no chat to the template, or too much work
      return std::nullopt;
    }
  }

  const jinja::Node& program_;
  jinja::Map variables_;
  std::vector<Message> messages_;
  int64_t work_ = 0;  // that writing the chat may take
};

// The template of a tokenizer_config.json: a text, or the one called "default" of several.
std::optional<std::string> template_in(const JsonPlace& config) {
  const auto templates = config.find("chat_template");
  if (!templates) return std::nullopt;
  if (!templates->json().is_array()) return templates->text();
  std::string names;
  for (const JsonPlace& named_template : templates->elements()) {
    const std::string name = named_template.at("name").text();
    if (name == "default") return named_template.at("template").text();
    names += (names.empty() ? "" : ", ") + shown(name);
  }
  templates->fail(
      "of its templates (" + names +
      ") none is called default, so none is that of chats; call one so, or give turn, which says how a "
      "message is written");
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
void ChatTemplate::try_out() {
  const TextDocument parts =
      write({R"({"role": "user", "content": "question"})", R"({"role": "assistant", "content": "answer"})"});
  const std::string answer = "answer";
  bool says = false;
  for (const TextPart& part : parts) {
    const std::size_t at = part.counts ? part.text.rfind(answer) : std::string::npos;
    if (at != std::string::npos) behind_answer_ = part.text.substr(at + answer.size());
    says |= at != std::string::npos;
  }
  if (!says) throw UserError("it does not write what an assistant says");
}

TextDocument ChatTemplate::write(const std::vector<std::string>& messages, const std::string& tools) const {
  return Chat(*program_, special_, messages, tools).parts();
}

}  // namespace tutti
