#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "io/mapped_file.h"
#include "io/tokens/megatron_index.h"
#include "io/tokens/token_type.h"

namespace tutti {

// A file of tokens, one behind the other. Its format is seen from its first bytes:
//   no header           little-endian integers, as nanoGPT's prepare.py writes them
//   .npy                an array of numpy with one dimension
//   llm.c               256 int32 (20240520 and version 1, with uint16; 20240801 and version 7, with uint32;
//   the
//                       number of tokens), and the tokens: dev/data/data_common.py
//   Megatron-LM         NAME.bin, and NAME.idx, which begins with "MMIDIDX":
//   io/tokens/megatron_index.h.
//                       `path` is one of both, or NAME
class TokenFile {
 public:
  // `format`: of tokens that have no header, or the header must say the same; nullopt: the header's, else
  // likely_token_type. Throws WrongKey if the header says another type; UserError if the file is
  // damaged.
  TokenFile(const std::string& path, std::optional<TokenFormat> format);

  const std::string& path() const { return file_->path(); }
  TokenFormat format() const { return format_; }
  bool has_header() const { return has_header_; }
  // Of the file or, of Megatron's, of its documents.
  std::span<const std::byte> bytes() const { return bytes_; }
  const MegatronIndex* documents() const { return index_.get(); }  // null: the file does not say
  int64_t tokens() const { return static_cast<int64_t>(bytes_.size() / token_bytes(format_)); }

 private:
  void read_npy();
  void read_llm_c(uint32_t magic);
  void set(TokenFormat format, std::size_t at, uint64_t bytes);

  std::unique_ptr<const MappedFile> file_;
  TokenFormat format_ = TokenFormat::kUint16;
  bool has_header_ = false;
  std::shared_ptr<const MegatronIndex> index_;
  std::span<const std::byte> bytes_;
};

}  // namespace tutti
