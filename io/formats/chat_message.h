#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace tutti {

// Who says a message of a chat, and if a model is to learn it: an assistant's, unless OpenAI's member
// `weight` is 0.
struct ChatSpeaker {
  std::string role;  // as it stands under "role", or ShareGPT's "from"
  bool is_learned = false;
};

// Throws UserError that says what is wrong, without the place.
ChatSpeaker speaker_of(const nlohmann::ordered_json& message);

}  // namespace tutti
