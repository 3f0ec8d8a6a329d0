#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace tutti {

// Small numbers for texts: the first is 0, the next 1. A text that comes from the same address as before is
// found without hashing it; it is compared, so the address may hold another text meanwhile.
class JournalNames {
 public:
  std::optional<uint32_t> find(std::string_view text) {
    Seen& seen = seen_[slot_of(text.data())];
    if (seen.number && seen.text == text) return seen.number;
    return find_by_content(text, seen);
  }
  void add(std::string_view text) {
    numbers_.emplace(texts_.emplace_back(text), static_cast<uint32_t>(numbers_.size()));
  }

 private:
  struct Seen {
    std::string_view text;
    std::optional<uint32_t> number;
  };

  static size_t slot_of(const char* address) {
    return (reinterpret_cast<uintptr_t>(address) * 0x9E3779B97F4A7C15) >> 56;
  }
  std::optional<uint32_t> find_by_content(std::string_view text, Seen& seen) {
    const auto found = numbers_.find(text);
    if (found == numbers_.end()) return std::nullopt;
    seen = {found->first, found->second};
    return found->second;
  }

  std::array<Seen, 256> seen_;
  std::deque<std::string> texts_;
  std::unordered_map<std::string_view, uint32_t> numbers_;
};

}  // namespace tutti
