#include "data/texts/tokens_of_parts.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

namespace tutti {
namespace {

using Ids = std::vector<uint32_t>;

constexpr std::size_t kFewParts = 5;  // up to here, encoding all the text before a part is no slower

bool begins_with(const Ids& whole, const Ids& part, std::size_t at = 0) {
  return at + part.size() <= whole.size() &&
         std::equal(part.begin(), part.end(), whole.begin() + static_cast<std::ptrdiff_t>(at));
}

class Cutter {
 public:
  Cutter(const Tokenizer& tokenizer, const TextDocument& parts) : tokenizer_(tokenizer), parts_(parts) {
    std::string text;
    for (const TextPart& part : parts) text += part.text;
    whole_ = encode(text);
  }

  std::vector<Ids> tokens() const {
    std::vector<Ids> tokens;
    if (const auto ends = ends_of_parts()) {
      std::size_t begin = 0;
      for (const std::size_t end : *ends) {
        tokens.emplace_back(whole_.begin() + static_cast<std::ptrdiff_t>(begin),
                            whole_.begin() + static_cast<std::ptrdiff_t>(end));
        begin = end;
      }
    } else {
      for (const TextPart& part : parts_) tokens.push_back(encode(part.text));
    }
    return tokens;
  }

 private:
  Ids encode(const std::string& text) const { return tokenizer_.encode(text, false); }

  // Where the tokens of each part end among those of the whole text; none if a token lies in two parts.
  std::optional<std::vector<std::size_t>> ends_of_parts() const {
    std::vector<std::size_t> ends;
    std::string before;
    Neighbours near;
    for (std::size_t i = 0; i + 1 < parts_.size(); ++i) {
      before += parts_[i].text;
      const std::size_t begin = ends.empty() ? 0 : ends.back();
      std::optional<std::size_t> end;
      if (parts_.size() > kFewParts) end = near_end(near, i, begin);
      if (!end) {
        const Ids until = encode(before);
        if (!begins_with(whole_, until) || until.size() < begin) return std::nullopt;
        end = until.size();
      }
      ends.push_back(*end);
    }
    if (!parts_.empty()) ends.push_back(whole_.size());
    return ends;
  }

  // What near_end knows of the part: its tokens alone, and behind the part before it.
  struct Neighbours {
    std::optional<Ids> alone, behind;
  };

  // The end of part i, which begins at a token, by the parts beside it; none if these do not show it. Moves
  // on to the next part.
  std::optional<std::size_t> near_end(Neighbours& near, std::size_t i, std::size_t begin) const {
    if (i == 0) near.alone = near.behind = encode(parts_[0].text);
    const Ids pair = encode(parts_[i].text + parts_[i + 1].text);
    const Neighbours part = std::exchange(near, {encode(parts_[i + 1].text), std::nullopt});
    if (!begins_with(pair, *part.alone)) return std::nullopt;
    near.behind = Ids(pair.begin() + std::ssize(*part.alone), pair.end());
    if (!part.behind || !begins_with(whole_, *part.behind, begin)) return std::nullopt;
    return begin + part.behind->size();
  }

  const Tokenizer& tokenizer_;
  const TextDocument& parts_;
  Ids whole_;
};

}  // namespace

std::vector<std::vector<uint32_t>> tokens_of_parts(const Tokenizer& tokenizer, const TextDocument& parts) {
  if (parts.size() == 1) return {tokenizer.encode(parts[0].text, false)};
  return Cutter(tokenizer, parts).tokens();
}

}  // namespace tutti
