#pragma once

#include <string>
#include <utility>
#include <vector>

namespace tutti {

struct TokenizeOptions {
  std::string texts;      // files, as [data.train] path of kind "text"
  std::string tokenizer;  // a tokenizer.json, or its folder
  std::string to;         // the names of the files to write, without their endings
  std::vector<std::pair<std::string, std::string>> keys = {};  // other keys of kind "text" with their values
  bool add_bos_token = false, add_eos_token = true, skip_bad = false;
};

// `tutti tokenize`: writes TO.bin and TO.idx (data/texts/tokenized_texts.h), which kind "tokens" reads, and
// Megatron-LM. Returns a line about them. Throws UserError.
std::string tokenize_texts(const TokenizeOptions& options);

}  // namespace tutti
