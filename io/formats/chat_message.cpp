#include "io/formats/chat_message.h"

#include "io/formats/json_text.h"
#include "runtime/error.h"
#include "runtime/printable.h"

namespace tutti {

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

}  // namespace tutti
