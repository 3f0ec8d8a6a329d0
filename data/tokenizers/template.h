#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "data/tokenizers/json_place.h"

namespace tutti {

// Ids of a text or of a pair of texts, and to which of the two each belongs (BERT's token_type_ids).
struct EncodedPair {
  std::vector<uint32_t> ids, types;
};

// The `post_processor` of a tokenizer.json: BertProcessing, ByteLevel (which changes no ids),
// RobertaProcessing, TemplateProcessing, and Sequence with at most one member that adds tokens. Immutable.
class TokenTemplate {
 public:
  TokenTemplate();  // none: a text unchanged, a pair joined
  // Throws UserError with the position of the error.
  explicit TokenTemplate(const JsonPlace& place);

  // Special tokens before and behind a text, if the template has the text once.
  struct Around {
    std::vector<uint32_t> before, behind;
  };
  const Around& around() const { return around_; }

  // Ids and types of a pair. Without `special`, special tokens are left out.
  EncodedPair pair(const std::vector<uint32_t>& first, const std::vector<uint32_t>& second,
                   bool special) const;

 private:
  struct Part {
    int sequence = -1;          // 0 or 1; -1: special tokens
    std::vector<uint32_t> ids;  // the special tokens
    uint32_t type = 0;
  };
  using Parts = std::vector<Part>;

  void read(const JsonPlace& place);
  void read_template(const JsonPlace& place);
  void read_bert(const JsonPlace& place, bool roberta);
  using SpecialTokens = std::map<std::string, std::vector<uint32_t>>;
  static Parts read_parts(const JsonPlace& place, const SpecialTokens& tokens);
  void find_around(const JsonPlace& place);

  bool adds_tokens_ = false;
  Parts single_, pair_;
  Around around_;
};

}  // namespace tutti
