#include "io/tokens/token_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "io/numpy/npy.h"
#include "runtime/error.h"
#include "tests/io/tokens/random_bytes.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const std::string kNpy = std::string("\x93NUMPY\x01", 7) + std::string(1, '\0');

template <class Number>
std::string bytes_of(const std::vector<Number>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(Number)};
}

std::string npy(std::string header, const std::string& numbers) {
  header.resize((header.size() + 10 + 63) / 64 * 64 - 10, ' ');
  return kNpy + bytes_of<uint16_t>({static_cast<uint16_t>(header.size())}) + header + numbers;
}

std::string llm_c(uint32_t magic, uint32_t version, uint32_t tokens, const std::string& numbers) {
  std::vector<uint32_t> header(256);
  header[0] = magic;
  header[1] = version;
  header[2] = tokens;
  return bytes_of(header) + numbers;
}

std::string index_of(uint8_t type, const std::vector<int32_t>& lengths, const std::vector<int64_t>& begins) {
  return std::string("MMIDIDX\0\0", 9) + bytes_of<uint64_t>({1}) + static_cast<char>(type) +
         bytes_of<uint64_t>({lengths.size(), lengths.size() + 1}) + bytes_of(lengths) + bytes_of(begins) +
         bytes_of(std::vector<int64_t>(lengths.size() + 1));
}

class TokenFileTest : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& bytes) {
    std::ofstream(scratch_.path(name), std::ios::binary) << bytes;
    return scratch_.path(name);
  }
  std::string error_of(const std::string& path, std::optional<TokenFormat> format = {}) {
    return message_of<UserError>([&] { TokenFile(path, format); });
  }
  template <class Number>
  static std::vector<Number> numbers_in(const TokenFile& file) {
    std::vector<Number> numbers(static_cast<std::size_t>(file.tokens()));
    std::memcpy(numbers.data(), file.bytes().data(), file.bytes().size());
    return numbers;
  }

  Scratch scratch_;
};

template <class Number>
std::vector<Number> some_tokens(std::size_t count, uint32_t end) {
  std::vector<Number> tokens;
  uint32_t state = 1;  // Zipf's law, roughly: small ones are frequent
  for (std::size_t i = 0; i < count; ++i) {
    state = state * 1664525 + 1013904223;
    const double part = (state >> 8) / double{1 << 24};
    tokens.push_back(static_cast<Number>(static_cast<uint32_t>(part * part * end)));
  }
  return tokens;
}

TEST_F(TokenFileTest, AFewOddNumbersDoNotHideTheType) {
  for (const uint32_t end : {90U, 50'257U, 128'256U, 256'000U}) {
    auto narrow = some_tokens<int32_t>(4000, end);
    narrow[7] = -1;
    narrow[70] = 900'000'000;
    EXPECT_EQ(TokenFile(write("a.bin", bytes_of(narrow)), {}).format(), TokenFormat::kInt32) << end;
    for (std::size_t i = 0; i < narrow.size(); i += 2) narrow[i] = -100;
    EXPECT_EQ(TokenFile(write("a.bin", bytes_of(narrow)), {}).format(), TokenFormat::kInt32) << end;
    auto wide = some_tokens<int64_t>(4000, end);
    wide[7] = -100;
    EXPECT_EQ(TokenFile(write("a.bin", bytes_of(wide)), {}).format(), TokenFormat::kInt64) << end;
  }
  auto padded = some_tokens<uint16_t>(4000, 50'257);
  for (std::size_t i = 0; i < padded.size(); ++i)
    if (i % 19 > 1) padded[i] = 0;
  EXPECT_EQ(TokenFile(write("a.bin", bytes_of(padded)), {}).format(), TokenFormat::kUint16);
  padded[7] = 65535;
  EXPECT_EQ(TokenFile(write("a.bin", bytes_of(padded)), {}).format(), TokenFormat::kUint16);
}

template <class Number>
std::string turned(const std::vector<Number>& numbers) {
  std::string bytes = bytes_of(numbers);
  for (std::size_t i = 0; i < bytes.size(); i += sizeof(Number))
    std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(i),
                 bytes.begin() + static_cast<std::ptrdiff_t>(i + sizeof(Number)));
  return bytes;
}

TEST_F(TokenFileTest, OtherNumbersThanTokensAreNamed) {
  for (const uint32_t end : {90U, 50'257U}) {
    const auto error = [&](const std::string& bytes) { return error_of(write("a.bin", bytes)); };
    EXPECT_THAT(error(bytes_of(some_tokens<float>(4000, end))), HasSubstr("looks like float32 numbers"));
    EXPECT_THAT(error(turned(some_tokens<int32_t>(4000, end))), HasSubstr("looks like big-endian int32"));
    EXPECT_THAT(error(turned(some_tokens<uint16_t>(4000, end))),
                HasSubstr("looks like big-endian numbers of two"));
    EXPECT_NO_THROW(TokenFile(write("a.bin", bytes_of(some_tokens<uint16_t>(4000, end))), {})) << end;
  }
  const std::string bytes = bytes_of(some_tokens<uint8_t>(80'000, 90));
  EXPECT_THAT(error_of(write("a.bin", bytes)), HasSubstr("looks like uint8 numbers"));
  EXPECT_NO_THROW(TokenFile(write("a.bin", bytes), TokenFormat::kUint16)) << "as the user says";
}

std::string float16_of(const std::vector<float>& numbers) {
  std::vector<uint16_t> halves;
  for (const float number : numbers) {
    int exponent = 0;
    const float part = std::frexp(number, &exponent);  // number = part * 2^exponent, part in [0.5, 1)
    halves.push_back(
        number == 0 ? uint16_t{0}
                    : static_cast<uint16_t>((exponent + 14) << 10 | (static_cast<int>(part * 2048) - 1024)));
  }
  return bytes_of(halves);
}

TEST_F(TokenFileTest, FloatsOfEachSizeAndOrderAreNamed) {
  for (const uint32_t end : {90U, 50'257U}) {
    const auto error = [&](const std::string& bytes) { return error_of(write("a.bin", bytes)); };
    const auto narrow = some_tokens<float>(4000, end);
    const auto wide = some_tokens<double>(4000, end);
    EXPECT_THAT(error(bytes_of(wide)), HasSubstr("looks like float64 numbers")) << end;
    EXPECT_THAT(error(turned(wide)), HasSubstr("looks like big-endian float64 numbers")) << end;
    EXPECT_THAT(error(turned(narrow)), HasSubstr("looks like big-endian float32 numbers")) << end;
    const std::string half = float16_of(narrow);
    EXPECT_THAT(error(half), HasSubstr("looks like float16 numbers")) << end;
    std::vector<uint16_t> halves(half.size() / 2);
    std::memcpy(halves.data(), half.data(), half.size());
    EXPECT_THAT(error(turned(halves)), HasSubstr("looks like big-endian float16 numbers")) << end;
  }
}

TEST_F(TokenFileTest, RandomBytesAreNoTokensUnlessTheUserSaysSo) {
  const std::string bytes = random_bytes(80'000);
  EXPECT_THAT(error_of(write("a.bin", bytes)),
              AllOf(HasSubstr("looks like no tokens"), HasSubstr("dtype says if it is something else")));
  EXPECT_NO_THROW(TokenFile(write("a.bin", bytes), TokenFormat::kUint16));
  std::vector<uint16_t> all = some_tokens<uint16_t>(4000, 30'000);
  for (std::size_t i = 0; i < all.size(); i += 10) all[i] = 65'000;
  EXPECT_NO_THROW(TokenFile(write("a.bin", bytes_of(all)), {})) << "a vocabulary of 65,536";
}

TEST_F(TokenFileTest, ArraysOfNumpySayTheirType) {
  const std::vector<uint32_t> tokens = {7, 100000, 3};
  const TokenFile file(
      write("t.npy", npy("{'descr': '<u4', 'fortran_order': False, 'shape': (3,), }", bytes_of(tokens))), {});
  EXPECT_TRUE(file.has_header());
  EXPECT_EQ(file.format(), TokenFormat::kUint32);
  EXPECT_EQ(numbers_in<uint32_t>(file), tokens);
  EXPECT_THAT(error_of(file.path(), TokenFormat::kUint16),
              HasSubstr("t.npy: its header says that tokens are uint32, not uint16; leave dtype out"));
}

TEST_F(TokenFileTest, ArraysOfNumpyThatAreNoTokensAreRefused) {
  const auto why = [&](const std::string& header, const std::string& numbers = std::string(16, '\1')) {
    return error_of(write("t.npy", npy(header, numbers)));
  };
  EXPECT_THAT(why("{'descr': '<u4', 'fortran_order': False, 'shape': (2, 2), }"),
              HasSubstr("an array with 2 dimensions; expected one, of tokens"));
  EXPECT_THAT(why("{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }"),
              HasSubstr("numbers of numpy's type '<f4'; expected tokens"));
  EXPECT_THAT(why("{'descr': '>u4', 'fortran_order': False, 'shape': (4,), }"), HasSubstr("big-endian"));
  EXPECT_THAT(why("{'descr': '|O', 'fortran_order': False, 'shape': (4,), }"),
              HasSubstr("type '|O' are not read"));
  EXPECT_THAT(why("{'descr': [('a', '<u4')], 'fortran_order': False, 'shape': (4,), }"),
              HasSubstr("an array of records"));
  EXPECT_THAT(why("{'descr': '<u4', 'fortran_order': False, 'shape': (5,), }"),
              HasSubstr("truncated: the array has 20 bytes, the file 16 behind its header"));
  EXPECT_THAT(why("{'descr': '<u4', 'fortran_order': True, 'shape': (2, 2), }"),
              HasSubstr("column by column"));
  for (const char* damaged :
       {"", "{'descr': '<u4'}", "{'descr': '<u4', 'fortran_order': False, 'shape': (-1,)}",
        "{'descr': '<u4', 'fortran_order': False, 'shape': (1", "{'descr' '<u4'"})
    EXPECT_THAT(why(damaged), HasSubstr("damaged")) << damaged;
  EXPECT_THAT(error_of(write("t.npy", kNpy + "\xff\xff{")), HasSubstr("its header is damaged"));
}

TEST_F(TokenFileTest, FilesOfLlmCSayTheirType) {
  const std::vector<uint16_t> tokens = {7, 50256, 3};
  const TokenFile gpt2(write("a.bin", llm_c(20240520, 1, 3, bytes_of(tokens))), {});
  EXPECT_EQ(gpt2.format(), TokenFormat::kUint16);
  EXPECT_EQ(numbers_in<uint16_t>(gpt2), tokens);
  const std::vector<uint32_t> wide = {7, 128000};
  const TokenFile llama(write("b.bin", llm_c(20240801, 7, 2, bytes_of(wide))), TokenFormat::kUint32);
  EXPECT_EQ(numbers_in<uint32_t>(llama), wide);
  EXPECT_THAT(error_of(write("d.bin", llm_c(20240520, 2, 3, bytes_of(tokens)))),
              HasSubstr("a file of llm.c of version 2; expected 1"));
  EXPECT_THAT(error_of(write("c.bin", llm_c(20240520, 1, 4, bytes_of(tokens)))),
              HasSubstr("truncated: it claims 4 uint16 tokens and has 3"));
}

TEST_F(TokenFileTest, MegatronsIndexIsFoundByEitherName) {
  const std::vector<int32_t> tokens = {5, 4, 3, 100000};
  write("text.bin", bytes_of(tokens));
  write("text.idx", index_of(4, {3, 1}, {0, 12}));
  for (const char* name : {"text.idx", "text.bin", "text"}) {
    const TokenFile file(scratch_.path(name), {});
    EXPECT_EQ(file.format(), TokenFormat::kInt32) << name;
    EXPECT_EQ(numbers_in<int32_t>(file), tokens);
  }
  write("text.idx", index_of(4, {3, 2}, {0, 12}));
  EXPECT_THAT(error_of(scratch_.path("text.bin")),
              HasSubstr("truncated: it claims 5 int32 tokens and has 4"));
  write("text.idx", index_of(4, {3, 1}, {0, 16}));
  EXPECT_THAT(error_of(scratch_.path("text")), HasSubstr("text.idx: sequence 1 does not begin where"));
  write("text.idx", index_of(7, {3, 1}, {0, 12}));
  EXPECT_THAT(error_of(scratch_.path("text")), HasSubstr("of a type that is not read"));
  write("text.idx", index_of(4, {3, 1}, {0, 12}).substr(0, 40));
  EXPECT_THAT(error_of(scratch_.path("text")), HasSubstr("truncated: it claims 2 sequences"));
  write("text.idx", "MMIDIDY");
  for (const char* name : {"text.idx", "text.bin", "text"})
    EXPECT_THAT(error_of(scratch_.path(name)), HasSubstr("text.idx: expected an index of Megatron-LM"))
        << name;
}

TEST_F(TokenFileTest, WithoutAHeaderTheNumbersShowTheType) {
  std::vector<int32_t> tokens(1000);
  for (int32_t i = 0; i < 1000; ++i) tokens[static_cast<std::size_t>(i)] = i * 77;
  const std::string path = write("t.bin", bytes_of(tokens));
  const TokenFile file(path, {});
  EXPECT_FALSE(file.has_header());
  EXPECT_EQ(file.format(), TokenFormat::kInt32);
  EXPECT_EQ(numbers_in<int32_t>(file), tokens);
  EXPECT_EQ(TokenFile(path, TokenFormat::kUint16).tokens(), 2000) << "as the caller says";
  EXPECT_THAT(error_of(write("odd.bin", std::string(65, 'x'))),
              HasSubstr("65 bytes are not a whole number of uint16 tokens"));
}

}  // namespace
}  // namespace tutti
