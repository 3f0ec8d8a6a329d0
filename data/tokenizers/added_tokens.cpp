#include "data/tokenizers/added_tokens.h"

#include <algorithm>
#include <tuple>

#include "data/tokenizers/unicode/code_points.h"

namespace tutti {
namespace {

bool has(CodePoint point, CharFlag flag) { return unicode().has(point.value, flag); }

bool stands_alone(std::string_view text, std::size_t begin, std::size_t end) {
  if (begin > 0 && has(code_point_before(text, begin), kWord)) return false;
  return end == text.size() || !has(code_point_at(text.data() + end), kWord);
}

std::size_t begin_of_space(std::string_view text, std::size_t at) {
  while (at > 0 && has(code_point_before(text, at), kWhiteSpace)) at -= code_point_before(text, at).bytes;
  return at;
}

std::size_t end_of_space(std::string_view text, std::size_t at) {
  while (at < text.size() && has(code_point_at(text.data() + at), kWhiteSpace))
    at += code_point_at(text.data() + at).bytes;
  return at;
}

AddedToken read_added_token(const JsonPlace& place) {
  AddedToken token{.content = place.at("content").text()};
  token.special = place.at("special").boolean();
  token.single_word = place.at("single_word").boolean();
  token.lstrip = place.at("lstrip").boolean();
  token.rstrip = place.at("rstrip").boolean();
  token.normalized = place.at("normalized").boolean();
  return token;
}

}  // namespace

AddedTokenFinder::AddedTokenFinder(std::vector<std::pair<std::string, AddedToken>> tokens)
    : tokens_(std::move(tokens)) {
  std::vector<ByteTrie::Entry> entries;
  for (const auto& [text, token] : tokens_) {
    entries.emplace_back(text, static_cast<uint32_t>(entries.size()));
    const auto first = static_cast<unsigned char>(text[0]);
    if (!is_first_byte_[first]) first_bytes_ += text[0];
    is_first_byte_[first] = true;
  }
  std::ranges::reverse(entries);  // of equal texts, the first one counts
  trie_ = ByteTrie(std::move(entries));
}

bool AddedTokenFinder::accept(std::string_view text, std::size_t done, std::size_t at, std::size_t bytes,
                              Place& place) const {
  const AddedToken& token = tokens_[place.token].second;
  place.begin = at;
  place.end = at + bytes;
  place.search = place.end;
  if (token.single_word && !stands_alone(text, at, place.end)) return false;
  if (token.lstrip) place.begin = std::max(begin_of_space(text, at), done);
  if (token.rstrip) place.end = end_of_space(text, place.end);
  return true;
}

// `tokenizers` looks for all tokens first. So a token may begin in the white space that the last one took.
bool AddedTokenFinder::find_next(std::string_view text, std::size_t done, Place& place) const {
  if (trie_.empty()) return false;
  std::size_t at = place.search;
  while (at < text.size()) {
    if (first_bytes_.size() == 1) {
      at = text.find(first_bytes_[0], at);
      if (at == text.npos) return false;
    } else if (!is_first_byte_[static_cast<unsigned char>(text[at])]) {
      ++at;
      continue;
    }
    std::size_t bytes = 0;
    std::tie(bytes, place.token) = trie_.longest(text.substr(at));
    if (bytes == 0) {
      ++at;
      continue;
    }
    if (accept(text, done, at, bytes, place)) return true;
    at = place.search;
  }
  return false;
}

AddedTokens::AddedTokens(const JsonPlace& place, const Vocabulary& vocabulary,
                         const Normalizers& normalizers) {
  std::vector<AddedToken> special, others;
  auto next_id = static_cast<uint32_t>(vocabulary.size());
  for (const JsonPlace& entry : place.elements()) {
    AddedToken token = read_added_token(entry);
    if (token.content.empty()) continue;
    if (token.special && special_.insert(token.content).second) special.push_back(token);
    const auto added = vocabulary_.id_of(token.content);
    const auto known = added ? added : vocabulary.id_of(token.content);
    token.id = known ? *known : next_id++;
    if (token.id > kMostTokenId) entry.fail("its id would be too large");
    vocabulary_.add(token.content, token.id);
    if (!special_.contains(token.content)) others.push_back(token);
  }
  std::vector<std::pair<std::string, AddedToken>> in_text, in_normalized;
  special.insert(special.end(), others.begin(), others.end());
  for (AddedToken& token : special) {
    token.id = *vocabulary_.id_of(token.content);
    if (!token.normalized) {
      in_text.emplace_back(token.content, token);
      continue;
    }
    std::string buffers[2];
    const std::string text(apply_normalizers(normalizers, token.content, buffers).text);
    if (text.empty()) place.fail("nothing is left of '" + token.content + "' when it is normalized");
    in_normalized.emplace_back(text, token);
  }
  in_text_ = AddedTokenFinder(std::move(in_text));
  in_normalized_ = AddedTokenFinder(std::move(in_normalized));
}

std::vector<uint32_t> AddedTokens::special_ids() const {
  std::vector<uint32_t> ids;
  for (const std::string& token : special_) ids.push_back(*vocabulary_.id_of(token));
  return ids;
}

}  // namespace tutti
