#include "data/tokenizers/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "runtime/error.h"

namespace tutti {
namespace {

using testing::ElementsAre;
using testing::Optional;

std::shared_ptr<const Tokenizer> read_kind(const std::string& kind) {
  return Tokenizer::read(TUTTI_SOURCE_DIR "/tests/golden/tokenizers/" + kind + ".json");
}

TEST(Tokenizer, HasIdsOfTokensAndTheirNumber) {
  const auto tokenizer = read_kind("bert");
  EXPECT_THAT(tokenizer->id_of("[CLS]"), Optional(2));
  EXPECT_THAT(tokenizer->token_of(3), Optional(std::string("[SEP]")));
  EXPECT_EQ(tokenizer->id_of("no such token"), std::nullopt);
  EXPECT_EQ(tokenizer->token_of(900), std::nullopt);
  EXPECT_EQ(tokenizer->vocab_size(), 900);
  EXPECT_EQ(read_kind("gpt2")->vocab_size(), 901);  // 900 of the model, and <|endoftext|>
}

TEST(Tokenizer, HasTheDigestOfItsFile) {
  EXPECT_EQ(read_kind("gpt2")->digest(), read_kind("gpt2")->digest());
  EXPECT_NE(read_kind("gpt2")->digest(), read_kind("qwen2")->digest());
}

TEST(Tokenizer, LeavesSpecialTokensOutOnRequest) {
  const auto tokenizer = read_kind("bert");
  EXPECT_THAT(tokenizer->encode(""), ElementsAre(2, 3));
  EXPECT_THAT(tokenizer->encode("", /*special=*/false), ElementsAre());
  EXPECT_EQ(tokenizer->encode_pair("a", "b", /*special=*/false).ids.size(), 2u);
}

TEST(Tokenizer, AppendsIds) {
  std::vector<uint32_t> ids{7};
  read_kind("bert")->encode("", ids);
  EXPECT_THAT(ids, ElementsAre(7, 2, 3));
}

TEST(Tokenizer, ReadsBytesThatAreNotUtf8AsReplacementCharacters) {
  const auto tokenizer = read_kind("gpt2");
  EXPECT_EQ(tokenizer->encode("a\xff\xe4\xba"), tokenizer->encode("a\xef\xbf\xbd\xef\xbf\xbd"));
}

// A word of the digits of a number, as letters.
std::string word_of(int number) {
  std::string word = " ";
  for (const char digit : std::to_string(number)) word += static_cast<char>(digit - '0' + 'a');
  return word;
}

// More words than the cache has room for, and some again and again; and a word that is too long for it.
TEST(Tokenizer, GivesAWordTheSameIdsAgain) {
  const auto tokenizer = read_kind("qwen2");
  std::string text = " antidisestablishmentarianism antidisestablishmentarianism";
  for (int i = 0; i < 20'000; ++i) text += word_of(i * 7919) + word_of(i % 50 * 7919);
  std::vector<uint32_t> one_by_one;
  for (std::size_t begin = 0, end = 0; begin < text.size(); begin = end) {
    end = std::min(text.find(' ', begin + 1), text.size());
    read_kind("qwen2")->encode(text.substr(begin, end - begin), one_by_one);
    if (end > 1'500) break;
  }
  std::vector<uint32_t> whole = tokenizer->encode(text);
  EXPECT_EQ(tokenizer->decode(whole), text);
  EXPECT_EQ(whole, tokenizer->encode(text));
  whole.resize(one_by_one.size());
  EXPECT_EQ(whole, one_by_one);
}

TEST(Tokenizer, IsSharedByThreads) {
  const auto tokenizer = read_kind("t5");
  std::ifstream in(TUTTI_SOURCE_DIR "/examples/data/king_james.txt");
  std::string text(20'000, ' ');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  const auto wanted = tokenizer->encode(text);
  std::vector<std::vector<uint32_t>> got(4);
  {
    std::vector<std::jthread> threads;
    for (auto& ids : got) threads.emplace_back([&] { tokenizer->encode(text, ids); });
  }
  for (const auto& ids : got) EXPECT_EQ(ids, wanted);
}

TEST(Tokenizer, FindsSpecialIdsBesideItsFile) {
  const std::filesystem::path folder = testing::TempDir() + "/tokenizer_folder";
  std::filesystem::create_directories(folder);
  std::filesystem::copy_file(TUTTI_SOURCE_DIR "/tests/golden/tokenizers/bert.json", folder / "tokenizer.json",
                             std::filesystem::copy_options::overwrite_existing);
  std::ofstream(folder / "tokenizer_config.json") << R"({"pad_token": "[PAD]", "eos_token": null})";
  std::ofstream(folder / "special_tokens_map.json")
      << R"({"pad_token": "[UNK]", "eos_token": {"content": "[SEP]"}, "bos_token": "no such token"})";
  const SpecialIds ids = Tokenizer::read(folder / "tokenizer.json")->special_ids();
  std::filesystem::remove_all(folder);
  EXPECT_THAT(ids.pad, Optional(0));
  EXPECT_THAT(ids.end, Optional(3));
  EXPECT_EQ(ids.begin, std::nullopt);
}

TEST(TokenStream, GivesOutWholeCharacters) {
  for (const char* kind : {"gpt2", "llama2", "llama3", "qwen2"}) {
    const auto tokenizer = read_kind(kind);
    const std::string text = "God \xf0\x9f\x98\x80\xe4\xba\xba said";
    TokenStream stream(tokenizer);
    std::string whole;
    for (const uint32_t id : tokenizer->encode(text)) {
      const std::string part = stream.add(id);
      EXPECT_EQ(part.find("\xef\xbf\xbd"), part.npos) << kind;
      whole += part;
    }
    EXPECT_EQ(whole + stream.finish(), text) << kind;
  }
}

TEST(TokenStream, EndsWithWhatIsIncomplete) {
  const auto tokenizer = read_kind("gpt2");
  auto ids = tokenizer->encode("a\xf0\x9f\x98\x80");
  ids.pop_back();
  TokenStream stream(tokenizer);
  std::string whole;
  for (const uint32_t id : ids) whole += stream.add(id);
  EXPECT_EQ(whole, "a");
  EXPECT_EQ(stream.finish(), "\xef\xbf\xbd");
}

}  // namespace
}  // namespace tutti
