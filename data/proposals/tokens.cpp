#include <algorithm>
#include <cstring>
#include <filesystem>
#include <span>
#include <type_traits>

#include "data/proposals/look.h"
#include "io/tokens/token_file.h"
#include "runtime/error.h"

namespace tutti {
namespace {

constexpr int64_t kMostTokensRead = int64_t{1} << 23;
constexpr int64_t kUint16Values = int64_t{1} << 16;

Proposal tokens_of(const std::string& file, const std::string& kind, int64_t tokens, int64_t vocabulary,
                   const std::string& summary) {
  const int64_t length = sequence_for(tokens, file);
  const auto lines = [&](const char* split, const char* comment) {
    return RecipeLines{{"kind", toml_text(kind), std::string(split) == "train" ? summary : ""},
                       path_line(file),
                       {"sequence_length", std::to_string(length), "tokens of a sample"},
                       {"split", toml_text(split), comment}};
  };
  return {.name = std::filesystem::path(file).stem(),
          .summary = summary,
          .train = lines("train", "all but the last tenth of the file"),
          .eval = lines("eval", "the last tenth"),
          .count = tokens * 9 / 10 / length,
          .samples = TokenSamples{.sequence_length = length, .vocabulary = vocabulary}};
}

template <class Token>
int64_t end_of(const std::string& file, std::span<const std::byte> bytes) {
  Token largest = 0;
  for (std::size_t i = 0; i + sizeof(Token) <= bytes.size(); i += sizeof(Token)) {
    Token token;
    std::memcpy(&token, &bytes[i], sizeof token);
    if (std::is_signed_v<Token> && token < Token{0})
      throw UserError({file}, "token " + std::to_string(i / sizeof(Token)) + " is " + std::to_string(token) +
                                  "; tokens are at least 0");
    largest = std::max(largest, token);
  }
  return static_cast<int64_t>(largest) + 1;
}

// By the largest inspected token; all values of uint16 if the file is too long to be inspected whole.
int64_t vocabulary_of(const TokenFile& file) {
  if (file.format() == TokenFormat::kBytes) return 256;
  if (file.format() == TokenFormat::kUint16 && file.tokens() > kMostTokensRead) return kUint16Values;
  const auto bytes = file.bytes().first(token_bytes(file.format()) *
                                        static_cast<std::size_t>(std::min(file.tokens(), kMostTokensRead)));
  const auto end = file.format() == TokenFormat::kUint16   ? end_of<uint16_t>
                   : file.format() == TokenFormat::kUint32 ? end_of<uint32_t>
                   : file.format() == TokenFormat::kInt32  ? end_of<int32_t>
                                                           : end_of<int64_t>;
  return vocabulary_for(end(file.path(), bytes));
}

}  // namespace

Proposal look_at_tokens(const std::string& path) {
  const TokenFile file(path, std::nullopt);
  const std::string type = token_type_name(file.format());
  const int64_t end = vocabulary_of(file);
  Proposal proposal =
      tokens_of(path, "tokens", file.tokens(), end,
                std::to_string(file.tokens()) + ' ' + type + " tokens, below " + std::to_string(end));
  if (!file.has_header())
    for (RecipeLines* lines : {&proposal.train, &proposal.eval})
      lines->insert(lines->begin() + 2, {"dtype", toml_text(type), "of a token in the file"});
  return proposal;
}

Proposal look_at_bytes(const std::string& file, int64_t bytes) {
  return tokens_of(file, "bytes", bytes, 256,
                   "a text of " + std::to_string(bytes) + " bytes; every byte is a token");
}

}  // namespace tutti
