#include "data/tokenizers/decoders.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <optional>
#include <unordered_map>

#include "data/tokenizers/normalizers.h"
#include "data/tokenizers/text_pattern.h"
#include "data/tokenizers/unicode/byte_characters.h"
#include "data/tokenizers/unicode/code_points.h"
#include "runtime/text.h"

namespace tutti {
namespace {

using Tokens = TokenDecoder::Tokens;

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  if (from.empty()) return;
  for (std::size_t at = text.find(from); at != text.npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

class FuseDecoder final : public TokenDecoder {
 public:
  void apply(Tokens& tokens) const override {
    std::string text;
    for (const std::string& token : tokens) text += token;
    tokens.assign(1, std::move(text));
  }
};

// A token with another character than those of bytes is text already.
class ByteLevelDecoder final : public TokenDecoder {
 public:
  ByteLevelDecoder() {
    for (int byte = 0; byte < 256; ++byte) {
      const auto value = static_cast<unsigned char>(byte);
      std::string character;
      append_byte_character(character, value);
      bytes_.emplace(code_point_at(character.data()).value, static_cast<char>(value));
    }
  }

  void apply(Tokens& tokens) const override {
    std::string text;
    for (const std::string& token : tokens) text += bytes_of(token).value_or(token);
    tokens.assign(1, as_utf8(text));
  }

 private:
  std::optional<std::string> bytes_of(const std::string& token) const {
    std::string bytes;
    for (std::size_t at = 0; at < token.size();) {
      const CodePoint point = code_point_at(token.data() + at);
      const auto byte = bytes_.find(point.value);
      if (byte == bytes_.end()) return std::nullopt;
      bytes += byte->second;
      at += point.bytes;
    }
    return bytes;
  }

  std::unordered_map<uint32_t, char> bytes_;  // by character
};

class MetaspaceDecoder final : public TokenDecoder {
 public:
  explicit MetaspaceDecoder(const JsonPlace& place) {
    append_utf8(marker_, place.at("replacement").character());
    const auto scheme = place.find("prepend_scheme");
    drops_first_ = scheme ? scheme->text() != "never" : place.boolean("add_prefix_space", true);
  }

  void apply(Tokens& tokens) const override {
    for (std::size_t i = 0; i < tokens.size(); ++i)
      replace_all(tokens[i], marker_, i == 0 && drops_first_ ? "" : " ");
  }

 private:
  std::string marker_;
  bool drops_first_;
};

// What BERT's clean_up_tokenization does to the blanks before signs.
void clean_up(std::string& text) {
  static constexpr const char* kReplacements[][2] = {
      {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
      {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, to] : kReplacements) replace_all(text, from, to);
}

class WordPieceDecoder final : public TokenDecoder {
 public:
  explicit WordPieceDecoder(const JsonPlace& place)
      : prefix_(place.at("prefix").text()), cleans_(place.at("cleanup").boolean()) {}

  void apply(Tokens& tokens) const override {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (i > 0)
        tokens[i] = tokens[i].starts_with(prefix_) ? tokens[i].substr(prefix_.size()) : " " + tokens[i];
      if (cleans_) clean_up(tokens[i]);
    }
  }

 private:
  std::string prefix_;
  bool cleans_;
};

class BpeDecoder final : public TokenDecoder {
 public:
  explicit BpeDecoder(const JsonPlace& place) : suffix_(place.at("suffix").text()) {}

  void apply(Tokens& tokens) const override {
    for (std::size_t i = 0; i < tokens.size(); ++i)
      replace_all(tokens[i], suffix_, i + 1 == tokens.size() ? "" : " ");
  }

 private:
  std::string suffix_;
};

// Bytes that are no text become as many U+FFFD.
class ByteFallbackDecoder final : public TokenDecoder {
 public:
  void apply(Tokens& tokens) const override {
    Tokens decoded;
    std::string bytes;
    const auto finish_bytes = [&] {
      if (is_utf8(bytes)) {
        if (!bytes.empty()) decoded.push_back(bytes);
      } else {
        decoded.insert(decoded.end(), bytes.size(), "\xef\xbf\xbd");
      }
      bytes.clear();
    };
    for (std::string& token : tokens) {
      if (const auto byte = byte_of(token)) {
        bytes += static_cast<char>(*byte);
      } else {
        finish_bytes();
        decoded.push_back(std::move(token));
      }
    }
    finish_bytes();
    tokens = std::move(decoded);
  }

 private:
  // Of "<0x41>". Rust takes "+4" for a number, too.
  static std::optional<uint8_t> byte_of(std::string_view token) {
    if (token.size() != 6 || !token.starts_with("<0x") || !token.ends_with('>')) return std::nullopt;
    const char* begin = token.data() + (token[3] == '+' ? 4 : 3);
    const char* end = token.data() + 5;
    uint8_t byte = 0;
    const auto read = std::from_chars(begin, end, byte, 16);
    return read.ptr == end && read.ec == std::errc() ? std::optional(byte) : std::nullopt;
  }
};

class ReplaceDecoder final : public TokenDecoder {
 public:
  explicit ReplaceDecoder(const JsonPlace& place)
      : pattern_(place.at("pattern")), content_(place.at("content").text()) {}

  void apply(Tokens& tokens) const override {
    std::size_t before = 0, after = 0;
    for (const std::string& token : tokens) before += token.size();
    for (std::string& token : tokens) {
      std::string replaced;
      std::size_t at = 0;
      pattern_.for_each_match(token, [&](TextSpan match) {
        replaced += token.substr(at, match.begin - at) + content_;
        at = match.end;
        require_growth(before, after + replaced.size());
      });
      token = replaced + token.substr(at);
      after += token.size();
    }
  }

 private:
  TextPattern pattern_;
  std::string content_;
};

class StripDecoder final : public TokenDecoder {
 public:
  explicit StripDecoder(const JsonPlace& place)
      : start_(place.at("start").number(0xffffffff)), stop_(place.at("stop").number(0xffffffff)) {
    append_utf8(content_, place.at("content").character());
  }

  void apply(Tokens& tokens) const override {
    for (std::string& token : tokens) {
      std::string_view rest = token;
      for (uint32_t i = 0; i < start_ && rest.starts_with(content_); ++i) rest.remove_prefix(content_.size());
      for (uint32_t i = 0; i < stop_ && rest.ends_with(content_); ++i) rest.remove_suffix(content_.size());
      token = std::string(rest);
    }
  }

 private:
  std::string content_;
  uint32_t start_, stop_;
};

class CtcDecoder final : public TokenDecoder {
 public:
  explicit CtcDecoder(const JsonPlace& place)
      : pad_(place.at("pad_token").text()),
        delimiter_(place.at("word_delimiter_token").text()),
        cleans_(place.at("cleanup").boolean()) {}

  void apply(Tokens& tokens) const override {
    tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
    for (std::string& token : tokens) {
      replace_all(token, pad_, "");
      if (!cleans_) continue;
      clean_up(token);
      replace_all(token, delimiter_, " ");
    }
    std::erase(tokens, "");
  }

 private:
  std::string pad_, delimiter_;
  bool cleans_;
};

using MakeDecoder = std::function<std::unique_ptr<const TokenDecoder>(const JsonPlace& place)>;

template <class Kind>
MakeDecoder making() {
  return [](const JsonPlace& place) -> std::unique_ptr<const TokenDecoder> {
    if constexpr (std::is_constructible_v<Kind, const JsonPlace&>)
      return std::make_unique<Kind>(place);
    else
      return std::make_unique<Kind>();
  };
}

const std::vector<std::pair<std::string, MakeDecoder>>& known_decoders() {
  static const std::vector<std::pair<std::string, MakeDecoder>> all{
      {"BPEDecoder", making<BpeDecoder>()},      {"ByteFallback", making<ByteFallbackDecoder>()},
      {"ByteLevel", making<ByteLevelDecoder>()}, {"CTC", making<CtcDecoder>()},
      {"Fuse", making<FuseDecoder>()},           {"Metaspace", making<MetaspaceDecoder>()},
      {"Replace", making<ReplaceDecoder>()},     {"Sequence", nullptr},
      {"Strip", making<StripDecoder>()},         {"WordPiece", making<WordPieceDecoder>()},
  };
  return all;
}

}  // namespace

void read_decoders(const JsonPlace& place, TokenDecoders& to) {
  const auto& kind = kind_at(place, known_decoders());
  if (kind.second) {
    to.push_back(kind.second(place));
    return;
  }
  for (const JsonPlace& decoder : place.at("decoders").elements()) read_decoders(decoder, to);
}

}  // namespace tutti
