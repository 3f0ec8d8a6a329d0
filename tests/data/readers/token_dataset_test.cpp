#include "data/readers/token_dataset.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  std::string write_tokens(const std::vector<uint16_t>& tokens) {
    return write({reinterpret_cast<const char*>(tokens.data()), tokens.size() * 2});
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
  const TokenDataset data(
      {.path = write_tokens({7, 50256, 1, 65535, 2}), .format = Format::kUint16, .sequence_length = 4});
  EXPECT_TRUE(at::equal(data.get(std::vector<int64_t>{0}, {})["target"][0],
                        at::tensor({int64_t{50256}, int64_t{1}, int64_t{65535}, int64_t{2}})));
}

TEST_F(TokenDatasetTest, TokensLieBelowTheLargestOneOfTheSplit) {
  write_tokens({7, 300, 1, 3, 65535, 2});
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
  write_tokens({7, 100, 1, 3, 2});
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
              HasSubstr("whole number"));
  EXPECT_THAT(error_of({.path = "/nowhere.txt"}), HasSubstr("/nowhere.txt"));
}

TEST_F(TokenDatasetTest, DigestTellsTextsApart) {
  const auto digest = [&](const std::string& text) {
    return TokenDataset({.path = write(text), .sequence_length = 2}).digest();
  };
  EXPECT_EQ(digest("abcdefg"), digest("abcdefg"));
  EXPECT_NE(digest("abcdefg"), digest("abcdefgh"));
  EXPECT_NE(digest("abcdefg"), digest("Abcdefg"));
}

}  // namespace
}  // namespace tutti
