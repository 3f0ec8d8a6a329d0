#include "data/tokenizers/unicode/normal_form.h"

#include <algorithm>

#include "data/tokenizers/unicode/code_points.h"

namespace tutti {
namespace {

// Hangul is decomposed and composed by a rule: The Unicode Standard, section 3.12.
constexpr uint32_t kSyllables = 0xac00, kLeads = 0x1100, kVowels = 0x1161, kTails = 0x11a7;
constexpr uint32_t kLeadCount = 19, kVowelCount = 21, kTailCount = 28, kSyllableCount = 11172;

bool is_syllable(uint32_t c) { return c - kSyllables < kSyllableCount; }

uint32_t composed_hangul(uint32_t first, uint32_t second) {
  if (first - kLeads < kLeadCount && second - kVowels < kVowelCount)
    return kSyllables + ((first - kLeads) * kVowelCount + (second - kVowels)) * kTailCount;
  const bool open = is_syllable(first) && (first - kSyllables) % kTailCount == 0;
  return open && second > kTails && second - kTails < kTailCount ? first + (second - kTails) : 0;
}

// Normalizes a text part by part: a part begins with a character that nothing before can join.
class Normalization {
 public:
  Normalization(NormalForm form, std::string& out)
      : composes_(form == NormalForm::kNfc || form == NormalForm::kNfkc),
        compatible_(form == NormalForm::kNfkc || form == NormalForm::kNfkd),
        out_(out) {}

  // Whether a character may change, or join those before.
  bool is_active(uint32_t c) const {
    const uint32_t flags = tables_.flags(c);
    if (compatible_ && (flags & kCompatible)) return true;
    if (composes_) return (flags & kComposes) != 0;
    return (flags & kCanonical) != 0 || flags >> kClassShift != 0 || is_syllable(c);
  }

  // Adds a character to the part, decomposed.
  void add(uint32_t c) {
    const uint32_t flags = tables_.flags(c);
    if (compatible_ && (flags & kCompatible)) {
      part_ += tables_.compatible(c);
    } else if (flags & kCanonical) {
      part_ += tables_.canonical(c);
    } else if (is_syllable(c)) {
      const uint32_t index = c - kSyllables;
      part_ += static_cast<char32_t>(kLeads + index / (kVowelCount * kTailCount));
      part_ += static_cast<char32_t>(kVowels + index / kTailCount % kVowelCount);
      if (index % kTailCount != 0) part_ += static_cast<char32_t>(kTails + index % kTailCount);
    } else {
      part_ += static_cast<char32_t>(c);
    }
  }

  void finish_part() {
    order();
    if (composes_) compose();
    for (const char32_t c : part_) append_utf8(out_, c);
    part_.clear();
  }

 private:
  void order() {
    const auto class_of = [this](char32_t c) { return tables_.combining_class(c); };
    for (std::size_t i = 0; i < part_.size();) {
      std::size_t end = i;
      while (end < part_.size() && class_of(part_[end]) != 0) ++end;
      std::stable_sort(part_.begin() + static_cast<std::ptrdiff_t>(i),
                       part_.begin() + static_cast<std::ptrdiff_t>(end),
                       [&](char32_t a, char32_t b) { return class_of(a) < class_of(b); });
      i = end + 1;
    }
  }

  void compose() {
    std::size_t kept = 0, starter = std::u32string::npos;
    uint32_t last_class = 0;
    for (const char32_t c : part_) {
      const uint32_t own_class = tables_.combining_class(c);
      if (starter != std::u32string::npos && (last_class < own_class || starter + 1 == kept)) {
        uint32_t composite = composed_hangul(part_[starter], c);
        if (composite == 0) composite = tables_.composed(part_[starter], c);
        if (composite != 0) {
          part_[starter] = composite;
          continue;
        }
      }
      if (own_class == 0) starter = kept;
      last_class = own_class;
      part_[kept++] = c;
    }
    part_.resize(kept);
  }

  const UnicodeTables& tables_ = unicode();
  const bool composes_, compatible_;
  std::string& out_;
  std::u32string part_;
};

// Where the first character that may change is, from `at` on.
std::size_t next_active(const Normalization& work, std::string_view text, std::size_t at) {
  while (at < text.size()) {
    if (static_cast<unsigned char>(text[at]) < 0x80) {
      ++at;
      continue;
    }
    const CodePoint point = code_point_at(text.data() + at);
    if (work.is_active(point.value)) break;
    at += point.bytes;
  }
  return at;
}

}  // namespace

bool normalize(NormalForm form, std::string_view text, std::string& out) {
  out.clear();
  Normalization work(form, out);
  std::size_t done = 0;
  for (std::size_t at = next_active(work, text, 0); at < text.size(); at = next_active(work, text, done)) {
    if (at > done) at -= code_point_before(text, at).bytes;  // which the active one may join
    out += text.substr(done, at - done);
    CodePoint point = code_point_at(text.data() + at);
    do {
      work.add(point.value);
      at += point.bytes;
      if (at < text.size()) point = code_point_at(text.data() + at);
    } while (at < text.size() && work.is_active(point.value));
    work.finish_part();
    done = at;
  }
  if (done == 0) return false;
  out += text.substr(done);
  return true;
}

}  // namespace tutti
