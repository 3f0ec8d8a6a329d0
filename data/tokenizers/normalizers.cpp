#include "data/tokenizers/normalizers.h"

#include <functional>

#include "data/tokenizers/charsmap.h"
#include "data/tokenizers/pattern.h"
#include "data/tokenizers/text_pattern.h"
#include "data/tokenizers/unicode/byte_characters.h"
#include "data/tokenizers/unicode/code_points.h"
#include "data/tokenizers/unicode/normal_form.h"

namespace tutti {
namespace {

// Goes through the characters of a text, and has add(out, c) append what becomes of each. ASCII characters
// that `plain` names stay as they are.
template <class Add>
Change map_characters(std::string_view text, std::string& out, const bool (&plain)[128], Add add) {
  std::size_t at = 0;
  bool start_gone = false;
  out.reserve(text.size() + text.size() / 8);
  while (at < text.size()) {
    std::size_t end = at;
    while (end < text.size() && static_cast<unsigned char>(text[end]) < 0x80 && plain[+text[end]]) ++end;
    out += text.substr(at, end - at);
    if (end == text.size()) break;
    const CodePoint point = code_point_at(text.data() + end);
    const std::size_t before = out.size();
    add(out, point.value);
    start_gone = start_gone || (end == 0 && out.size() == before);
    at = end + point.bytes;
  }
  if (start_gone) return Change::kStart;
  if (out != text) return Change::kText;
  out.clear();
  return Change::kNone;
}

// By a function of single characters.
class CharacterMap final : public Normalizer {
 public:
  using Add = std::function<void(std::string& out, uint32_t c)>;

  explicit CharacterMap(Add add) : add_(std::move(add)) {
    for (uint32_t c = 0; c < 128; ++c) {
      std::string image;
      add_(image, c);
      plain_[c] = image == std::string(1, static_cast<char>(c));
    }
  }
  Change apply(std::string_view text, std::string& out) const override {
    return map_characters(text, out, plain_, add_);
  }

 private:
  Add add_;
  bool plain_[128] = {};
};

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
    bool start_gone = false, found = false;
    pattern_.for_each_match(text, [&](TextPart match) {
      found = true;
      if (match.begin == 0 && match.end > 0)
        start_gone = content_.empty() || code_point_at(text.data()).bytes != match.end;
      out += text.substr(at, match.begin - at);
      out += content_;
      at = match.end;
    });
    if (!found) return Change::kNone;
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

void add_cleaned(std::string& out, uint32_t c) {
  const UnicodeTables& tables = unicode();
  if (c == 0 || c == 0xfffd || tables.has(c, kControl)) return;
  append_utf8(out, tables.has(c, kWhiteSpace) ? ' ' : c);
}

void add_spaced(std::string& out, uint32_t c) {
  if (is_chinese(c)) out += ' ';
  append_utf8(out, c);
  if (is_chinese(c)) out += ' ';
}

void add_lower(std::string& out, uint32_t c) {
  const UnicodeTables& tables = unicode();
  if (!tables.has(c, kLowers)) return append_utf8(out, c);
  for (const char32_t image : tables.lower(c)) append_utf8(out, image);
}

// Of Moses, as in SentencePiece's nmt_nfkc.
void add_nmt(std::string& out, uint32_t c) {
  if ((c >= 0x1 && c <= 0x8) || c == 0xb || (c >= 0xe && c <= 0x1f) || c == 0x7f || c == 0x8f || c == 0x9f)
    return;
  const bool blank = c == 0x9 || c == 0xa || c == 0xc || c == 0xd || c == 0x1680 ||
                     (c >= 0x200b && c <= 0x200f) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
                     c == 0xfeff || c == 0xfffd;
  append_utf8(out, blank ? ' ' : c);
}

std::unique_ptr<const Normalizer> characters(CharacterMap::Add add) {
  return std::make_unique<CharacterMap>(std::move(add));
}

std::unique_ptr<const Normalizer> without(CharFlag flag) {
  return characters([flag](std::string& out, uint32_t c) {
    if (!unicode().has(c, flag)) append_utf8(out, c);
  });
}

std::unique_ptr<const Normalizer> form(NormalForm which) { return std::make_unique<FormNormalizer>(which); }

void read_bert(const JsonPlace& place, Normalizers& to) {
  const bool lower = place.at("lowercase").boolean();
  const bool clean = place.at("clean_text").boolean(), chinese = place.at("handle_chinese_chars").boolean();
  if (clean) to.push_back(characters(add_cleaned));
  if (chinese) to.push_back(characters(add_spaced));
  if (place.boolean("strip_accents", lower)) {
    to.push_back(form(NormalForm::kNfd));
    to.push_back(without(kNonspacing));
  }
  if (lower) to.push_back(characters(add_lower));
}

void add_bytes(std::string& out, uint32_t c) {
  std::string bytes;
  append_utf8(bytes, c);
  out += byte_characters(bytes);
}

using ReadNormalizer = std::function<void(const JsonPlace& place, Normalizers& to)>;

ReadNormalizer adding_normalizer(
    std::function<std::unique_ptr<const Normalizer>(const JsonPlace& place)> make) {
  return [make](const JsonPlace& place, Normalizers& to) { to.push_back(make(place)); };
}

const std::vector<std::pair<std::string, ReadNormalizer>>& known_normalizers() {
  const auto of_form = [](NormalForm which) {
    return adding_normalizer([which](const auto&) { return form(which); });
  };
  static const std::vector<std::pair<std::string, ReadNormalizer>> all{
      {"BertNormalizer", read_bert},
      {"ByteLevel", adding_normalizer([](const auto&) { return characters(add_bytes); })},
      {"Lowercase", adding_normalizer([](const auto&) { return characters(add_lower); })},
      {"NFC", of_form(NormalForm::kNfc)},
      {"NFD", of_form(NormalForm::kNfd)},
      {"NFKC", of_form(NormalForm::kNfkc)},
      {"NFKD", of_form(NormalForm::kNfkd)},
      {"Nmt", adding_normalizer([](const auto&) { return characters(add_nmt); })},
      {"Precompiled", adding_normalizer([](const JsonPlace& place) {
         return std::make_unique<Charsmap>(place.at("precompiled_charsmap"));
       })},
      {"Prepend", adding_normalizer([](const JsonPlace& place) {
         return std::make_unique<Prepend>(place.at("prepend").text());
       })},
      {"Replace", adding_normalizer([](const JsonPlace& place) { return std::make_unique<Replace>(place); })},
      {"Sequence",
       [](const JsonPlace& place, Normalizers& to) {
         for (const JsonPlace& one : place.at("normalizers").elements()) read_normalizers(one, to);
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

NormalizedText apply_normalizers(const Normalizers& normalizers, std::string_view text,
                                 std::string (&buffers)[2]) {
  NormalizedText normalized{text};
  int next = 0;
  for (const auto& normalizer : normalizers) {
    buffers[next].clear();
    const Change change = normalizer->apply(normalized.text, buffers[next]);
    if (change == Change::kNone) continue;
    normalized.text = buffers[next];
    normalized.start_gone = normalized.start_gone || change == Change::kStart;
    next = 1 - next;
  }
  return normalized;
}

}  // namespace tutti
