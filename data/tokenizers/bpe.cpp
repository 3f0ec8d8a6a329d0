#include "data/tokenizers/bpe.h"

#include <algorithm>
#include <bit>
#include <queue>

#include "data/tokenizers/unicode/byte_characters.h"
#include "data/tokenizers/unicode/code_points.h"
#include "runtime/error.h"
#include "runtime/printable.h"

namespace tutti {
namespace {

constexpr char kMarker[] = "\xe2\x96\x81";  // U+2581, with which SentencePiece begins words
constexpr std::size_t kShortWord = 48;      // symbols up to which a scan for the best pair is fastest

}  // namespace

struct Bpe::Symbols final : TokenModel::Workspace {
  // A pair that may be merged, in the queue of long words.
  struct Candidate {
    uint32_t rank;
    int32_t at;
    uint32_t id;
    bool operator>(const Candidate& other) const {
      return rank != other.rank ? rank > other.rank : at > other.at;
    }
  };

  struct Link {
    int32_t before, behind;  // -1: none
    bool merged_away;
  };

  std::vector<uint32_t> ids;
  std::optional<uint32_t> unknown;  // characters in sequence that are unknown, not yet added
  std::string text, bytes;
  std::vector<MergeTable::Merge> merges;
  std::vector<Link> links;
};

MergeTable::MergeTable(std::size_t merges)
    : mask_(std::bit_ceil(std::max<std::size_t>(16, 2 * merges)) - 1), entries_(mask_ + 1) {}

void MergeTable::set(uint32_t first, uint32_t second, Merge merge) {
  std::size_t at = place_of(first, second);
  while (entries_[at].merge.rank != kNoToken &&
         (entries_[at].first != first || entries_[at].second != second))
    at = (at + 1) & mask_;
  entries_[at] = {first, second, merge};
}

Bpe::Bpe(const JsonPlace& place, bool writes_bytes)
    : TokenModel(Vocabulary(place.at("vocab"))),
      writes_bytes_(writes_bytes),
      fuse_unknown_(place.boolean("fuse_unk", false)),
      byte_fallback_(place.boolean("byte_fallback", false)),
      ignore_merges_(place.boolean("ignore_merges", false)),
      prefix_(place.text("continuing_subword_prefix", "")),
      suffix_(place.text("end_of_word_suffix", "")),
      merges_(place.at("merges").elements().size()),
      byte_tokens_(byte_tokens(vocabulary())),
      characters_(0x10000, kNoToken) {
  if (const auto dropout = place.find("dropout"); dropout && dropout->real() != 0)
    dropout->fail("expected null or 0: with dropout, a text has other ids each time");
  unknown_name_ = place.text("unk_token", "");
  marker_is_safe_ =
      vocabulary().id_of(kMarker).has_value() && prefix_.empty() && suffix_.empty() && !ignore_merges_;
  read_merges(place.at("merges"));
  for (const auto& [token, id] : vocabulary().ids()) {
    if (token.empty()) continue;
    const CodePoint point = code_point_at(token.data());
    if (point.bytes == token.size() && point.value < characters_.size()) characters_[point.value] = id;
  }
  for (uint32_t byte = 0; byte < 256; ++byte) {
    std::string character;
    append_byte_character(character, static_cast<unsigned char>(byte));
    written_bytes_[byte] = characters_[code_point_at(character.data()).value];
  }
}

void Bpe::read_merges(const JsonPlace& place) {
  const std::vector<JsonPlace> merges = place.elements();
  uint32_t rank = 0;
  for (const JsonPlace& merge : merges) {
    if (merge.json().is_array()) {
      const std::vector<JsonPlace> pair = merge.elements();
      if (pair.size() != 2) merge.fail("expected two tokens");
      add_merge(merge, pair[0].text(), pair[1].text(), rank++);
      continue;
    }
    const std::string text = merge.text();
    if (text.starts_with("#version")) continue;
    const std::size_t blank = text.find(' ');
    if (blank == text.npos || text.find(' ', blank + 1) != text.npos)
      merge.fail("expected two tokens with a blank between");
    add_merge(merge, text.substr(0, blank), text.substr(blank + 1), rank++);
  }
}

void Bpe::add_merge(const JsonPlace& place, const std::string& first, const std::string& second,
                    uint32_t rank) {
  const auto id_of = [&](const std::string& token) {
    const auto id = vocabulary().id_of(token);
    if (!id) place.fail("'" + shown(token) + "' is not in the vocabulary");
    return *id;
  };
  if (second.size() < prefix_.size()) place.fail("'" + shown(second) + "' does not continue a word");
  const uint32_t first_id = id_of(first), second_id = id_of(second);
  merges_.set(first_id, second_id, {rank, id_of(first + second.substr(prefix_.size()))});
  if (second.starts_with(kMarker) && !first.ends_with(kMarker)) marker_is_safe_ = false;
}

// Words may be cut before a marker behind another character if no merge joins them there.
std::string Bpe::safe_marker() const { return marker_is_safe_ && !writes_bytes_ ? kMarker : ""; }

std::unique_ptr<TokenModel::Workspace> Bpe::make_workspace() const { return std::make_unique<Symbols>(); }

// `tokenizers` adds a pending unknown token behind tokens of bytes that come later.
void Bpe::add_unknown(std::string_view text, Symbols& symbols) const {
  if (byte_fallback_) {
    const auto has_token = [this](char byte) {
      return byte_tokens_[static_cast<unsigned char>(byte)] != kNoToken;
    };
    if (std::ranges::all_of(text, has_token)) {
      for (const char byte : text) symbols.ids.push_back(byte_tokens_[static_cast<unsigned char>(byte)]);
      return;
    }
  }
  if (unknown_name_.empty()) return;
  const auto unknown = vocabulary().id_of(unknown_name_);
  if (!unknown)
    throw UserError("a tokenizer does not know '" + shown(text) + "', and its token for unknown texts, '" +
                    shown(unknown_name_) + "', is not in its vocabulary");
  if (symbols.unknown && !fuse_unknown_) symbols.ids.push_back(*symbols.unknown);
  symbols.unknown = unknown;
}

void Bpe::add_character(std::string_view character, bool first, bool last, Symbols& symbols) const {
  std::optional<uint32_t> id;
  const uint32_t code_point = code_point_at(character.data()).value;
  if (prefix_.empty() && suffix_.empty() && code_point < characters_.size()) {
    if (characters_[code_point] != kNoToken) id = characters_[code_point];
  } else {
    symbols.bytes = first ? "" : prefix_;
    symbols.bytes += character;
    if (last) symbols.bytes += suffix_;
    character = symbols.bytes;
    id = vocabulary().id_of(character);
  }
  if (!id) return add_unknown(character, symbols);
  if (symbols.unknown) symbols.ids.push_back(*symbols.unknown);
  symbols.unknown.reset();
  symbols.ids.push_back(*id);
}

void Bpe::find_symbols(std::string_view word, Symbols& symbols) const {
  symbols.ids.clear();
  symbols.unknown.reset();
  for (std::size_t at = 0; at < word.size();) {
    const std::size_t bytes = code_point_at(word.data() + at).bytes;
    add_character(word.substr(at, bytes), at == 0, at + bytes == word.size(), symbols);
    at += bytes;
  }
  if (symbols.unknown) symbols.ids.push_back(*symbols.unknown);
}

void Bpe::encode(std::string_view word, Workspace& workspace, std::vector<uint32_t>& ids) const {
  auto& symbols = static_cast<Symbols&>(workspace);
  const bool all_bytes_known =
      writes_bytes_ && prefix_.empty() && suffix_.empty() && std::ranges::all_of(word, [this](char byte) {
        return written_bytes_[static_cast<unsigned char>(byte)] != kNoToken;
      });
  if (writes_bytes_ && (ignore_merges_ || !all_bytes_known)) {
    symbols.text.clear();
    for (const char byte : word) append_byte_character(symbols.text, static_cast<unsigned char>(byte));
  }
  const std::string_view written = writes_bytes_ ? std::string_view(symbols.text) : word;
  if (ignore_merges_)
    if (const auto id = vocabulary().id_of(written)) return ids.push_back(*id);
  if (all_bytes_known) {
    symbols.ids.resize(word.size());
    for (std::size_t i = 0; i < word.size(); ++i)
      symbols.ids[i] = written_bytes_[static_cast<unsigned char>(word[i])];
  } else {
    find_symbols(written, symbols);
  }
  symbols.ids.size() <= kShortWord ? merge_short(symbols, ids) : merge_long(symbols, ids);
}

void Bpe::merge_short(Symbols& symbols, std::vector<uint32_t>& ids) const {
  auto& tokens = symbols.ids;
  auto& merges = symbols.merges;  // of each token with the next
  merges.resize(tokens.size());
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i) merges[i] = merges_.find(tokens[i], tokens[i + 1]);
  std::size_t size = tokens.size();
  while (size > 1) {
    std::size_t best = 0;
    for (std::size_t i = 1; i + 1 < size; ++i)
      if (merges[i].rank < merges[best].rank) best = i;
    if (merges[best].rank == kNoToken) break;
    tokens[best] = merges[best].id;
    std::copy(tokens.begin() + static_cast<std::ptrdiff_t>(best) + 2,
              tokens.begin() + static_cast<std::ptrdiff_t>(size),
              tokens.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    std::copy(merges.begin() + static_cast<std::ptrdiff_t>(best) + 2,
              merges.begin() + static_cast<std::ptrdiff_t>(size),
              merges.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    --size;
    if (best > 0) merges[best - 1] = merges_.find(tokens[best - 1], tokens[best]);
    if (best + 1 < size) merges[best] = merges_.find(tokens[best], tokens[best + 1]);
  }
  ids.insert(ids.end(), tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(size));
}

void Bpe::merge_long(Symbols& symbols, std::vector<uint32_t>& ids) const {
  auto& tokens = symbols.ids;
  const auto size = static_cast<int32_t>(tokens.size());
  auto& links = symbols.links;
  links.resize(tokens.size());
  for (int32_t i = 0; i < size; ++i) links[i] = {i - 1, i + 1 < size ? i + 1 : -1, false};
  std::priority_queue<Symbols::Candidate, std::vector<Symbols::Candidate>, std::greater<>> queue;
  const auto offer = [&](int32_t at) {
    if (at < 0 || links[at].behind < 0) return;
    const auto merge = merges_.find(tokens[at], tokens[links[at].behind]);
    if (merge.rank != kNoToken) queue.push({merge.rank, at, merge.id});
  };
  for (int32_t i = 0; i < size; ++i) offer(i);
  while (!queue.empty()) {
    const Symbols::Candidate best = queue.top();
    queue.pop();
    Symbols::Link& link = links[best.at];
    if (link.merged_away || link.behind < 0) continue;
    const auto merge = merges_.find(tokens[best.at], tokens[link.behind]);
    if (merge.rank == kNoToken || merge.id != best.id) continue;  // the pair has changed
    tokens[best.at] = merge.id;
    links[link.behind].merged_away = true;
    link.behind = links[link.behind].behind;
    if (link.behind >= 0) links[link.behind].before = best.at;
    offer(link.before);
    offer(best.at);
  }
  for (int32_t i = 0; i >= 0 && i < size; i = links[i].behind) ids.push_back(tokens[i]);
}

std::unique_ptr<const TokenModel> read_bpe(const JsonPlace& place, bool writes_bytes) {
  return std::make_unique<Bpe>(place, writes_bytes);
}

}  // namespace tutti
