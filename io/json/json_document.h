#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace tutti {

// Who says a message of a chat, and if a model learns the message: an assistant's, unless OpenAI's member
// `weight` is 0.
struct ChatSpeaker {
  std::string role;  // the text under "role", or ShareGPT's "from"
  bool is_learned = false;
};

// Throws UserError with the reason, without the place.
ChatSpeaker speaker_of(const nlohmann::ordered_json& message);

// A JSON object with texts, such as a line of a JSON lines file. Throws UserError with the reason, without
// the file.
class JsonDocument {
 public:
  explicit JsonDocument(std::string_view json);
  ~JsonDocument();
  JsonDocument(const JsonDocument&) = delete;
  JsonDocument& operator=(const JsonDocument&) = delete;

  // A member that is a text; members of objects within by dots: "meta.text".
  std::string text(const std::string& member) const;

  bool has(const std::string& member) const;  // by dots, as of text()
  // A member that is a whole number or a text; one that is a text, or a list of texts.
  std::variant<int64_t, std::string> integer_or_text(const std::string& member) const;
  std::vector<std::string> list_of_texts(const std::string& member) const;

  // The elements of a list, each as JSON.
  std::vector<std::string> elements(const std::string& member) const;
  // The member as JSON; "" if there is none, or null.
  std::string written(const std::string& member) const;

  // The names of members that are texts, and of members that are lists, in alphabetical order.
  std::vector<std::string> texts() const;
  std::vector<std::string> lists() const;

  // A member that is a list of messages: {"role": "user", "content": "..."}, or ShareGPT's "from" and
  // "value".
  struct Message {
    ChatSpeaker speaker;
    std::string content;
  };
  std::vector<Message> messages(const std::string& member) const;

 private:
  template <class Is>
  std::vector<std::string> names_of(const Is& is) const;

  struct Parsed;
  std::unique_ptr<const Parsed> parsed_;
};

}  // namespace tutti
