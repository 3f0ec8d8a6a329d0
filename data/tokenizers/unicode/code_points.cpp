#include "data/tokenizers/unicode/code_points.h"

#include <charconv>

#include "runtime/error.h"

namespace tutti {

extern const char kTokenizerUnicode[];  // unicode.txt

namespace {

constexpr uint32_t kCodePoints = 0x110000;

// The numbers of a line are in base 36.
class Numbers {
 public:
  explicit Numbers(std::string_view text) : at_(text.data()), end_(text.data() + text.size()) {}

  bool done() const { return at_ == end_; }
  bool skip(char c) { return !done() && *at_ == c && (++at_, true); }
  uint32_t next() {
    uint32_t number = 0;
    at_ = std::from_chars(at_, end_, number, 36).ptr;
    return number;
  }

 private:
  const char* at_;
  const char* end_;
};

uint32_t decimal(std::string_view text) {
  uint32_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

template <class Use>
void for_each_run(std::string_view words, Use use) {
  Numbers numbers(words);
  for (uint32_t end = 0; !numbers.done(); numbers.skip(' ')) {
    const uint32_t first = end + numbers.next();
    const uint32_t last = first + (numbers.skip(',') ? numbers.next() : 0);
    for (uint32_t c = first; c <= last; ++c) use(c);
    end = last + 1;
  }
}

template <class Use>
void for_each_image(std::string_view words, Use use) {
  Numbers numbers(words);
  for (uint32_t c = 0; !numbers.done(); numbers.skip(' ')) {
    c += numbers.next();
    numbers.skip('=');
    std::u32string image;
    do image += static_cast<char32_t>(numbers.next());
    while (numbers.skip(','));
    use(c, image);
  }
}

uint32_t flag_of(std::string_view name) {
  static const std::unordered_map<std::string_view, uint32_t> flags{
      {"letter", kLetter},           {"number", kNumber},       {"space", kSpace},
      {"white_space", kWhiteSpace},  {"word", kWord},           {"numeric", kNumeric},
      {"punctuation", kPunctuation}, {"control", kControl},     {"nonspacing", kNonspacing},
      {"combining", kCombining},     {"break.extend", kExtend}, {"break.spacing", kSpacing},
      {"break.prepend", kPrepend},   {"break.alone", kAlone},   {"pictographic", kPictographic},
      {"excluded", kComposes}};
  const auto flag = flags.find(name);
  return flag == flags.end() ? 0 : flag->second;
}

uint64_t pair_of(uint32_t first, uint32_t second) { return uint64_t{first} << 32 | second; }

}  // namespace

void append_utf8(std::string& text, uint32_t c) {
  const auto add = [&text](uint32_t byte) { text += static_cast<char>(byte); };
  if (c < 0x80) {
    add(c);
  } else if (c < 0x800) {
    add(0xc0 | c >> 6), add(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    add(0xe0 | c >> 12), add(0x80 | (c >> 6 & 0x3f)), add(0x80 | (c & 0x3f));
  } else {
    add(0xf0 | c >> 18), add(0x80 | (c >> 12 & 0x3f)), add(0x80 | (c >> 6 & 0x3f)), add(0x80 | (c & 0x3f));
  }
}

void UnicodeTables::set(uint32_t c, uint32_t flags_to_set) {
  uint16_t& block = block_of_[c >> 8];
  if (block == 0) {  // the first block is shared by all code points without flags
    block = static_cast<uint16_t>(blocks_.size());
    blocks_.emplace_back();
  }
  blocks_[block][c & 0xff] |= flags_to_set;
}

void UnicodeTables::read_line(std::string_view name, std::string_view words) {
  const auto images_to = [&](Images& images, uint32_t flag) {
    for_each_image(words, [&](uint32_t c, const Image& image) {
      images.emplace(c, image);
      set(c, flag);
    });
  };
  if (name == "lower") return images_to(lower_, kLowers);
  if (name == "canonical") return images_to(canonical_, kCanonical);
  if (name == "compatible") return images_to(compatible_, kCompatible);
  uint32_t flag = flag_of(name);
  if (name.starts_with("class.")) flag = decimal(name.substr(6)) << kClassShift;
  TUTTI_ASSERT(flag != 0, "unicode.txt has a line '" + std::string(name) + "'");
  for_each_run(words, [&](uint32_t c) { set(c, flag); });
}

// A composite is its full decomposition but for the last character, composed, and that character.
void UnicodeTables::add_compositions(const std::vector<bool>& excluded) {
  std::unordered_map<std::u32string_view, uint32_t, std::hash<std::u32string_view>> whole;
  for (const auto& [c, image] : canonical_)
    if (!excluded[c]) whole.emplace(image, c);
  for (const auto& [image, c] : whole) {
    const std::u32string_view rest = image.substr(0, image.size() - 1);
    const auto mapping = whole.find(rest);
    if (rest.size() > 1 && mapping == whole.end()) continue;
    compositions_.emplace(pair_of(rest.size() == 1 ? rest[0] : mapping->second, image.back()), c);
    set(image.back(), kComposes);
  }
}

UnicodeTables::UnicodeTables() : blocks_(1) {
  std::string_view text = kTokenizerUnicode;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(line.size() + 1);
    const std::size_t space = line.find(' ');
    read_line(line.substr(0, space), line.substr(space + 1));
  }
  std::vector<bool> excluded(kCodePoints);
  for (const auto& [c, image] : canonical_) excluded[c] = has(c, kComposes);
  add_compositions(excluded);
  for (uint32_t c = 0; c < kCodePoints; ++c)
    if (combining_class(c) != 0) set(c, kComposes);
  for (uint32_t c = 0x1161; c < 0x11c3; ++c) set(c, kComposes);  // vowels and tails of Hangul
}

uint32_t UnicodeTables::composed(uint32_t first, uint32_t second) const {
  const auto composition = compositions_.find(pair_of(first, second));
  return composition == compositions_.end() ? 0 : composition->second;
}

const UnicodeTables& unicode() {
  static const UnicodeTables tables;
  return tables;
}

}  // namespace tutti
