#include "data/readers/token_dataset.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "runtime/error.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Format = TokenDataset::Format;
using Split = TokenDataset::Split;

class TokenDatasetTest : public testing::Test {
 protected:
  std::string write(const std::string& text) {
    write_text(path_, text);
    return path_;
  }
  template <class Item = uint16_t>
  std::string write_tokens(const std::vector<Item>& tokens) {
    return write({reinterpret_cast<const char*>(tokens.data()), tokens.size() * sizeof(Item)});
  }
  template <class Item>
  std::string write_as(const std::vector<int64_t>& tokens) {
    return write_tokens(std::vector<Item>(tokens.begin(), tokens.end()));
  }
  std::string error_of(const TokenDataset::Options& options) {
    return message_of<UserError>([&] { TokenDataset{options}; });
  }

  Scratch scratch_;
  std::string path_ = scratch_.path("text");
};

at::Tensor row(const std::string& text) {
  std::vector<int64_t> values;
  for (const unsigned char letter : text) values.push_back(letter);
  return at::tensor(values);
}

TEST_F(TokenDatasetTest, TargetIsTheNextByte) {
  const TokenDataset data({.path = write("abcdefghijk"), .sequence_length = 5});
  EXPECT_EQ(data.size(), 2);
  const Batch batch = data.get(std::vector<int64_t>{1, 0}, {});
  EXPECT_TRUE(at::equal(batch["input"], at::stack({row("fghij"), row("abcde")})));
  EXPECT_TRUE(at::equal(batch["target"], at::stack({row("ghijk"), row("bcdef")})));
}

TEST_F(TokenDatasetTest, LastSampleNeedsAByteAfterIt) {
  EXPECT_EQ(TokenDataset({.path = write("abcdefghij"), .sequence_length = 5}).size(), 1);
}

TEST_F(TokenDatasetTest, BytesAboveAsciiArePositive) {
  const TokenDataset data({.path = write("\xff\x80z"), .sequence_length = 2});
  EXPECT_TRUE(at::equal(data.get(std::vector<int64_t>{0}, {})["input"],
                        at::tensor({int64_t{255}, int64_t{128}}).reshape({1, 2})));
  EXPECT_EQ(data.spec().classes, 256);
  EXPECT_EQ(data.spec().shapes.at("target"), Shape{2});
}

TEST_F(TokenDatasetTest, SplitsShareTheFileAtTheFraction) {
  write("abcdefghijklmnopqrst");  // 20
  const TokenDataset train(
      {.path = path_, .sequence_length = 4, .split = Split::kTrain, .eval_fraction = 0.25});
  const TokenDataset eval(
      {.path = path_, .sequence_length = 4, .split = Split::kEval, .eval_fraction = 0.25});
  EXPECT_EQ(train.size(), 3);
  EXPECT_EQ(eval.size(), 1);
  EXPECT_TRUE(at::equal(train.get(std::vector<int64_t>{2}, {})["target"][0], row("jklm")));
  EXPECT_TRUE(at::equal(eval.get(std::vector<int64_t>{0}, {})["input"][0], row("pqrs")));
}

TEST_F(TokenDatasetTest, ReadsLittleEndianTokens) {
  const TokenDataset data({.path = write_tokens<uint16_t>({7, 50256, 1, 65535, 2}),
                           .format = Format::kUint16,
                           .sequence_length = 4});
  EXPECT_TRUE(at::equal(data.get(std::vector<int64_t>{0}, {})["target"][0],
                        at::tensor({int64_t{50256}, int64_t{1}, int64_t{65535}, int64_t{2}})));
}

// Tokens below `end`, as drawn by a linear congruential generator.
std::vector<int64_t> drawn_tokens(int64_t end, int64_t count = 4000) {
  std::vector<int64_t> tokens;
  for (uint64_t state = 1; std::ssize(tokens) < count;) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    tokens.push_back(static_cast<int64_t>((state >> 33) % static_cast<uint64_t>(end)));
  }
  return tokens;
}

TEST_F(TokenDatasetTest, ReadsTokensOfEachWidth) {
  const std::vector<int64_t> tokens = drawn_tokens(100'000);
  const at::Tensor expected = at::tensor(tokens);
  const auto expect_read = [&](Format format) {
    const TokenDataset data({.path = path_, .format = format, .sequence_length = 100});
    EXPECT_EQ(data.spec().classes, *std::ranges::max_element(tokens) + 1);
    const Batch batch = data.get(std::vector<int64_t>{7}, {});
    EXPECT_TRUE(at::equal(batch["input"][0], expected.slice(0, 700, 800)));
    EXPECT_TRUE(at::equal(batch["target"][0], expected.slice(0, 701, 801)));
  };
  write_as<int32_t>(tokens);
  expect_read(Format::kInt32);
  expect_read(Format::kUint32);
  write_as<int64_t>(tokens);
  expect_read(Format::kInt64);
}

TEST_F(TokenDatasetTest, TokensOfAnotherWidthAreRefused) {
  const auto why = [&](Format format, int64_t vocab_size = 0) {
    return error_of({.path = path_, .format = format, .sequence_length = 4, .vocab_size = vocab_size});
  };
  for (const int64_t end : {128, 50'257, 128'256, 256'000}) {  // GPT-2's, Llama 3's, Gemma's
    write_as<int32_t>(drawn_tokens(end));
    EXPECT_THAT(why(Format::kUint16), HasSubstr("read as uint16 and look like int32; expected dtype")) << end;
    EXPECT_THAT(why(Format::kInt64), HasSubstr("read as int64 and look like int32")) << end;
    write_as<int64_t>(drawn_tokens(end));
    EXPECT_THAT(why(Format::kUint16), HasSubstr("expected dtype = \"int64\"")) << end;
    EXPECT_THAT(why(Format::kInt32), HasSubstr("expected dtype = \"int64\"")) << end;
  }
  for (const int64_t end : {4, 128, 50'257}) {
    write_as<uint16_t>(drawn_tokens(end));
    for (const Format wide : {Format::kInt32, Format::kUint32, Format::kInt64}) {
      EXPECT_THAT(why(wide), HasSubstr("look like uint16")) << end;
      EXPECT_THAT(why(wide, 50'257), HasSubstr("look like uint16")) << end;
    }
  }
}

TEST_F(TokenDatasetTest, TokensThatLookOddAreStillTokens) {
  std::vector<std::vector<int64_t>> all = {std::vector<int64_t>(100, 0), drawn_tokens(2),
                                           drawn_tokens(65536)};
  all.emplace_back();  // keys and values
  for (int64_t i = 0; i < 100; ++i) all.back().push_back(i % 2 == 0 ? 1000 + i : i % 7);
  for (const auto& tokens : all) {
    write_as<uint16_t>(tokens);
    EXPECT_NO_THROW(TokenDataset({.path = path_, .format = Format::kUint16, .sequence_length = 4}));
  }
  write_as<int32_t>(drawn_tokens(900'000'000));
  EXPECT_NO_THROW(TokenDataset(
      {.path = path_, .format = Format::kInt32, .sequence_length = 4, .vocab_size = 900'000'000}));
  write_as<int32_t>({7, 8, 9, -100, 3, 2});
  EXPECT_THAT(error_of({.path = path_, .format = Format::kInt32, .sequence_length = 4}),
              HasSubstr("token 3 is -100, which is not in [0, "));
}

TEST_F(TokenDatasetTest, TokensLieBelowTheLargestOneOfTheSplit) {
  write_tokens<uint16_t>({7, 300, 1, 3, 65535, 2});
  const auto classes = [&](Split split) {
    return TokenDataset({.path = path_,
                         .format = Format::kUint16,
                         .sequence_length = 1,
                         .split = split,
                         .eval_fraction = 0.4})
        .spec()
        .classes;
  };
  EXPECT_EQ(classes(Split::kTrain), 301);
  EXPECT_EQ(classes(Split::kEval), 65536);
}

TEST_F(TokenDatasetTest, LookingAtEveryTokenIsAsFastAsReadingThem) {
  write_tokens(std::vector<uint16_t>(size_t{16} << 20, 5));
  double best_ms = 1e9;
  for (int turn = 0; turn < 5; ++turn) {
    const auto start = std::chrono::steady_clock::now();
    const TokenDataset data({.path = path_, .format = Format::kUint16});
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    best_ms = std::min(best_ms, took.count());
    EXPECT_EQ(data.spec().classes, 6);
  }
  RecordProperty("best_ms", std::to_string(best_ms));
  EXPECT_LT(best_ms, 100);
}

TEST_F(TokenDatasetTest, TokensOutOfRangeAreNamed) {
  write_tokens<uint16_t>({7, 100, 1, 3, 2});
  EXPECT_THAT(error_of({.path = path_, .format = Format::kUint16, .sequence_length = 4, .vocab_size = 100}),
              AllOf(HasSubstr(path_), HasSubstr("token 1 is 100"), HasSubstr("[0, 100)")));
  const TokenDataset good(
      {.path = path_, .format = Format::kUint16, .sequence_length = 4, .vocab_size = 101});
  EXPECT_EQ(good.spec().classes, 101);
}

TEST_F(TokenDatasetTest, FilesThatHoldNoSampleAreNamed) {
  EXPECT_THAT(error_of({.path = write("abc"), .sequence_length = 3}),
              AllOf(HasSubstr(path_), HasSubstr("3 tokens")));
  EXPECT_THAT(error_of({.path = write(""), .sequence_length = 3}), HasSubstr("0 tokens"));
  EXPECT_THAT(error_of({.path = write("abc"), .format = Format::kUint16, .sequence_length = 1}),
              HasSubstr("whole number of uint16 tokens"));
  EXPECT_THAT(error_of({.path = write("abcdef"), .format = Format::kInt32, .sequence_length = 1}),
              HasSubstr("whole number of int32 tokens"));
  EXPECT_THAT(error_of({.path = "/nowhere.txt"}), HasSubstr("/nowhere.txt"));
}

TEST_F(TokenDatasetTest, DigestDistinguishesTexts) {
  const auto digest = [&](const std::string& text) {
    return TokenDataset({.path = write(text), .sequence_length = 2}).digest();
  };
  EXPECT_EQ(digest("abcdefg"), digest("abcdefg"));
  EXPECT_NE(digest("abcdefg"), digest("abcdefgh"));
  EXPECT_NE(digest("abcdefg"), digest("Abcdefg"));
}

}  // namespace
}  // namespace tutti
