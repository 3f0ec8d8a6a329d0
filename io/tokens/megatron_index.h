#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "io/mapped_file.h"
#include "io/tokens/token_type.h"

namespace tutti {

// NAME.idx of Megatron-LM's datasets, core/datasets/indexed_dataset.py: the documents in the tokens of
// NAME.bin, one behind the other. Little-endian:
//   9 bytes "MMIDIDX" and zeros, uint64 version 1, uint8 type of tokens, uint64 n, uint64 n + 1
//   int32 [n] lengths in tokens, int64 [n] first bytes, int64 [n + 1] the documents' first sequences
class MegatronIndex {
 public:
  static bool is_index(const std::string& path);

  // Throws UserError if the file is damaged, or has tokens of a type that is not read.
  explicit MegatronIndex(const std::string& path);

  TokenFormat format() const { return format_; }
  int64_t size() const { return size_; }
  int64_t tokens() const { return tokens_; }  // of all documents
  int64_t length(int64_t document) const;     // in tokens
  int64_t begin(int64_t document) const;      // its first token

 private:
  MappedFile file_;
  TokenFormat format_ = TokenFormat::kUint16;
  int64_t size_ = 0;
  int64_t tokens_ = 0;
};

// The bytes of the index before the lengths, and its code for a type of tokens (not kUint32).
std::string megatron_header(TokenFormat format, uint64_t documents);

}  // namespace tutti
