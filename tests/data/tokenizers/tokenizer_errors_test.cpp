#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "data/tokenizers/tokenizer.h"
#include "runtime/error.h"

namespace tutti {
namespace {

using Json = nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

// A tokenizer with a part that is written over, as in a damaged file.
class TokenizerErrors : public testing::Test {
 protected:
  void SetUp() override {
    file_ = Json::parse(R"({"version": "1.0", "added_tokens": [],
        "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]]}})");
  }
  void TearDown() override { std::filesystem::remove(path_); }

  std::shared_ptr<const Tokenizer> read() {
    std::ofstream(path_) << file_;
    return Tokenizer::read(path_);
  }
  // The error, without the file's name, which it must have.
  std::string error_of(const std::function<void()>& action) {
    try {
      action();
    } catch (const UserError& error) {
      EXPECT_THAT(error.what(), HasSubstr(path_));
      return error.message();
    }
    return "no error";
  }
  std::string error_with(const std::string& pointer, const Json& value) {
    SetUp();
    file_[Json::json_pointer(pointer)] = value;
    return error_of([this] { read(); });
  }

  const std::string path_ = testing::TempDir() + "/tokenizer_errors.json";
  Json file_;
};

TEST_F(TokenizerErrors, ATextDoesNotGrowWithoutBound) {
  const Json longer = {
      {"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", std::string(1000, 'a')}};
  const Json often(5, longer);
  file_["normalizer"] = {{"type", "Sequence"}, {"normalizers", often}};
  EXPECT_THAT(error_of([this] { read()->encode(std::string(40, 'a')); }), HasSubstr("bytes of a text of"));
  file_["normalizer"] = nullptr;
  file_["decoder"] = {{"type", "Sequence"}, {"decoders", often}};
  const auto tokenizer = read();
  const std::vector<uint32_t> ids(40, 0);
  EXPECT_THROW(tokenizer->decode(ids), UserError);
}

TEST_F(TokenizerErrors, ATemplatesTokensAreBounded) {
  const Json text = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}},
             token = {{"SpecialToken", {{"id", "x"}, {"type_id", 0}}}};
  Json single = {text};
  for (int i = 0; i < 4096; ++i) single.push_back(token);
  const auto with_ids = [&](std::size_t count) {
    return error_with("/post_processor",
                      {{"type", "TemplateProcessing"},
                       {"single", single},
                       {"pair", {text}},
                       {"special_tokens", {{"x", {{"ids", std::vector<int>(count, 1)}}}}}});
  };
  EXPECT_EQ(with_ids(16), "no error");
  EXPECT_EQ(read()->encode("a").size(), 1 + 4096 * 16);
  EXPECT_THAT(with_ids(17), AllOf(HasSubstr("post_processor.single["),
                                  HasSubstr("].SpecialToken.id: the template has more than 65536")));
}

TEST_F(TokenizerErrors, AHugeFileIsRefusedBeforeItIsRead) {
  std::ofstream(path_) << "{";
  std::filesystem::resize_file(path_, (std::uintmax_t{128} << 20) + 1);
  EXPECT_THAT(error_of([this] { Tokenizer::read(path_); }), HasSubstr("more than the 128 MiB"));
}

TEST_F(TokenizerErrors, AnUnknownTypeIsNamedWithItsPlace) {
  EXPECT_THAT(error_with("/normalizer", {{"type", "Sequence"}, {"normalizers", {{{"type", "NFX"}}}}}),
              AllOf(HasSubstr("normalizer.normalizers[0].type"), HasSubstr("'NFX' is not known"),
                    HasSubstr("did you mean 'NFC'?")));
  EXPECT_THAT(error_with("/pre_tokenizer", {{"type", "UnicodeScripts"}}), HasSubstr("pre_tokenizer.type"));
  EXPECT_THAT(error_with("/post_processor", {{"type", "Q"}}), HasSubstr("post_processor.type"));
  EXPECT_THAT(error_with("/decoder", {{"type", "Q"}}), HasSubstr("decoder.type"));
  EXPECT_THAT(error_with("/model/type", "Q"), AllOf(HasSubstr("model.type"), HasSubstr("Unigram")));
}

TEST_F(TokenizerErrors, DamagedValuesAreNamedWithTheirPlaces) {
  EXPECT_THAT(error_with("/version", "2.0"), HasSubstr("version: expected \"1.0\""));
  EXPECT_THAT(error_with("/model/vocab/a", -1), HasSubstr("model.vocab: token 'a'"));
  EXPECT_THAT(error_with("/model/vocab/a", 4294967295U), HasSubstr("expected an id from 0 to 16777215"));
  EXPECT_THAT(error_with("/model/merges/0", "a b c"), HasSubstr("model.merges[0]: expected two tokens"));
  EXPECT_THAT(error_with("/model/merges/0", {"a", "c"}), HasSubstr("'c' is not in the vocabulary"));
  EXPECT_THAT(error_with("/model/dropout", 0.1), HasSubstr("model.dropout: expected null or 0"));
  EXPECT_THAT(error_with("/added_tokens", {{{"content", "x"}}}), HasSubstr("added_tokens[0]: \"special\""));
  EXPECT_THAT(error_with("/pre_tokenizer",
                         {{"type", "Split"}, {"pattern", {{"Regex", "(a"}}}, {"behavior", "Isolated"}}),
              AllOf(HasSubstr("pre_tokenizer.pattern.Regex"), HasSubstr("(a")));
  for (const char* table : {"!", "AAAA", "/////wAA", "CAAAAAAAAAAAAAAA/w=="})
    EXPECT_THAT(error_with("/normalizer", {{"type", "Precompiled"}, {"precompiled_charsmap", table}}),
                HasSubstr("normalizer.precompiled_charsmap"));
}

TEST_F(TokenizerErrors, TextsThatAreNoJsonAreRefused) {
  std::ofstream(path_) << "{\"version\": ";
  EXPECT_THAT(error_of([this] { Tokenizer::read(path_); }), HasSubstr("no JSON from byte"));
  EXPECT_THROW(Tokenizer::read(testing::TempDir() + "/no_such_tokenizer.json"), UserError);
}

// A tokenizer of the tree with some tokens alone.
Json small_file(const std::string& kind) {
  std::ifstream in(TUTTI_SOURCE_DIR "/tests/golden/tokenizers/" + kind + ".json");
  Json file = Json::parse(in);
  Json& vocabulary = file["model"]["vocab"];
  while (vocabulary.size() > 6) vocabulary.erase(std::prev(vocabulary.end()));
  if (file["model"].contains("merges")) file["model"]["merges"] = Json::array();
  while (file["added_tokens"].size() > 1) file["added_tokens"].erase(0);
  return file;
}

// All values of a file, one after another, become another one: no crash, and every error names the file.
TEST_F(TokenizerErrors, ChangedFilesAreReadOrRefused) {
  for (const char* kind : {"bert", "llama2", "llama3", "qwen2", "t5"}) {
    const Json file = small_file(kind);
    const Json values = file.flatten();
    for (const auto& [pointer, value] : values.items())
      for (const Json& other : {Json(nullptr), Json(-1), Json("x"), Json::array({1})}) {
        file_ = file;
        file_[Json::json_pointer(pointer)] = other;
        error_of([&] { read()->encode(" <s>a[CLS]\xe2\x96\x81 '\xc3\xa9"); });
      }
  }
}

TEST_F(TokenizerErrors, UnknownWordsAreNamedWhereNoTokenStandsForThem) {
  file_["model"]["unk_token"] = "[UNK]";
  const auto tokenizer = read();
  EXPECT_THAT(error_of([&] { tokenizer->encode("abc"); }), AllOf(HasSubstr("'c'"), HasSubstr("'[UNK]'")));
  EXPECT_THAT(tokenizer->encode("ab"), testing::ElementsAre(2));
}

}  // namespace
}  // namespace tutti
