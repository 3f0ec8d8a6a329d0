#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/tokenizers/json_place.h"

namespace tutti {

// The largest id that a file may have. (Tables have an entry for each id up to the largest.)
inline constexpr uint32_t kMostTokenId = (1U << 24) - 1;

// Tokens and their ids.
class Vocabulary {
 public:
  Vocabulary() = default;
  // An object of ids by token. Throws UserError with the position of the error.
  explicit Vocabulary(const JsonPlace& place);

  void add(const std::string& token, uint32_t id);

  std::size_t size() const { return ids_.size(); }                        // number of tokens
  uint32_t end() const { return static_cast<uint32_t>(tokens_.size()); }  // the largest id + 1
  std::optional<uint32_t> id_of(std::string_view token) const;
  const std::string* token_of(uint32_t id) const;  // null if there is none
  const auto& ids() const { return ids_; }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  std::unordered_map<std::string, uint32_t, Hash, std::equal_to<>> ids_;
  std::vector<std::optional<std::string>> tokens_;
};

}  // namespace tutti
