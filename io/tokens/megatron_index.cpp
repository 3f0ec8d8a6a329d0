#include "io/tokens/megatron_index.h"

#include <array>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "io/number_at.h"
#include "runtime/error.h"

namespace tutti {
namespace {

constexpr std::string_view kIndexMagic("MMIDIDX\0\0", 9);
constexpr std::size_t kType = kIndexMagic.size() + 8, kSequences = kType + 1, kHeader = kSequences + 8 + 8;
constexpr std::size_t kBytesOfEach = sizeof(int32_t) + sizeof(int64_t);

constexpr std::array<std::pair<uint8_t, TokenFormat>, 4> kCodes{{{1, TokenFormat::kBytes},
                                                                 {4, TokenFormat::kInt32},
                                                                 {5, TokenFormat::kInt64},
                                                                 {8, TokenFormat::kUint16}}};

std::optional<TokenFormat> format_of(uint8_t code) {
  for (const auto& [known, format] : kCodes)
    if (known == code) return format;
  return std::nullopt;
}

std::string raw_bytes(uint64_t number) { return {reinterpret_cast<const char*>(&number), sizeof number}; }

}  // namespace

bool MegatronIndex::is_index(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return false;
  const MappedFile file(path);
  return file.bytes().size() >= kIndexMagic.size() &&
         std::memcmp(file.bytes().data(), kIndexMagic.data(), kIndexMagic.size()) == 0;
}

MegatronIndex::MegatronIndex(const std::string& path) : file_(path) {
  const auto fail = [&path](const std::string& what) { throw UserError({path}, what); };
  const std::size_t bytes = file_.bytes().size();
  if (bytes < kHeader || number_at<uint64_t>(file_.bytes(), kIndexMagic.size()) != 1)
    fail("an index of Megatron-LM that is damaged, or not of version 1");
  const auto format = format_of(number_at<uint8_t>(file_.bytes(), kType));
  if (!format) fail("its tokens are of a type that is not read; uint8, uint16, int32 and int64 are");
  format_ = *format;
  const auto sequences = number_at<uint64_t>(file_.bytes(), kSequences);
  if (sequences > (bytes - kHeader) / kBytesOfEach)
    fail("truncated: it claims " + std::to_string(sequences) + " sequences");
  size_ = static_cast<int64_t>(sequences);
  for (int64_t i = 0; i < size_; ++i) {
    const int64_t tokens = length(i);
    if (tokens < 0 || begin(i) != tokens_)
      fail("sequence " + std::to_string(i) + " does not begin where the one before ends");
    tokens_ += tokens;
  }
}

int64_t MegatronIndex::length(int64_t document) const {
  return number_at<int32_t>(file_.bytes(), kHeader + static_cast<std::size_t>(document) * sizeof(int32_t));
}

int64_t MegatronIndex::begin(int64_t document) const {
  const std::size_t begins = kHeader + static_cast<std::size_t>(size_) * sizeof(int32_t);
  const auto byte =
      number_at<int64_t>(file_.bytes(), begins + static_cast<std::size_t>(document) * sizeof(int64_t));
  const auto token = static_cast<int64_t>(token_bytes(format_));
  return byte % token == 0 ? byte / token : -1;
}

std::string megatron_header(TokenFormat format, uint64_t documents) {
  for (const auto& [code, known] : kCodes)
    if (known == format)
      return std::string(kIndexMagic) + raw_bytes(1) + static_cast<char>(code) + raw_bytes(documents) +
             raw_bytes(documents + 1);
  TUTTI_ASSERT(false, token_type_name(format));
}

}  // namespace tutti
