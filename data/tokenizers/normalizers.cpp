#include "data/tokenizers/normalizers.h"

#include <functional>

#include "data/tokenizers/charsmap.h"
#include "data/tokenizers/pattern.h"
#include "data/tokenizers/text_pattern.h"
#include "data/tokenizers/unicode/byte_characters.h"
#include "data/tokenizers/unicode/code_points.h"
#include "data/tokenizers/unicode/normal_form.h"
#include "runtime/error.h"

namespace tutti {
namespace {

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
