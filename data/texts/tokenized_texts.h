#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/texts/documents.h"
#include "data/tokenizers/tokenizer.h"
#include "io/mapped_file.h"
#include "io/tokens/token_file.h"

namespace tutti {

// How texts become tokens.
struct Tokenization {
  std::vector<std::string> files;
  DocumentFormat format;
  std::shared_ptr<const Tokenizer> tokenizer;
  std::optional<uint32_t> begin, end;  // tokens before and behind each document
  bool skip_bad = false;               // leave out lines that are no such JSON; else an error
  int threads = 1;

  // About markers of `turn` that are no tokens of their own; "": there are none.
  std::string advice() const;
};

// The tokens of a document; for formats with prompts, `counts` has a byte for each token: 1 for a token that
// counts in the loss.
struct EncodedDocument {
  std::vector<uint32_t> ids;
  std::vector<uint8_t> counts;

  // True of a chat without an answer, which is left out.
  bool teaches_nothing() const;
};
inline constexpr const char* kTeachesNothing = "no answer: nothing in it counts in the loss";

// The token behind the document counts if the document's last token counts. Throws UserError with the error
// of a line of JSON, without the place.
EncodedDocument encode_document(const Tokenization& how, std::string_view text, bool is_json);

// The tokens of texts, in files that begin alike:
//   .bin, .idx   as Megatron-LM has them (io/tokens/megatron_index.h), of uint16, or int32
//   .counts      a byte for each token: 1 if it counts in the loss; only if some do not
//   .left_out    what was left out, and why the first of it: a line; only if there is some
class TokenizedTexts {
 public:
  // Reads the files in the folder `folder`/DIGEST, which is written first if missing: by one process of a
  // host, while other processes wait. Throws UserError with file and line of a text that cannot be read,
  // OperatingError if the folder cannot be written.
  static TokenizedTexts open(const Tokenization& how, const std::string& folder);
  // Reads `stem`.bin and the others. Throws UserError.
  explicit TokenizedTexts(const std::string& stem);

  const std::shared_ptr<const TokenFile>& file() const { return tokens_; }
  const TokenFile& tokens() const { return *tokens_; }
  const MegatronIndex& documents() const { return *tokens_->documents(); }
  const uint8_t* counts() const;  // null: all tokens count
  const std::string& left_out() const { return left_out_; }

 private:
  std::shared_ptr<const TokenFile> tokens_;
  std::shared_ptr<const MappedFile> counts_;
  std::string left_out_;
};

// Writes `stem`.bin and the others. Throws as TokenizedTexts::open.
void tokenize(const Tokenization& how, const std::string& stem);

// XDG_CACHE_HOME, or ~/.cache, and /tutti/tokens.
std::string default_token_folder();

}  // namespace tutti
