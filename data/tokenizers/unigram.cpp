#include <algorithm>
#include <limits>

#include "data/tokenizers/byte_trie.h"
#include "data/tokenizers/token_model.h"
#include "data/tokenizers/unicode/code_points.h"
#include "runtime/error.h"
#include "runtime/printable.h"

namespace tutti {
namespace {

constexpr double kUnknownPenalty = 10.0;

// The best way to the end of a token, of those that begin earlier.
struct BestPath {
  double score = 0;
  std::size_t begin = 0;
  uint32_t id = 0;
  bool reached = false;
};

struct Lattice final : TokenModel::Workspace {
  std::vector<BestPath> best;
  std::vector<std::pair<std::size_t, std::size_t>> parts;  // begin and end of tokens, the last one first
};

Vocabulary read_scored_tokens(const JsonPlace& place, std::vector<double>& scores) {
  Vocabulary vocabulary;
  const std::vector<JsonPlace> entries = place.elements();
  if (entries.size() > kMostTokenId) place.fail("it has too many tokens");
  for (const JsonPlace& entry : entries) {
    const std::vector<JsonPlace> pair = entry.elements();
    if (pair.size() != 2) entry.fail("expected a token and its score");
    vocabulary.add(pair[0].text(), static_cast<uint32_t>(scores.size()));
    scores.push_back(pair[1].real());
  }
  return vocabulary;
}

// The tokens with the largest sum of scores (Kudo 2018, arXiv:1804.10959), found as SentencePiece's
// unigram_model.cc does; a character that is no token has the lowest score of all less 10. Unknown characters
// in sequence are one token.
class Unigram final : public TokenModel {
 public:
  Unigram(const JsonPlace& place, std::vector<double> scores = {})
      : TokenModel(read_scored_tokens(place.at("vocab"), scores)),
        scores_(std::move(scores)),
        byte_fallback_(place.boolean("byte_fallback", false)),
        byte_tokens_(byte_tokens(vocabulary())) {
    if (const auto unknown = place.find("unk_id")) {
      if (scores_.empty()) unknown->fail("the vocabulary is empty");
      unknown_ = unknown->number(static_cast<uint32_t>(scores_.size()) - 1);
    }
    std::vector<ByteTrie::Entry> entries;
    for (const auto& [token, id] : vocabulary().ids()) entries.emplace_back(token, id);
    trie_ = ByteTrie(std::move(entries));
    double lowest = std::numeric_limits<double>::infinity();
    for (const double score : scores_) lowest = std::min(lowest, score);
    unknown_score_ = lowest - kUnknownPenalty;
  }

  std::unique_ptr<Workspace> make_workspace() const override { return std::make_unique<Lattice>(); }

  void encode(std::string_view word, Workspace& workspace, std::vector<uint32_t>& ids) const override {
    auto& lattice = static_cast<Lattice&>(workspace);
    find_paths(word, lattice.best);
    trace_back(word.size(), lattice);
    for (auto part = lattice.parts.rbegin(); part != lattice.parts.rend(); ++part)
      add_token(word.substr(part->first, part->second - part->first), ids);
  }

 private:
  void find_paths(std::string_view word, std::vector<BestPath>& best) const {
    best.assign(word.size() + 1, {});
    for (std::size_t begin = 0; begin < word.size();) {
      const std::size_t bytes = code_point_at(word.data() + begin).bytes;
      bool has_character = false;
      const double before = best[begin].score;
      const auto offer = [&](std::size_t length, uint32_t id, double score) {
        BestPath& path = best[begin + length];
        if (!path.reached || score + before > path.score) path = {score + before, begin, id, true};
      };
      trie_.for_each_prefix(word.substr(begin), [&](std::size_t length, uint32_t id) {
        offer(length, id, scores_[id]);
        has_character = has_character || length == bytes;
      });
      if (!has_character) offer(bytes, unknown_id(word.substr(begin, bytes)), unknown_score_);
      begin += bytes;
    }
  }

  void trace_back(std::size_t end, Lattice& lattice) const {
    lattice.parts.clear();
    bool last_unknown = false;
    while (end > 0) {
      const BestPath& path = lattice.best[end];
      const bool is_unknown = unknown_ && path.id == *unknown_;
      if (is_unknown && last_unknown)
        lattice.parts.back().first = path.begin;
      else
        lattice.parts.emplace_back(path.begin, end);
      last_unknown = is_unknown;
      end = path.begin;
    }
  }

  void add_token(std::string_view text, std::vector<uint32_t>& ids) const {
    if (const auto id = vocabulary().id_of(text)) return ids.push_back(*id);
    const auto token_of = [this](char byte) { return byte_tokens_[static_cast<unsigned char>(byte)]; };
    const bool as_bytes =
        byte_fallback_ && std::ranges::all_of(text, [&](char byte) { return token_of(byte) != kNoToken; });
    if (!as_bytes) return ids.push_back(unknown_id(text));
    for (const char byte : text) ids.push_back(token_of(byte));
  }

  uint32_t unknown_id(std::string_view text) const {
    if (!unknown_)
      throw UserError("a tokenizer does not know '" + shown(text) + "', and has no unk_id for such texts");
    return *unknown_;
  }

  std::vector<double> scores_;
  bool byte_fallback_;
  std::array<uint32_t, 256> byte_tokens_;
  std::optional<uint32_t> unknown_;
  double unknown_score_ = 0;
  ByteTrie trie_;
};

}  // namespace

std::unique_ptr<const TokenModel> read_unigram(const JsonPlace& place) {
  return std::make_unique<Unigram>(place);
}

}  // namespace tutti
