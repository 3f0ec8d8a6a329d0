#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "data/readers/catalog.h"
#include "data/readers/make_dataset.h"
#include "data/tokenizers/tokenizer.h"
#include "recipe/resolve.h"
#include "recipe/toml_reader.h"
#include "runtime/error.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class TextStreamTest : public testing::Test {
 protected:
  void SetUp() override {
    for (int i = 0; i < 40; ++i) {
      const std::string number = std::to_string(i * i * i * i);
      lines_ += R"({"text": "In the beginning, )" + number + R"(", "prompt": "What is )" + number +
                R"(?", "response": "It is )" + number + "\"}\n";
    }
    write_text(scratch_.path("t.jsonl"), lines_);
  }

  DatasetPtr data(const std::string& source, const std::string& keys) const {
    const Catalog catalog = train_data_catalog();
    const std::string recipe =
        "[data.train]\nkind = 'text'\nbatch_size = 4\ntokenizer = '" + std::string(TUTTI_SOURCE_DIR) +
        "/tests/golden/tokenizers/gpt2.json'\n" + source + "\n" +
        (keys.find("add_eos_token") == keys.npos ? "add_eos_token = false\n" : "") + keys;
    return make_dataset(
        resolve(parse_recipe(recipe, "r.toml"), std::span(&catalog, 1)).at("data").at("train"));
  }
  DatasetPtr of_file(const std::string& keys) const {
    return data("path = '" + scratch_.path("t.jsonl") + "'\ncache = '" + scratch_.path("cache") + "'", keys);
  }
  DatasetPtr of_command(const std::string& command, const std::string& keys) const {
    return data("command = \"\"\"" + command + "\"\"\"", "sequence_length = 7\n" + keys);
  }
  std::string cat() const { return "cat " + scratch_.path("t.jsonl"); }
  std::string error_of(const std::string& command, const std::string& keys = "") const {
    return message_of<UserError>([&] { of_command(command, keys)->scan(); });
  }

  // The first pass, and from its end into the second.
  void expect_like_file(const std::string& keys) const {
    const DatasetPtr file = of_file("sequence_length = 7\n" + keys), stream = of_command(cat(), keys);
    ASSERT_EQ(stream->size(), file->size());
    for (int64_t i = 0; i < 2 * file->size(); ++i) {
      const int64_t same = i % file->size();
      const Batch expected = file->get({&same, 1}, {}), found = stream->get({&i, 1}, {});
      ASSERT_EQ(expected.leaves().size(), found.leaves().size());
      for (const auto& [name, values] : expected.leaves())
        EXPECT_TRUE(values.equal(found[name])) << name << i;
    }
    EXPECT_EQ(stream->spec().shapes, file->spec().shapes);
    EXPECT_EQ(stream->spec().classes, file->spec().classes);
  }

  Scratch scratch_;
  std::string lines_;
};

TEST_F(TextStreamTest, SamplesAreThoseOfTheFile) {
  expect_like_file("");
  expect_like_file("add_bos_token = true\nbos_token = 'a'\nadd_eos_token = true\neos_token = 'b'\n");
  expect_like_file("prompt_field = 'prompt'\nresponse_field = 'response'\n");
  expect_like_file("packing = 'first_fit'\nprompt_field = 'prompt'\nresponse_field = 'response'\n");
}

TEST_F(TextStreamTest, WorkersDoNotAlterSamples) { expect_like_file("num_workers = 3\n"); }

TEST_F(TextStreamTest, ALineMayBeAText) {
  write_text(scratch_.path("t.txt"), "In the beginning\r\n\nwas the word, and the word");
  const DatasetPtr stream =
      of_command("cat " + scratch_.path("t.txt"), "lines = 'text'\nepoch_samples = 1\n");
  const std::vector<int64_t> both = {0, 1};
  const at::Tensor ids = stream->get(both, {})["input"].contiguous();
  const std::vector<uint32_t> tokens(ids.data_ptr<int64_t>(), ids.data_ptr<int64_t>() + ids.numel());
  EXPECT_THAT(stream->tokenizer()->decode(tokens), testing::StartsWith("In the beginningwas the"));
}

TEST_F(TextStreamTest, AnEpochIsAPartOfAnEndlessOutput) {
  const DatasetPtr stream = of_command(
      "awk 'BEGIN { for (;;) print \\\"{\\\\\\\"text\\\\\\\": \\\\\\\"\\\" i++ \\\"\\\\\\\"}\\\" }'",
      "epoch_samples = 9\n");
  EXPECT_EQ(stream->size(), 9);
  EXPECT_EQ(stream->order(1, 5, 3, false), 48);
  stream->scan();
}

TEST_F(TextStreamTest, BadLinesAreNamedOrLeftOutAndCountedOnce) {
  const std::string bad = scratch_.path("bad.jsonl");
  write_text(bad, lines_ + "{\"txt\": 1}\n" + lines_ + "{\n");
  EXPECT_THAT(error_of("cat " + bad),
              HasSubstr("data.train.command = \"cat ...\": line 41: no member 'text'"));
  const DatasetPtr stream = of_command("cat " + bad, "on_bad_sample = 'skip'\n");
  for (int64_t i = 0; i < 3 * stream->size(); i += 5) stream->get({&i, 1}, {});
  EXPECT_THAT(stream->replaced(), AllOf(HasSubstr("2 lines were left out; the first: cat ...: "),
                                        HasSubstr("line 41: no member 'text'")));
}

TEST_F(TextStreamTest, ACommandThatWritesBadLinesAloneIsNotReadForEver) {
  EXPECT_THAT(error_of("while :; do echo '{}'; done", "on_bad_sample = 'skip'\n"),
              HasSubstr("so many lines in a row cannot be read: line 1001: no member 'text'"));
}

// What it printed may be a signed address.
TEST_F(TextStreamTest, AFailedCommandIsNamedWithTheFileOfWhatItPrinted) {
  setenv("TMPDIR", scratch_.path().c_str(), 1);
  EXPECT_THAT(error_of("no-such-program"),
              AllOf(HasSubstr("data.train.command = "), HasSubstr("the command failed with exit code 127; "),
                    Not(HasSubstr("not found"))));
  const std::string error = error_of(cat() + "; echo '?sig=secret' >&2; exit 4"),
                    before = "printed last is in ";
  EXPECT_THAT(error, AllOf(HasSubstr("exit code 4; what it " + before), Not(HasSubstr("secret"))));
  const std::string words = error.substr(error.find(before) + before.size());
  EXPECT_EQ(read_text(words.substr(0, words.find('\n'))), "?sig=secret\n");
  EXPECT_THAT(error_of("exit 5"), AllOf(HasSubstr("exit code 5"), Not(HasSubstr("printed"))));
  unsetenv("TMPDIR");
  EXPECT_THAT(error_of("true"), HasSubstr("the command wrote no sample"));
  EXPECT_THAT(error_of("true", "epoch_samples = 5\n"), HasSubstr("the command wrote no sample"));
}

TEST_F(TextStreamTest, KeysThatDoNotSuitAreErrorsOfTheRecipe) {
  EXPECT_THAT(error_of(cat(), "split = 'train'\n"),
              HasSubstr("data.train.split = \"train\": what a command writes has no parts"));
  EXPECT_THAT(error_of(cat(), "cache = 'x'\n"), HasSubstr("its tokens are not kept"));
  EXPECT_THAT(error_of(cat(), "path = 'x'\n"), HasSubstr("keep one of the two"));
  EXPECT_THAT(message_of<UserError>([&] { data("", ""); }),
              HasSubstr("expected path, or command in its place"));
}

// A command that never ends, and whose records are part of no sample.
TEST_F(TextStreamTest, RecordsThatGiveNothingAreBounded) {
  const std::string many = ": more than 1000000 lines in a row are blank or have too few tokens for a sample";
  EXPECT_THAT(error_of("yes ''"), HasSubstr("\"yes ...\": line 1000001" + many));
  EXPECT_THAT(error_of(R"(yes '{"text": ""}')", "epoch_samples = 4"), HasSubstr(many));
  EXPECT_THAT(error_of("yes I", "epoch_samples = 4\nlines = 'text'\npacking = 'first_fit'"), HasSubstr(many));
}

}  // namespace
}  // namespace tutti
