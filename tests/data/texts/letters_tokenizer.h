#pragma once

#include <string>

namespace tutti {

// A tokenizer.json. Each byte is a word: "a" is 0, "b" is 1, ..., " " is 26; "<s>" and "</s>" are 27 and 28.
inline std::string letters_tokenizer() {
  std::string vocabulary;
  for (int i = 0; i < 26; ++i)
    vocabulary += std::string("\"") + static_cast<char>('a' + i) + "\": " + std::to_string(i) + ", ";
  return R"({"added_tokens": [
      {"id": 27, "content": "<s>", "single_word": false, "lstrip": false, "rstrip": false,
       "normalized": false, "special": true},
      {"id": 28, "content": "</s>", "single_word": false, "lstrip": false, "rstrip": false,
       "normalized": false, "special": true}],
    "normalizer": null, "pre_tokenizer": {"type": "Split", "pattern": {"String": ""}, "behavior": "Isolated",
    "invert": false}, "post_processor": null, "decoder": {"type": "Fuse"},
    "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
    "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "ignore_merges": false,
    "vocab": {)" +
         vocabulary + R"(" ": 26}, "merges": []}})";
}

}  // namespace tutti
