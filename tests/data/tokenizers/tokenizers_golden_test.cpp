#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "data/tokenizers/tokenizer.h"

namespace tutti {
namespace {

using Json = nlohmann::json;
using Texts = std::vector<std::string>;
using Ids = std::vector<uint32_t>;

const std::string kFolder = TUTTI_SOURCE_DIR "/tests/golden/tokenizers/";

Json read_golden(const std::string& name) {
  std::ifstream in(kFolder + name);
  return Json::parse(in);
}

void expect_ids(const Tokenizer& tokenizer, const Texts& texts, const Json& answers) {
  for (std::size_t i = 0; i < texts.size(); ++i)
    EXPECT_EQ(tokenizer.encode(texts[i]), answers.at("ids")[i].get<Ids>())
        << "text " << i << ": " << texts[i];
  for (std::size_t i = 0; i < answers.at("pairs").size(); ++i) {
    const EncodedPair pair = tokenizer.encode_pair(texts[i], "the end");
    EXPECT_EQ(pair.ids, answers.at("pairs")[i].get<Ids>()) << texts[i];
    EXPECT_EQ(pair.types, answers.at("types")[i].get<Ids>()) << texts[i];
  }
}

void expect_decoded(const Tokenizer& tokenizer, const Json& answers) {
  const Json& decoded = answers.at("decoded");
  for (std::size_t i = 0; i < decoded.size(); ++i) {
    const auto ids = answers.at("ids")[i / 2].get<Ids>();
    EXPECT_EQ(tokenizer.decode(ids, /*skip_special=*/i % 2 == 0), decoded[i].get<std::string>());
  }
}

class TokenizerKinds : public testing::TestWithParam<std::string> {};

TEST_P(TokenizerKinds, HaveTheIdsAndTextsOfTokenizers) {
  static const Json golden = read_golden("answers.json");
  const auto tokenizer = Tokenizer::read(kFolder + GetParam() + ".json");
  const Json& answers = golden.at("kinds").at(GetParam());
  expect_ids(*tokenizer, golden.at("texts").get<Texts>(), answers);
  expect_decoded(*tokenizer, answers);
}

INSTANTIATE_TEST_SUITE_P(Kind, TokenizerKinds,
                         testing::Values("bert", "gpt2", "llama2", "llama3", "qwen2", "t5"),
                         [](const auto& info) { return info.param; });

TEST(TokenizerParts, HaveTheIdsAndTextsOfTokenizers) {
  const Json golden = read_golden("parts.json");
  const std::string path = testing::TempDir() + "/tokenizer_part.json";
  for (const auto& [name, part] : golden.at("parts").items()) {
    SCOPED_TRACE(name);
    Json file = part.at("file");
    file["model"] = golden.at("model");
    std::ofstream(path) << file;
    const auto tokenizer = Tokenizer::read(path);
    expect_ids(*tokenizer, golden.at("texts").get<Texts>(), part);
    expect_decoded(*tokenizer, part);
  }
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace tutti
