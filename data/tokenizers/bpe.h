#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "data/tokenizers/token_model.h"

namespace tutti {

// The merges of a BPE model, by pair of ids: a hash table with open addressing.
class MergeTable {
 public:
  struct Merge {
    uint32_t rank = kNoToken;  // the lowest is merged first; kNoToken: the pair is not merged
    uint32_t id = 0;           // of the merged token
  };

  explicit MergeTable(std::size_t merges);
  void set(uint32_t first, uint32_t second, Merge merge);  // replaces an earlier one
  Merge find(uint32_t first, uint32_t second) const {
    for (std::size_t at = place_of(first, second);; at = (at + 1) & mask_) {
      const Entry& entry = entries_[at];
      if (entry.first == first && entry.second == second) return entry.merge;
      if (entry.merge.rank == kNoToken) return {};
    }
  }

 private:
  struct Entry {
    uint32_t first = kNoToken, second = kNoToken;
    Merge merge;
  };

  std::size_t place_of(uint32_t first, uint32_t second) const {
    const uint64_t key = (uint64_t{first} << 32 | second) * 0x9e3779b97f4a7c15ULL;
    return static_cast<std::size_t>(key >> 32) & mask_;
  }

  std::size_t mask_;
  std::vector<Entry> entries_;
};

// Byte pair encoding as in `tokenizers`: a word's characters become tokens (with `byte_fallback`, tokens of
// their bytes), and of all pairs the pair of the lowest rank is merged, the leftmost first, until no pair is
// left. `dropout` other than 0, which makes ids random, is refused.
class Bpe final : public TokenModel {
 public:
  Bpe(const JsonPlace& place, bool writes_bytes);

  std::unique_ptr<Workspace> make_workspace() const override;
  void encode(std::string_view word, Workspace& workspace, std::vector<uint32_t>& ids) const override;
  std::string safe_marker() const override;

 private:
  struct Symbols;

  void read_merges(const JsonPlace& place);
  void add_merge(const JsonPlace& place, const std::string& first, const std::string& second, uint32_t rank);
  void find_symbols(std::string_view word, Symbols& symbols) const;
  void add_character(std::string_view character, bool first, bool last, Symbols& symbols) const;
  void add_unknown(std::string_view text, Symbols& symbols) const;
  void merge_short(Symbols& symbols, std::vector<uint32_t>& ids) const;
  void merge_long(Symbols& symbols, std::vector<uint32_t>& ids) const;

  bool writes_bytes_;
  bool fuse_unknown_, byte_fallback_, ignore_merges_;
  std::string unknown_name_;     // "": unknown characters are left out
  std::string prefix_, suffix_;  // of characters that continue a word, and of its last character
  MergeTable merges_;
  std::array<uint32_t, 256> byte_tokens_;    // of "<0x00>" to "<0xFF>"
  std::array<uint32_t, 256> written_bytes_;  // of bytes as characters, if words come as bytes
  std::vector<uint32_t> characters_;         // of the characters below U+10000
  bool marker_is_safe_;
};

}  // namespace tutti
