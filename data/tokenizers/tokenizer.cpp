#include "data/tokenizers/tokenizer.h"

#include <algorithm>
#include <cstring>
#include <mutex>

#include "data/tokenizers/decoders.h"
#include "data/tokenizers/encoder.h"
#include "data/tokenizers/json_place.h"
#include "runtime/error.h"
#include "runtime/hashes.h"
#include "runtime/printable.h"
#include "runtime/text.h"

namespace tutti {
namespace {

bool is_ascii(std::string_view text) {
  uint64_t bits = 0;
  std::size_t at = 0;
  for (uint64_t eight = 0; at + sizeof eight <= text.size(); at += sizeof eight) {
    std::memcpy(&eight, text.data() + at, sizeof eight);
    bits |= eight;
  }
  for (; at < text.size(); ++at) bits |= static_cast<unsigned char>(text[at]) & 0x80U;
  return (bits & 0x8080808080808080ULL) == 0;
}

constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD

// What a text has behind what two texts have in common; mostly the other is its beginning.
std::string behind(std::string_view text, std::string_view beginning) {
  const auto [differs, _] = std::ranges::mismatch(text, beginning);
  auto at = static_cast<std::size_t>(differs - text.begin());
  while (at > 0 && at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80) --at;
  return std::string(text.substr(at));
}

}  // namespace

// Encoders that no thread uses; each has a table of words.
struct Tokenizer::Parts {
  TokenizerSteps steps;
  TokenTemplate around;
  std::optional<TokenDecoders> decoders;
  std::mutex mutex;
  std::vector<std::unique_ptr<TokenEncoder>> idle_encoders;
};

std::shared_ptr<const Tokenizer> Tokenizer::read(const std::string& path) {
  return std::shared_ptr<const Tokenizer>(new Tokenizer(path));
}

Tokenizer::~Tokenizer() = default;

Tokenizer::Tokenizer(const std::string& path) : path_(path), parts_(std::make_unique<Parts>()) {
  const JsonFile file(path);
  digest_ = XXH3_64bits(file.bytes().data(), file.bytes().size());
  read_steps(file.root());
  special_ids_ = read_special_ids(
      path, [this](std::string_view token) { return id_of(token); }, parts_->steps.added.special_ids());
}

void Tokenizer::read_steps(const JsonPlace& file) {
  if (const auto version = file.find("version"); version && version->text() != "1.0")
    version->fail("expected \"1.0\", not '" + shown(version->text()) + "'");
  TokenizerSteps& steps = parts_->steps;
  PreTokenizers pre_tokenizers;
  if (const auto place = file.find("pre_tokenizer")) pre_tokenizers = read_pre_tokenizers(*place);
  steps.pre_tokenizers = std::move(pre_tokenizers.steps);
  steps.model = read_token_model(file.at("model"), pre_tokenizers.writes_bytes);
  if (const std::string marker = steps.model->safe_marker(); !marker.empty())
    steps.pre_tokenizers.push_back(splitter_before(marker));
  if (const auto place = file.find("normalizer")) read_normalizers(*place, steps.normalizers);
  if (const auto place = file.find("added_tokens"))
    steps.added = AddedTokens(*place, steps.model->vocabulary(), steps.normalizers);
  if (const auto place = file.find("post_processor")) parts_->around = TokenTemplate(*place);
  if (const auto place = file.find("decoder")) read_decoders(*place, parts_->decoders.emplace());
}

void Tokenizer::encode_words(std::string_view text, std::vector<uint32_t>& ids) const {
  std::unique_ptr<TokenEncoder> encoder;
  {
    const std::lock_guard lock(parts_->mutex);
    if (!parts_->idle_encoders.empty()) {
      encoder = std::move(parts_->idle_encoders.back());
      parts_->idle_encoders.pop_back();
    }
  }
  if (!encoder) encoder = std::make_unique<TokenEncoder>(parts_->steps);
  try {
    if (is_ascii(text) || is_utf8(text))
      encoder->encode(text, ids);
    else
      encoder->encode(as_utf8(text), ids);
  } catch (const UserError& error) {
    throw UserError({path_}, error.message());
  }
  const std::lock_guard lock(parts_->mutex);
  parts_->idle_encoders.push_back(std::move(encoder));
}

void Tokenizer::encode(std::string_view text, std::vector<uint32_t>& ids, bool special) const {
  const auto add = [&](const std::vector<uint32_t>& more) {
    if (special) ids.insert(ids.end(), more.begin(), more.end());
  };
  add(parts_->around.around().before);
  encode_words(text, ids);
  add(parts_->around.around().behind);
}

std::vector<uint32_t> Tokenizer::encode(std::string_view text, bool special) const {
  std::vector<uint32_t> ids;
  encode(text, ids, special);
  return ids;
}

const TokenTemplate& Tokenizer::around() const { return parts_->around; }

EncodedPair Tokenizer::encode_pair(std::string_view first, std::string_view second, bool special) const {
  return parts_->around.pair(encode(first, /*special=*/false), encode(second, /*special=*/false), special);
}

std::string Tokenizer::decode(std::span<const uint32_t> ids, bool skip_special) const {
  TokenDecoder::Tokens tokens;
  for (const uint32_t id : ids) {
    auto token = token_of(id);
    if (token && !(skip_special && parts_->steps.added.is_special(*token)))
      tokens.push_back(std::move(*token));
  }
  if (parts_->decoders)
    for (const auto& decoder : *parts_->decoders) decoder->apply(tokens);
  std::string text;
  for (const std::string& token : tokens) {
    if (!parts_->decoders && &token != &tokens.front()) text += ' ';
    text += token;
  }
  return text;
}

int64_t Tokenizer::vocab_size() const {
  return std::max(parts_->steps.model->vocabulary().end(), parts_->steps.added.vocabulary().end());
}

std::optional<uint32_t> Tokenizer::id_of(std::string_view token) const {
  const auto added = parts_->steps.added.vocabulary().id_of(token);
  return added ? added : parts_->steps.model->vocabulary().id_of(token);
}

std::optional<std::string> Tokenizer::token_of(uint32_t id) const {
  const std::string* token = parts_->steps.added.vocabulary().token_of(id);
  if (!token) token = parts_->steps.model->vocabulary().token_of(id);
  return token ? std::optional(*token) : std::nullopt;
}

std::string TokenStream::add(uint32_t id) {
  if (prefix_.empty() && !ids_.empty()) {
    const std::string text = decode();
    if (!text.ends_with(kReplacement)) {
      prefix_ = text;
      prefix_ids_ = ids_.size();
    }
  }
  ids_.push_back(id);
  const std::string text = decode();
  if (text.size() <= prefix_.size() || text.ends_with(kReplacement)) return "";
  const std::string more = behind(text, prefix_);
  const std::size_t kept = ids_.size() - prefix_ids_;
  ids_.erase(ids_.begin(), ids_.begin() + static_cast<std::ptrdiff_t>(prefix_ids_));
  prefix_ = decode();
  prefix_ids_ = kept;
  return more;
}

std::string TokenStream::finish() {
  const std::string more = behind(decode(), prefix_);
  ids_.clear();
  prefix_.clear();
  prefix_ids_ = 0;
  return more;
}

}  // namespace tutti
