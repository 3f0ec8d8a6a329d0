#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizers/special_ids.h"
#include "data/tokenizers/template.h"

namespace tutti {

class TokenEncoder;
struct TokenizerSteps;

// A tokenizer of Hugging Face's `tokenizers`, as of its file tokenizer.json, with equal ids and equal decoded
// texts (of version 0.22.2; its handling of characters is in unicode/unicode.txt). All models, normalizers,
// pre-tokenizers, post-processors and decoders of that version are known, but for pre-tokenizer
// UnicodeScripts and BPE's dropout. `truncation` and `padding` of the file are ignored: data is cut and
// filled elsewhere. Immutable; threads may share it.
class Tokenizer {
 public:
  // Throws UserError with file and place ("normalizer.normalizers[1].type") of the error or the unknown
  // value.
  static std::shared_ptr<const Tokenizer> read(const std::string& path);
  ~Tokenizer();
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  // Appends the ids of a text of any length. With `special`, also the file's special tokens for a single
  // text. Invalid UTF-8 counts as U+FFFD (runtime/text.h, as_utf8). A text that the model cannot encode, for
  // want of a token for unknown texts, is a UserError. Needs memory for at most two copies of the text with
  // normalizers, only for the ids without normalizers; for a text that the pre-tokenizers do not cut, some 30
  // bytes a byte. A recent word costs a look into a table of 1 MiB, a table for each thread that encodes.
  void encode(std::string_view text, std::vector<uint32_t>& ids, bool special = true) const;
  std::vector<uint32_t> encode(std::string_view text, bool special = true) const;
  EncodedPair encode_pair(std::string_view first, std::string_view second, bool special = true) const;

  // The file's special tokens around the ids of texts.
  const TokenTemplate& around() const;

  // The text of ids; ids without a token are left out. With `skip_special`, so are special tokens.
  std::string decode(std::span<const uint32_t> ids, bool skip_special = true) const;

  int64_t vocab_size() const;  // the largest id + 1, added tokens included
  std::optional<uint32_t> id_of(std::string_view token) const;
  std::optional<std::string> token_of(uint32_t id) const;
  const SpecialIds& special_ids() const { return special_ids_; }
  const std::string& path() const { return path_; }
  uint64_t digest() const { return digest_; }  // of the file's bytes

 private:
  explicit Tokenizer(const std::string& path);
  void read_steps(const class JsonPlace& place);
  void encode_words(std::string_view text, std::vector<uint32_t>& ids) const;

  struct Parts;
  std::string path_;
  std::unique_ptr<Parts> parts_;
  SpecialIds special_ids_;
  uint64_t digest_ = 0;
};

// Decodes ids on arrival, for texts that are shown during their generation. A character whose bytes are
// spread over several tokens comes whole. As `tokenizers`' DecodeStream.
class TokenStream {
 public:
  explicit TokenStream(std::shared_ptr<const Tokenizer> tokenizer, bool skip_special = true)
      : tokenizer_(std::move(tokenizer)), skip_special_(skip_special) {}

  // The text that this id adds; "" while a character is incomplete.
  std::string add(uint32_t id);
  // The text still held back: an incomplete character, as U+FFFD.
  std::string finish();

 private:
  std::string decode() const { return tokenizer_->decode(ids_, skip_special_); }

  std::shared_ptr<const Tokenizer> tokenizer_;
  bool skip_special_;
  std::vector<uint32_t> ids_;  // of the last returned part, and later ids
  std::string prefix_;         // the text of that part
  std::size_t prefix_ids_ = 0;
};

}  // namespace tutti
