#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizers/added_tokens.h"
#include "data/tokenizers/normalizers.h"
#include "data/tokenizers/pre_tokenizers.h"
#include "data/tokenizers/token_model.h"

namespace tutti {

// The parts that make ids of a text, in this order.
struct TokenizerSteps {
  AddedTokens added;
  Normalizers normalizers;
  std::vector<std::unique_ptr<const PreTokenizer>> pre_tokenizers;
  std::unique_ptr<const TokenModel> model;
};

// Ids of recent words: a table of 1 MiB in which a word replaces the older word at its place.
class WordCache {
 public:
  static constexpr std::size_t kMostBytes = 24, kMostIds = 9;  // of a word that is kept

  struct Slot {
    std::array<uint64_t, 3> word;
    uint8_t bytes = 0, ids_count = 0;
    std::array<uint32_t, kMostIds> ids;
  };

  WordCache() : slots_(kSlots) {}

  // The place of a word of 1 to kMostBytes bytes, and whether its ids are there. If not, it is the word's
  // now.
  std::pair<Slot&, bool> find(std::string_view word) {
    const std::array<uint64_t, 3> key = key_of(word);
    uint64_t hash = (key[0] ^ (uint64_t{word.size()} << 56)) * 0x9e3779b97f4a7c15ULL;
    hash = (hash ^ (hash >> 32) ^ key[1]) * 0xc2b2ae3d27d4eb4fULL;
    hash = (hash ^ (hash >> 29) ^ key[2]) * 0x165667b19e3779f9ULL;
    Slot& slot = slots_[hash >> (64 - kSlotBits)];
    if (slot.bytes == word.size() && slot.word == key) return {slot, true};
    slot.word = key;
    slot.bytes = static_cast<uint8_t>(word.size());
    return {slot, false};
  }

 private:
  static constexpr int kSlotBits = 14;
  static constexpr std::size_t kSlots = std::size_t{1} << kSlotBits;

  template <class Number>
  static uint64_t load(const char* from) {
    Number number;
    std::memcpy(&number, from, sizeof number);
    return number;
  }

  // Differs for words of as many bytes; the loads overlap.
  static std::array<uint64_t, 3> key_of(std::string_view word) {
    const char* at = word.data();
    const std::size_t size = word.size();
    if (size > 16) return {load<uint64_t>(at), load<uint64_t>(at + 8), load<uint64_t>(at + size - 8)};
    if (size >= 8) return {load<uint64_t>(at), load<uint64_t>(at + size - 8), 0};
    if (size >= 4) return {load<uint32_t>(at) | load<uint32_t>(at + size - 4) << 32, 0, 0};
    return {load<uint8_t>(at) | load<uint8_t>(at + size / 2) << 8 | load<uint8_t>(at + size - 1) << 16, 0, 0};
  }

  std::vector<Slot> slots_;
};

// Makes ids of texts, for one thread at a time. Refers to the steps.
class TokenEncoder {
 public:
  explicit TokenEncoder(const TokenizerSteps& steps);
  ~TokenEncoder();

  // Appends the ids of a valid UTF-8 text, without special tokens.
  void encode(std::string_view text, std::vector<uint32_t>& ids);

 private:
  class WordSink;
  class Link;

  void encode_part(std::string_view part, bool first);

  const TokenizerSteps& steps_;
  std::unique_ptr<WordSink> words_;
  std::vector<std::unique_ptr<Link>> links_;  // the last step first
  std::string buffers_[2];
  std::vector<uint32_t>* ids_ = nullptr;
};

}  // namespace tutti
