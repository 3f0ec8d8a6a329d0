#include "data/tokenizers/vocabulary.h"

#include "runtime/printable.h"

namespace tutti {

Vocabulary::Vocabulary(const JsonPlace& place) {
  ids_.reserve(place.object().size());
  for (const auto& [token, id] : place.json().items()) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() > kMostTokenId)
      place.fail("token '" + shown(token) + "': expected an id from 0 to " + std::to_string(kMostTokenId));
    add(token, id.get<uint32_t>());
  }
}

void Vocabulary::add(const std::string& token, uint32_t id) {
  ids_[token] = id;
  if (id >= tokens_.size()) tokens_.resize(id + 1);
  tokens_[id] = token;
}

std::optional<uint32_t> Vocabulary::id_of(std::string_view token) const {
  const auto id = ids_.find(token);
  return id == ids_.end() ? std::nullopt : std::optional(id->second);
}

const std::string* Vocabulary::token_of(uint32_t id) const {
  return id < tokens_.size() && tokens_[id] ? &*tokens_[id] : nullptr;
}

}  // namespace tutti
