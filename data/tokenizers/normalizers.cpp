#include "data/tokenizers/normalizers.h"

#include <cstring>
#include <functional>
#include <optional>

#include "data/tokenizers/pattern.h"
#include "data/tokenizers/text_pattern.h"
#include "data/tokenizers/unicode/byte_characters.h"
#include "data/tokenizers/unicode/code_points.h"
#include "data/tokenizers/unicode/graphemes.h"
#include "data/tokenizers/unicode/normal_form.h"
#include "runtime/error.h"
#include "runtime/text.h"

namespace tutti {
namespace {

constexpr std::size_t kLongestWholeGrapheme = 5;  // bytes

int digit_of(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

std::optional<std::string> from_base64(std::string_view text) {
  while (text.ends_with('=')) text.remove_suffix(1);
  std::string bytes;
  uint32_t bits = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (digit_of(text[i]) < 0) return std::nullopt;
    bits = bits << 6 | static_cast<uint32_t>(digit_of(text[i]));
    if (i % 4 != 0) bytes += static_cast<char>(bits >> (6 - 2 * (i % 4)) & 0xff);
  }
  return bytes;
}

// Whether a character below U+10000 makes no grapheme with another of this kind. Jamo of Hangul may.
bool stands_alone_in_text(uint32_t c) {
  const bool jamo = (c >= 0x1100 && c < 0x1200) || (c >= 0xa960 && c < 0xa980) || (c >= 0xd7b0 && c < 0xd800);
  const bool surrogate = c >= 0xd800 && c < 0xe000;
  constexpr uint32_t kJoining = kExtend | kSpacing | kPrepend | kAlone | kPictographic;
  return !jamo && !surrogate && c != 0x200d && !unicode().has(c, kJoining);
}

// The bits of a unit of Darts-clone's array.
bool has_leaf(uint32_t unit) { return (unit >> 8 & 1) == 1; }
uint32_t label(uint32_t unit) { return unit & 0x800000ffU; }
uint32_t offset(uint32_t unit) { return (unit >> 10) << ((unit & 0x200U) >> 6); }

// SentencePiece's table of replacements (normalizer_spec.precompiled_charsmap): the bytes of a double array
// (Darts-clone) as a little-endian u32, the array, whose values are offsets into a text of replacements, each
// of which ends with a zero byte. Used as `tokenizers` does: a grapheme of up to 5 bytes, or else each of its
// characters, is replaced by the replacement of the shortest text of the table with which the grapheme or
// character begins.
class Charsmap final : public Normalizer {
 public:
  // `place`: the map, in base 64. Throws UserError if it is damaged.
  explicit Charsmap(const JsonPlace& place);
  Change apply(std::string_view text, std::string& out) const override;

 private:
  std::optional<std::string_view> replacement(std::string_view part) const;
  void add_grapheme(std::string_view grapheme, std::string& out) const;

  std::vector<uint32_t> units_;
  std::string replacements_;
  // Of the characters below U+10000: true if neither replaced nor joined to a neighbour.
  std::vector<bool> plain_;
};

Charsmap::Charsmap(const JsonPlace& place) {
  const auto bytes = from_base64(place.text());
  uint32_t trie_bytes = 0;
  if (!bytes || bytes->size() < sizeof trie_bytes) place.fail("it is no table in base 64");
  std::memcpy(&trie_bytes, bytes->data(), sizeof trie_bytes);
  if (trie_bytes < sizeof(uint32_t) || trie_bytes > bytes->size() - sizeof trie_bytes)
    place.fail("its first number, " + std::to_string(trie_bytes) + " bytes of a double array, is wrong");
  units_.resize(trie_bytes / sizeof(uint32_t));
  std::memcpy(units_.data(), bytes->data() + sizeof trie_bytes, units_.size() * sizeof(uint32_t));
  replacements_ = bytes->substr(sizeof trie_bytes + units_.size() * sizeof(uint32_t));
  if (!is_utf8(replacements_)) place.fail("its replacements are not UTF-8");
  plain_.resize(0x10000);
  for (uint32_t c = 1; c < plain_.size(); ++c) {
    if (!stands_alone_in_text(c)) continue;
    std::string character;
    append_utf8(character, c);
    plain_[c] = !replacement(character);
  }
}

// A damaged array may lead anywhere: such a place is the end of the walk.
std::optional<std::string_view> Charsmap::replacement(std::string_view part) const {
  uint32_t at = offset(units_[0]);
  for (const char c : part) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte == 0) break;
    at ^= byte;
    if (at >= units_.size() || label(units_[at]) != byte) return std::nullopt;
    const uint32_t unit = units_[at];
    at ^= offset(unit);
    if (at >= units_.size()) return std::nullopt;
    if (!has_leaf(unit)) continue;
    const uint32_t begin = units_[at] & 0x7fffffffU;
    if (begin > replacements_.size()) return std::nullopt;
    const std::string_view all = replacements_;
    const std::string_view replacement = all.substr(begin, all.find('\0', begin) - begin);
    return is_utf8(replacement) ? std::optional(replacement) : std::nullopt;
  }
  return std::nullopt;
}

void Charsmap::add_grapheme(std::string_view grapheme, std::string& out) const {
  if (grapheme.size() <= kLongestWholeGrapheme) {
    const auto whole = replacement(grapheme);
    const bool single = code_point_at(grapheme.data()).bytes == grapheme.size();
    if (whole || single) {
      out += whole.value_or(grapheme);
      return;
    }
  }
  while (!grapheme.empty()) {
    const std::string_view character = grapheme.substr(0, code_point_at(grapheme.data()).bytes);
    out += replacement(character).value_or(character);
    grapheme.remove_prefix(character.size());
  }
}

// A plain character is copied if the next one is plain too: then it is a grapheme.
Change Charsmap::apply(std::string_view text, std::string& out) const {
  const auto is_plain = [this](CodePoint point) {
    return point.value < plain_.size() && plain_[point.value];
  };
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t begin = at;
    CodePoint next = code_point_at(text.data() + at);
    for (bool plain = is_plain(next); plain;) {
      const std::size_t behind = at + next.bytes;
      if (behind < text.size()) next = code_point_at(text.data() + behind);
      plain = behind < text.size() && is_plain(next);
      if (plain || behind == text.size()) at = behind;
    }
    out += text.substr(begin, at - begin);
    if (at == text.size()) break;
    const std::size_t bytes = first_grapheme(text.substr(at));
    add_grapheme(text.substr(at, bytes), out);
    at += bytes;
    require_growth(text.size(), out.size());
  }
  if (out != text) return Change::kText;
  out.clear();
  return Change::kNone;
}

// Has add(out, c) append what becomes of each character for which changes(flags, c) holds; the others stay.
template <class Changes, class Add>
class CharacterMap final : public Normalizer {
 public:
  CharacterMap(Changes changes, Add add) : changes_(changes), add_(add) {
    for (uint32_t c = 0; c < 128; ++c) ascii_changes_[c] = changes_(tables_.flags(c), c);
  }

  Change apply(std::string_view text, std::string& out) const override {
    std::size_t copied = 0;
    bool start_gone = false;
    for (std::size_t at = 0; at < text.size();) {
      const CodePoint point = code_point_at(text.data() + at);
      const bool changes =
          point.bytes == 1 ? ascii_changes_[point.value] : changes_(tables_.flags(point.value), point.value);
      if (changes) {
        out += text.substr(copied, at - copied);
        add_(out, point.value);
        copied = at + point.bytes;
        start_gone = start_gone || (at == 0 && out.empty());
      }
      at += point.bytes;
    }
    if (copied == 0) return Change::kNone;
    out += text.substr(copied);
    return start_gone ? Change::kStart : Change::kText;
  }

 private:
  const UnicodeTables& tables_ = unicode();
  Changes changes_;
  Add add_;
  bool ascii_changes_[128] = {};
};

template <class Changes, class Add>
std::unique_ptr<const Normalizer> characters(Changes changes, Add add) {
  return std::make_unique<CharacterMap<Changes, Add>>(changes, add);
}

class FormNormalizer final : public Normalizer {
 public:
  explicit FormNormalizer(NormalForm form) : form_(form) {}
  Change apply(std::string_view text, std::string& out) const override {
    return normalize(form_, text, out) ? Change::kText : Change::kNone;
  }

 private:
  NormalForm form_;
};

class Strip final : public Normalizer {
 public:
  Strip(bool left, bool right) : left_(left), right_(right) {}

  Change apply(std::string_view text, std::string& out) const override {
    std::string_view rest = text;
    const auto is_space = [](CodePoint point) { return unicode().has(point.value, kWhiteSpace); };
    while (left_ && !rest.empty() && is_space(code_point_at(rest.data())))
      rest.remove_prefix(code_point_at(rest.data()).bytes);
    const bool start_gone = rest.size() != text.size();
    while (right_ && !rest.empty() && is_space(code_point_before(rest, rest.size())))
      rest.remove_suffix(code_point_before(rest, rest.size()).bytes);
    if (rest.size() == text.size()) return Change::kNone;
    out = rest;
    return start_gone ? Change::kStart : Change::kText;
  }

 private:
  bool left_, right_;
};

class Prepend final : public Normalizer {
 public:
  explicit Prepend(std::string prefix) : prefix_(std::move(prefix)) {}
  Change apply(std::string_view text, std::string& out) const override {
    if (text.empty() || prefix_.empty()) return Change::kNone;
    out.reserve(prefix_.size() + text.size());
    out += prefix_;
    out += text;
    return Change::kText;
  }

 private:
  std::string prefix_;
};

// The character that stands for a match of several is counted as the last of them.
class Replace final : public Normalizer {
 public:
  explicit Replace(const JsonPlace& place)
      : pattern_(place.at("pattern")), content_(place.at("content").text()) {}

  Change apply(std::string_view text, std::string& out) const override {
    std::size_t at = 0;
    bool start_gone = false, changed = false;
    pattern_.for_each_match(text, [&](TextSpan match) {
      changed = true;
      if (match.begin == 0 && match.end > 0)
        start_gone = content_.empty() || code_point_at(text.data()).bytes != match.end;
      out += text.substr(at, match.begin - at);
      out += content_;
      at = match.end;
      require_growth(text.size(), out.size());
    });
    if (!changed) return Change::kNone;
    out += text.substr(at);
    return start_gone ? Change::kStart : Change::kText;
  }

 private:
  TextPattern pattern_;
  std::string content_;
};

bool is_chinese(uint32_t c) {
  return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) || (c >= 0x20000 && c <= 0x2a6df) ||
         (c >= 0x2a700 && c <= 0x2b73f) || (c >= 0x2b740 && c <= 0x2b81f) || (c >= 0x2b920 && c <= 0x2ceaf) ||
         (c >= 0xf900 && c <= 0xfaff) || (c >= 0x2f800 && c <= 0x2fa1f);
}

std::unique_ptr<const Normalizer> clean_text() {
  const auto goes = [](uint32_t flags, uint32_t c) { return c == 0 || c == 0xfffd || (flags & kControl); };
  return characters(
      [goes](uint32_t flags, uint32_t c) { return goes(flags, c) || ((flags & kWhiteSpace) && c != ' '); },
      [goes](std::string& out, uint32_t c) {
        if (!goes(unicode().flags(c), c)) out += ' ';
      });
}

std::unique_ptr<const Normalizer> blanks_around_chinese() {
  return characters([](uint32_t, uint32_t c) { return is_chinese(c); },
                    [](std::string& out, uint32_t c) {
                      out += ' ';
                      append_utf8(out, c);
                      out += ' ';
                    });
}

std::unique_ptr<const Normalizer> lower_case_characters() {
  return characters([](uint32_t flags, uint32_t) { return (flags & kLowers) != 0; },
                    [](std::string& out, uint32_t c) {
                      for (const char32_t image : unicode().lower(c)) append_utf8(out, image);
                    });
}

// Of Moses, as in SentencePiece's nmt_nfkc.
std::unique_ptr<const Normalizer> nmt() {
  const auto goes = [](uint32_t c) {
    return (c >= 0x1 && c <= 0x8) || c == 0xb || (c >= 0xe && c <= 0x1f) || c == 0x7f || c == 0x8f ||
           c == 0x9f;
  };
  const auto is_blank = [](uint32_t c) {
    return c == 0x9 || c == 0xa || c == 0xc || c == 0xd || c == 0x1680 || (c >= 0x200b && c <= 0x200f) ||
           c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xfeff || c == 0xfffd;
  };
  return characters([=](uint32_t, uint32_t c) { return goes(c) || is_blank(c); },
                    [=](std::string& out, uint32_t c) {
                      if (is_blank(c)) out += ' ';
                    });
}

std::unique_ptr<const Normalizer> without(CharFlag flag) {
  return characters([flag](uint32_t flags, uint32_t) { return (flags & flag) != 0; },
                    [](std::string&, uint32_t) {});
}

std::unique_ptr<const Normalizer> bytes_as_characters() {
  return characters([](uint32_t, uint32_t c) { return c <= ' ' || c >= 0x7f; },
                    [](std::string& out, uint32_t c) {
                      std::string bytes;
                      append_utf8(bytes, c);
                      out += byte_characters(bytes);
                    });
}

std::unique_ptr<const Normalizer> form(NormalForm which) { return std::make_unique<FormNormalizer>(which); }

void read_bert(const JsonPlace& place, Normalizers& to) {
  const bool lower = place.at("lowercase").boolean();
  const bool clean = place.at("clean_text").boolean(), chinese = place.at("handle_chinese_chars").boolean();
  if (clean) to.push_back(clean_text());
  if (chinese) to.push_back(blanks_around_chinese());
  if (place.boolean("strip_accents", lower)) {
    to.push_back(form(NormalForm::kNfd));
    to.push_back(without(kNonspacing));
  }
  if (lower) to.push_back(lower_case_characters());
}

using ReadNormalizer = std::function<void(const JsonPlace& place, Normalizers& to)>;

ReadNormalizer adding_normalizer(
    std::function<std::unique_ptr<const Normalizer>(const JsonPlace& place)> make) {
  return [make](const JsonPlace& place, Normalizers& to) { to.push_back(make(place)); };
}

const std::vector<std::pair<std::string, ReadNormalizer>>& known_normalizers() {
  const auto normalizer_of_form = [](NormalForm which) {
    return adding_normalizer([which](const auto&) { return form(which); });
  };
  static const std::vector<std::pair<std::string, ReadNormalizer>> all{
      {"BertNormalizer", read_bert},
      {"ByteLevel", adding_normalizer([](const auto&) { return bytes_as_characters(); })},
      {"Lowercase", adding_normalizer([](const auto&) { return lower_case_characters(); })},
      {"NFC", normalizer_of_form(NormalForm::kNfc)},
      {"NFD", normalizer_of_form(NormalForm::kNfd)},
      {"NFKC", normalizer_of_form(NormalForm::kNfkc)},
      {"NFKD", normalizer_of_form(NormalForm::kNfkd)},
      {"Nmt", adding_normalizer([](const auto&) { return nmt(); })},
      {"Precompiled", adding_normalizer([](const JsonPlace& place) {
         return std::make_unique<Charsmap>(place.at("precompiled_charsmap"));
       })},
      {"Prepend", adding_normalizer([](const JsonPlace& place) {
         return std::make_unique<Prepend>(place.at("prepend").text());
       })},
      {"Replace", adding_normalizer([](const JsonPlace& place) { return std::make_unique<Replace>(place); })},
      {"Sequence",
       [](const JsonPlace& place, Normalizers& to) {
         for (const JsonPlace& normalizer : place.at("normalizers").elements())
           read_normalizers(normalizer, to);
       }},
      {"Strip", adding_normalizer([](const JsonPlace& place) {
         return std::make_unique<Strip>(place.at("strip_left").boolean(), place.at("strip_right").boolean());
       })},
      {"StripAccents", adding_normalizer([](const auto&) { return without(kCombining); })},
  };
  return all;
}

}  // namespace

void read_normalizers(const JsonPlace& place, Normalizers& to) {
  kind_at(place, known_normalizers()).second(place, to);
}

void require_growth(std::size_t from, std::size_t bytes) {
  if (bytes > kMostGrowth * from + kGrowthAnyway)
    throw UserError("the tokenizer makes more than " + std::to_string(bytes) + " bytes of a text of " +
                    std::to_string(from) + "; its normalizers or decoders are damaged, or meant to do harm");
}

NormalizedText apply_normalizers(const Normalizers& normalizers, std::string_view text,
                                 std::string (&buffers)[2]) {
  NormalizedText normalized{text};
  int next = 0;
  for (const auto& normalizer : normalizers) {
    buffers[next].clear();
    const Change change = normalizer->apply(normalized.text, buffers[next]);
    if (change == Change::kNone) continue;
    require_growth(text.size(), buffers[next].size());
    normalized.text = buffers[next];
    normalized.start_gone = normalized.start_gone || change == Change::kStart;
    next = 1 - next;
  }
  return normalized;
}

}  // namespace tutti
