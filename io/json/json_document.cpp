#include "io/json/json_document.h"

#include <algorithm>

#include "io/json/json_text.h"
#include "runtime/error.h"
#include "runtime/printable.h"

namespace tutti {
namespace {

using Json = nlohmann::ordered_json;

std::string members_of(const Json& object) {
  std::string names;
  for (const auto& [name, value] : object.items()) names += (names.empty() ? "" : ", ") + printable(name);
  return names.empty() ? "none" : names;
}

// Null if there is none. `in`: the innermost object that was looked at.
const Json* find_member(const Json& object, const std::string& path, const Json*& in) {
  in = &object;
  const auto direct = object.find(path);
  if (direct != object.end()) return &*direct;
  const std::size_t dot = path.find('.');
  const auto outer = dot == std::string::npos ? object.end() : object.find(path.substr(0, dot));
  if (outer == object.end() || !outer->is_object()) return nullptr;
  return find_member(*outer, path.substr(dot + 1), in);
}

const Json& member_of(const Json& object, const std::string& path) {
  const Json* in = nullptr;
  if (const Json* member = find_member(object, path, in)) return *member;
  throw UserError("no member '" + printable(path) + "'; it has " + members_of(*in));
}

const std::string& text_of(const Json& value, const std::string& what) {
  if (!value.is_string()) throw UserError(what + " is no text");
  return value.get_ref<const std::string&>();
}

const Json& content_of(const Json& message) {
  const auto text = message.find(message.contains("content") ? "content" : "value");
  if (text == message.end()) throw UserError("a message lacks 'content'");
  return *text;
}

}  // namespace

ChatSpeaker speaker_of(const nlohmann::ordered_json& message) {
  if (!message.is_object()) throw UserError("a message is no JSON object");
  const auto role = message.find(message.contains("role") ? "role" : "from");
  if (role == message.end()) throw UserError("a message lacks 'role'");
  if (!role->is_string()) throw UserError("the role of a message is no text");
  ChatSpeaker speaker{.role = role->get<std::string>()};
  speaker.is_learned = speaker.role == "assistant" || speaker.role == "gpt";
  const auto weight = message.find("weight");
  if (weight == message.end() || weight->is_null()) return speaker;
  if (!weight->is_number() || (*weight != 0 && *weight != 1))
    throw UserError("the weight of a message is " + shown(weight->dump()) + "; expected 0 or 1");
  if (*weight == 1 && !speaker.is_learned)
    throw UserError("a message of '" + shown(speaker.role) + "' has weight 1; only an assistant's counts");
  speaker.is_learned = *weight == 1;
  return speaker;
}

struct JsonDocument::Parsed {
  Json object;
};

JsonDocument::JsonDocument(std::string_view json) try
    : parsed_(std::make_unique<const Parsed>(parse_json<Json>(json))) {
  if (!parsed_->object.is_object()) throw UserError("expected a JSON object");
} catch (const nlohmann::json::exception& error) {
  throw UserError("not JSON: " + json_problem(error));
}

JsonDocument::~JsonDocument() = default;

std::string JsonDocument::text(const std::string& member) const {
  return text_of(member_of(parsed_->object, member), "member '" + printable(member) + "'");
}

bool JsonDocument::has(const std::string& member) const {
  const Json* in = nullptr;
  return find_member(parsed_->object, member, in);
}

std::variant<int64_t, std::string> JsonDocument::integer_or_text(const std::string& member) const {
  const Json& value = member_of(parsed_->object, member);
  if (value.is_number_integer()) return value.get<int64_t>();
  if (value.is_string()) return value.get<std::string>();
  throw UserError("member '" + printable(member) + "' is neither a whole number nor a text");
}

std::vector<std::string> JsonDocument::list_of_texts(const std::string& member) const {
  const Json& value = member_of(parsed_->object, member);
  const std::string what = "member '" + printable(member) + "'";
  if (!value.is_array()) return {text_of(value, what)};
  std::vector<std::string> all;
  for (const Json& text : value) all.push_back(text_of(text, "an element of " + what));
  return all;
}

std::vector<std::string> JsonDocument::elements(const std::string& member) const {
  const Json& list = member_of(parsed_->object, member);
  if (!list.is_array()) throw UserError("member '" + printable(member) + "' is no list");
  std::vector<std::string> all;
  for (const Json& element : list) all.push_back(element.dump());
  return all;
}

std::string JsonDocument::written(const std::string& member) const {
  const auto value = parsed_->object.find(member);
  return value == parsed_->object.end() || value->is_null() ? "" : value->dump();
}

template <class Is>
std::vector<std::string> JsonDocument::names_of(const Is& is) const {
  std::vector<std::string> names;
  for (const auto& [name, value] : parsed_->object.items())
    if (is(value)) names.push_back(name);
  std::ranges::sort(names);
  return names;
}

std::vector<std::string> JsonDocument::texts() const {
  return names_of([](const Json& value) { return value.is_string(); });
}

std::vector<std::string> JsonDocument::lists() const {
  return names_of([](const Json& value) { return value.is_array(); });
}

std::vector<JsonDocument::Message> JsonDocument::messages(const std::string& member) const {
  const Json& list = member_of(parsed_->object, member);
  if (!list.is_array()) throw UserError("member '" + printable(member) + "' is no list of messages");
  std::vector<Message> messages;
  for (const Json& message : list) {
    if (!message.is_object()) throw UserError("member '" + printable(member) + "' is no list of messages");
    messages.push_back({speaker_of(message), text_of(content_of(message), "the content of a message")});
  }
  return messages;
}

}  // namespace tutti
