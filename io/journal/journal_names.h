#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace tutti {

// Numbers names in the order of their first use, from 0. A cache by address finds static texts without
// hashing them; it compares the text, since an address may be reused.
class JournalNames {
 public:
  std::optional<uint32_t> find(std::string_view text) {
    Cached& cached = cached_[slot_of(text.data())];
    if (cached.number && cached.text == text) return cached.number;
    return find_by_content(text, cached);
  }
  void add(std::string_view text) {
    numbers_.emplace(texts_.emplace_back(text), static_cast<uint32_t>(numbers_.size()));
  }

 private:
  struct Cached {
    std::string_view text;
    std::optional<uint32_t> number;
  };

  static size_t slot_of(const char* address) {
    return (reinterpret_cast<uintptr_t>(address) * 0x9E3779B97F4A7C15) >> 56;
  }
  std::optional<uint32_t> find_by_content(std::string_view text, Cached& cached) {
    const auto found = numbers_.find(text);
    if (found == numbers_.end()) return std::nullopt;
    cached = {found->first, found->second};
    return found->second;
  }

  std::array<Cached, 256> cached_;
  std::deque<std::string> texts_;
  std::unordered_map<std::string_view, uint32_t> numbers_;
};

}  // namespace tutti
