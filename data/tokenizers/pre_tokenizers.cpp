#include "data/tokenizers/pre_tokenizers.h"

#include <functional>

#include "data/tokenizers/splitting.h"
#include "data/tokenizers/text_pattern.h"
#include "data/tokenizers/unicode/byte_characters.h"
#include "data/tokenizers/unicode/code_points.h"

namespace tutti {
namespace {

using Step = std::unique_ptr<const PreTokenizer>;
using Steps = std::vector<Step>;

// The part of a piece, sent on.
auto sender(Piece piece, PieceSink& sink) {
  return [piece, &sink](TextSpan part) {
    sink.add({piece.text.substr(part.begin, part.end - part.begin), piece.first && part.begin == 0});
  };
}

void send_words(const WordScanner& scanner, Piece piece, PieceSink& sink) {
  const auto send = sender(piece, sink);
  for (std::size_t at = 0, bytes = 0; at < piece.text.size(); at += bytes) {
    bytes = scanner.first_word(piece.text.substr(at));
    send({at, at + bytes});
  }
}

// Splits at the characters for which is_match(c) holds.
template <class IsMatch>
class CharacterSplit final : public PreTokenizer {
 public:
  CharacterSplit(SplitBehavior behavior, IsMatch is_match) : behavior_(behavior), is_match_(is_match) {}

  void split(Piece piece, std::string&, PieceSink& sink) const override {
    Splitting splitting(behavior_, /*invert=*/false, sender(piece, sink));
    for (std::size_t at = 0; at < piece.text.size();) {
      const CodePoint point = code_point_at(piece.text.data() + at);
      if (is_match_(point.value)) splitting.add_match({at, at + point.bytes});
      at += point.bytes;
    }
    splitting.finish(piece.text.size());
  }

 private:
  SplitBehavior behavior_;
  IsMatch is_match_;
};

template <class IsMatch>
Step split_at(SplitBehavior behavior, IsMatch is_match) {
  return std::make_unique<CharacterSplit<IsMatch>>(behavior, is_match);
}

auto with_flag(CharFlag flag) {
  return [flag, &tables = unicode()](uint32_t c) { return tables.has(c, flag); };
}

SplitBehavior read_behavior(const JsonPlace& place) {
  static const std::vector<std::pair<std::string, SplitBehavior>> all{
      {"Removed", SplitBehavior::kRemoved},
      {"Isolated", SplitBehavior::kIsolated},
      {"MergedWithPrevious", SplitBehavior::kMergedWithPrevious},
      {"MergedWithNext", SplitBehavior::kMergedWithNext},
      {"Contiguous", SplitBehavior::kContiguous}};
  for (const auto& [name, behavior] : all)
    if (place.text() == name) return behavior;
  place.fail("expected Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous");
}

class Split final : public PreTokenizer {
 public:
  explicit Split(const JsonPlace& place)
      : pattern_(place.at("pattern")),
        behavior_(read_behavior(place.at("behavior"))),
        invert_(place.at("invert").boolean()) {}

  void split(Piece piece, std::string&, PieceSink& sink) const override {
    const bool keeps_all =
        behavior_ == SplitBehavior::kIsolated || (behavior_ == SplitBehavior::kRemoved && invert_);
    if (pattern_.scanner() && keeps_all) return send_words(*pattern_.scanner(), piece, sink);
    Splitting splitting(behavior_, invert_, sender(piece, sink));
    pattern_.for_each_match(piece.text, [&](TextSpan match) { splitting.add_match(match); });
    splitting.finish(piece.text.size());
  }

 private:
  TextPattern pattern_;
  SplitBehavior behavior_;
  bool invert_;
};

// The text of a piece behind a prefix, in `scratch`.
Piece prefixed(std::string_view prefix, Piece piece, std::string& scratch) {
  scratch.assign(prefix);
  scratch += piece.text;
  return {scratch, piece.first};
}

class ByteLevelSplit final : public PreTokenizer {
 public:
  ByteLevelSplit(bool adds_space, bool cuts) : adds_space_(adds_space), cuts_(cuts) {}

  void split(Piece piece, std::string& scratch, PieceSink& sink) const override {
    if (adds_space_ && !piece.text.starts_with(' ')) piece = prefixed(" ", piece, scratch);
    if (cuts_)
      send_words(WordScanner{}, piece, sink);
    else
      sink.add(piece);
  }

 private:
  bool adds_space_, cuts_;
};

class ByteWriter final : public PreTokenizer {
 public:
  void split(Piece piece, std::string& scratch, PieceSink& sink) const override {
    scratch = byte_characters(piece.text);
    sink.add({scratch, piece.first});
  }
};

// `before_all`: before every marker, as "MergedWithNext" cuts; else only behind other characters.
void send_marked(std::string_view marker, bool before_all, Piece piece, PieceSink& sink) {
  const auto send = sender(piece, sink);
  const std::string_view text = piece.text;
  std::size_t begin = 0, end = text.starts_with(marker) ? marker.size() : 0;
  for (std::size_t at = text.find(marker, end); at != text.npos; at = text.find(marker, end)) {
    if (at > begin && (before_all || at > end)) {
      send({begin, at});
      begin = at;
    }
    end = at + marker.size();
  }
  send({begin, text.size()});
}

class MarkerSplit final : public PreTokenizer {
 public:
  explicit MarkerSplit(std::string marker) : marker_(std::move(marker)) {}
  void split(Piece piece, std::string&, PieceSink& sink) const override {
    send_marked(marker_, /*before_all=*/false, piece, sink);
  }

 private:
  std::string marker_;
};

class Metaspace final : public PreTokenizer {
 public:
  enum class Scheme { kFirst, kNever, kAlways };

  explicit Metaspace(const JsonPlace& place)
      : scheme_(read_scheme(place)), cuts_(place.boolean("split", true)) {
    append_utf8(marker_, place.at("replacement").character());
  }

  void split(Piece piece, std::string& scratch, PieceSink& sink) const override {
    const bool marked = piece.text.starts_with(marker_) || piece.text.starts_with(' ');
    const bool prepends = scheme_ == Scheme::kAlways || (scheme_ == Scheme::kFirst && piece.first);
    scratch.clear();
    if (prepends && !marked) scratch += marker_;
    std::size_t at = 0;
    for (std::size_t blank = piece.text.find(' '); blank != piece.text.npos;
         blank = piece.text.find(' ', at)) {
      scratch += piece.text.substr(at, blank - at);
      scratch += marker_;
      at = blank + 1;
    }
    scratch += piece.text.substr(at);
    const Piece changed{scratch, piece.first};
    if (cuts_)
      send_marked(marker_, /*before_all=*/true, changed, sink);
    else
      sink.add(changed);
  }

 private:
  // Files of older versions have add_prefix_space alone.
  static Scheme read_scheme(const JsonPlace& place) {
    const auto scheme = place.find("prepend_scheme");
    const bool adds = place.boolean("add_prefix_space", true);
    if (!scheme) return adds ? Scheme::kAlways : Scheme::kNever;
    const std::string name = scheme->text();
    if (name == "never") return Scheme::kNever;
    if (name != "first" && name != "always") scheme->fail("expected first, never or always");
    if (!adds) scheme->fail("it is '" + name + "', but add_prefix_space is false");
    return name == "first" ? Scheme::kFirst : Scheme::kAlways;
  }

  std::string marker_;
  Scheme scheme_;
  bool cuts_;
};

// \w+|[^\w\s]+ of Rust's regex.
class Whitespace final : public PreTokenizer {
 public:
  void split(Piece piece, std::string&, PieceSink& sink) const override {
    enum Kind { kBlank, kWordKind, kSign };
    const UnicodeTables& tables = unicode();
    const auto send = sender(piece, sink);
    std::size_t begin = 0;
    Kind last = kBlank;
    for (std::size_t at = 0; at < piece.text.size();) {
      const CodePoint point = code_point_at(piece.text.data() + at);
      const uint32_t flags = tables.flags(point.value);
      const Kind kind = flags & kWord ? kWordKind : flags & kWhiteSpace ? kBlank : kSign;
      if (kind != last) {
        if (last != kBlank) send({begin, at});
        begin = at;
        last = kind;
      }
      at += point.bytes;
    }
    if (last != kBlank) send({begin, piece.text.size()});
  }
};

// Splits at white space, which goes, and at characters with one of some flags, which stay.
class SpaceSplit final : public PreTokenizer {
 public:
  explicit SpaceSplit(uint32_t stay) : stay_(stay) {}

  void split(Piece piece, std::string&, PieceSink& sink) const override {
    const UnicodeTables& tables = unicode();
    const auto send = sender(piece, sink);
    std::size_t begin = 0;
    for (std::size_t at = 0; at < piece.text.size();) {
      const CodePoint point = code_point_at(piece.text.data() + at);
      const uint32_t flags = tables.flags(point.value);
      const std::size_t end = at + point.bytes;
      if (flags & (kWhiteSpace | stay_)) {
        if (begin < at) send({begin, at});
        if (!(flags & kWhiteSpace)) send({at, end});
        begin = end;
      }
      at = end;
    }
    if (begin < piece.text.size()) send({begin, piece.text.size()});
  }

 private:
  uint32_t stay_;
};

class FixedLength final : public PreTokenizer {
 public:
  explicit FixedLength(uint32_t characters) : characters_(characters) {}

  void split(Piece piece, std::string&, PieceSink& sink) const override {
    const auto send = sender(piece, sink);
    for (std::size_t at = 0; at < piece.text.size();) {
      const std::size_t begin = at;
      for (uint32_t i = 0; i < characters_ && at < piece.text.size(); ++i)
        at += code_point_at(piece.text.data() + at).bytes;
      send({begin, at});
    }
  }

 private:
  uint32_t characters_;
};

void read_steps(const JsonPlace& place, Steps& to);

void read_byte_level(const JsonPlace& place, Steps& to) {
  const bool adds_space = place.at("add_prefix_space").boolean(), cuts = place.boolean("use_regex", true);
  if (adds_space || cuts) to.push_back(std::make_unique<ByteLevelSplit>(adds_space, cuts));
  to.push_back(std::make_unique<ByteWriter>());
}

void read_digits(const JsonPlace& place, Steps& to) {
  const bool each = place.at("individual_digits").boolean();
  to.push_back(split_at(each ? SplitBehavior::kIsolated : SplitBehavior::kContiguous, with_flag(kNumeric)));
}

void read_punctuation(const JsonPlace& place, Steps& to) {
  const auto behavior = place.find("behavior");
  to.push_back(
      split_at(behavior ? read_behavior(*behavior) : SplitBehavior::kIsolated, with_flag(kPunctuation)));
}

void read_delimiter(const JsonPlace& place, Steps& to) {
  const uint32_t delimiter = place.at("delimiter").character();
  to.push_back(split_at(SplitBehavior::kRemoved, [delimiter](uint32_t c) { return c == delimiter; }));
}

void read_fixed_length(const JsonPlace& place, Steps& to) {
  const auto length = place.find("length");
  const uint32_t characters = length ? length->number(1 << 30) : 5;
  if (characters == 0) length->fail("expected at least 1");
  to.push_back(std::make_unique<FixedLength>(characters));
}

using ReadStep = std::function<void(const JsonPlace& place, Steps& to)>;

ReadStep splitting_at_space(uint32_t stay) {
  return [stay](const JsonPlace&, Steps& to) { to.push_back(std::make_unique<SpaceSplit>(stay)); };
}

const std::vector<std::pair<std::string, ReadStep>>& known_pre_tokenizers() {
  static const std::vector<std::pair<std::string, ReadStep>> all{
      {"BertPreTokenizer", splitting_at_space(kPunctuation)},
      {"ByteLevel", read_byte_level},
      {"CharDelimiterSplit", read_delimiter},
      {"Digits", read_digits},
      {"FixedLength", read_fixed_length},
      {"Metaspace",
       [](const JsonPlace& place, Steps& to) { to.push_back(std::make_unique<Metaspace>(place)); }},
      {"Punctuation", read_punctuation},
      {"Sequence",
       [](const JsonPlace& place, Steps& to) {
         for (const JsonPlace& step : place.at("pretokenizers").elements()) read_steps(step, to);
       }},
      {"Split", [](const JsonPlace& place, Steps& to) { to.push_back(std::make_unique<Split>(place)); }},
      {"Whitespace", [](const JsonPlace&, Steps& to) { to.push_back(std::make_unique<Whitespace>()); }},
      {"WhitespaceSplit", splitting_at_space(0)},
  };
  return all;
}

void read_steps(const JsonPlace& place, Steps& to) {
  kind_at(place, known_pre_tokenizers()).second(place, to);
}

}  // namespace

PreTokenizers read_pre_tokenizers(const JsonPlace& place) {
  PreTokenizers all;
  read_steps(place, all.steps);
  all.writes_bytes = !all.steps.empty() && dynamic_cast<const ByteWriter*>(all.steps.back().get());
  if (all.writes_bytes) all.steps.pop_back();
  return all;
}

std::unique_ptr<const PreTokenizer> splitter_before(std::string marker) {
  return std::make_unique<MarkerSplit>(std::move(marker));
}

}  // namespace tutti
