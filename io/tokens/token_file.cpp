#include "io/tokens/token_file.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "io/number_at.h"
#include "io/numpy/npy.h"
#include "recipe/wrong_key.h"
#include "runtime/error.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kHeadBytes = 1 << 20;  // that show the type of tokens

struct LlmC {
  uint32_t magic;
  uint32_t version;
  TokenFormat format;
  static constexpr std::size_t kHeader = 256 * sizeof(int32_t);
};
constexpr std::array kLlmC{LlmC{20240520, 1, TokenFormat::kUint16}, LlmC{20240801, 7, TokenFormat::kUint32}};

std::optional<TokenFormat> format_of_numpy(std::string_view type) {
  constexpr std::array<std::pair<std::string_view, TokenFormat>, 6> kTypes{{{"|u1", TokenFormat::kBytes},
                                                                            {"<u2", TokenFormat::kUint16},
                                                                            {"<i4", TokenFormat::kInt32},
                                                                            {"<u4", TokenFormat::kUint32},
                                                                            {"<i8", TokenFormat::kInt64},
                                                                            {"<u8", TokenFormat::kInt64}}};
  const auto format = std::ranges::find(kTypes, type, &std::pair<std::string_view, TokenFormat>::first);
  return format == kTypes.end() ? std::nullopt : std::optional(format->second);
}

std::string require_index(const std::string& path) {
  if (MegatronIndex::is_index(path)) return path;
  throw UserError({path}, "expected an index of Megatron-LM, which begins with MMIDIDX, beside tokens");
}

// NAME.idx of NAME.idx, NAME.bin or NAME. "" if there is none.
std::string index_of(const std::string& path) {
  const std::string ending = fs::path(path).extension().string();
  if (ending == ".idx") return require_index(path);
  std::error_code ignored;
  std::string index = path + ".idx";
  if (ending == ".bin")
    index = fs::path(path).replace_extension(".idx").string();
  else if (fs::exists(path, ignored))
    return "";
  return fs::exists(index, ignored) ? require_index(index) : "";
}

std::string tokens_of(const std::string& path, const std::string& index) {
  return index.empty() ? path : fs::path(index).replace_extension(".bin").string();
}

TokenFormat likely_type(const MappedFile& file) {
  const std::span head(reinterpret_cast<const uint8_t*>(file.bytes().data()),
                       std::min(file.bytes().size(), kHeadBytes));
  if (const std::string other = other_numbers(head); !other.empty())
    throw WrongKey("dtype", {},
                   file.path() + ": looks like " + other + "; dtype says if it is something else");
  return likely_token_type(head);
}

}  // namespace

TokenFile::TokenFile(const std::string& path, std::optional<TokenFormat> format) {
  const std::string index = index_of(path);
  file_ = std::make_unique<const MappedFile>(tokens_of(path, index));
  const auto all = file_->bytes();
  const uint32_t magic = all.size() >= LlmC::kHeader ? number_at<uint32_t>(all, 0) : 0;
  if (!index.empty()) {
    index_ = std::make_shared<const MegatronIndex>(index);
    set(index_->format(), 0, static_cast<uint64_t>(index_->tokens()) * token_bytes(index_->format()));
  } else if (is_npy(all)) {
    read_npy();
  } else if (magic / 10000 == 2024) {
    read_llm_c(magic);
  }
  if (!has_header_) {
    format_ = format ? *format : likely_type(*file_);
    if (all.size() % token_bytes(format_) != 0)
      throw UserError({path}, std::to_string(all.size()) + " bytes are not a whole number of " +
                                  token_type_name(format_) + " tokens");
    bytes_ = all;
  }
  if (has_header_ && format && *format != format_)
    throw WrongKey("dtype", {},
                   path + ": its header says that tokens are " + token_type_name(format_) + ", not " +
                       token_type_name(*format) + "; leave dtype out");
}

void TokenFile::read_npy() {
  const NpyHeader header = read_npy_header(file_->bytes(), path());
  if (header.shape.size() != 1)
    throw UserError({path()}, "an array with " + std::to_string(header.shape.size()) +
                                  " dimensions; expected one, of tokens");
  const auto format = format_of_numpy(header.type);
  if (!format)
    throw UserError({path()}, "numbers of numpy's type '" + header.type +
                                  "'; expected tokens of uint8, uint16, int32, uint32 or int64");
  set(*format, header.at, header.bytes());
}

void TokenFile::read_llm_c(uint32_t magic) {
  const auto version = number_at<uint32_t>(file_->bytes(), 4);
  const auto header = std::ranges::find(kLlmC, magic, &LlmC::magic);
  if (header == kLlmC.end()) return;
  if (header->version != version)
    throw UserError({path()}, "a file of llm.c of version " + std::to_string(version) + "; expected " +
                                  std::to_string(header->version));
  set(header->format, LlmC::kHeader,
      uint64_t{number_at<uint32_t>(file_->bytes(), 8)} * token_bytes(header->format));
}

void TokenFile::set(TokenFormat format, std::size_t at, uint64_t bytes) {
  const auto behind = file_->bytes().subspan(at);
  if (bytes > behind.size())
    throw UserError({path()}, "truncated: it claims " + std::to_string(bytes / token_bytes(format)) + ' ' +
                                  token_type_name(format) + " tokens and has " +
                                  std::to_string(behind.size() / token_bytes(format)));
  if (reinterpret_cast<std::uintptr_t>(behind.data()) % token_bytes(format) != 0)
    throw UserError({path()}, "its header has an odd length: " + std::to_string(at) + " bytes");
  format_ = format;
  has_header_ = true;
  bytes_ = behind.first(bytes);
}

}  // namespace tutti
