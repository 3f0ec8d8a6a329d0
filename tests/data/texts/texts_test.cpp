#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <filesystem>
#include <numeric>
#include <thread>

#include "data/readers/catalog.h"
#include "data/readers/make_dataset.h"
#include "data/texts/packed_texts.h"
#include "data/texts/tokenized_texts.h"
#include "recipe/resolve.h"
#include "recipe/toml_reader.h"
#include "runtime/error.h"
#include "tests/data/texts/letters_tokenizer.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class TextsTest : public testing::Test {
 protected:
  void SetUp() override {
    write_text(scratch_.path("tokenizer.json"), letters_tokenizer());
    write_text(scratch_.path("tokenizer_config.json"), R"({"bos_token": "<s>", "eos_token": "</s>"})");
  }

  void lines(const std::string& text) const { write_text(scratch_.path("t.jsonl"), text); }

  DatasetPtr data(const std::string& keys, const std::string& file = "t.jsonl") const {
    const Catalog catalog = train_data_catalog();
    const std::string recipe = "[data.train]\nkind = 'text'\nbatch_size = 1\npath = '" + scratch_.path(file) +
                               "'\ntokenizer = '" + scratch_.path("tokenizer.json") + "'\ncache = '" +
                               scratch_.path("cache") + "'\n" + keys;
    return make_dataset(
        resolve(parse_recipe(recipe, "r.toml"), std::span(&catalog, 1)).at("data").at("train"));
  }
  std::string error_of(const std::string& keys) const {
    return message_of<UserError>([&] { data(keys); });
  }
  // Of all samples, as letters: "</s>" is '.', "<s>" is '^', what is ignored '-'.
  static std::vector<std::string> shown(const DatasetPtr& data, const std::string& array) {
    std::vector<int64_t> all(static_cast<std::size_t>(data->size()));
    std::iota(all.begin(), all.end(), 0);
    const at::Tensor values = data->get(all, {})[array].contiguous();
    const bool is_number = array == "segments" || array == "positions";
    std::vector<std::string> texts;
    for (int64_t i = 0; i < values.size(0); ++i) {
      texts.emplace_back();
      for (int64_t t = 0; t < values.size(1); ++t) {
        const auto value = values[i][t].item<int64_t>();
        texts.back() += value < 0    ? '-'
                        : is_number  ? static_cast<char>('0' + value)
                        : value < 26 ? static_cast<char>('a' + value)
                                     : " ^."[value - 26];
      }
    }
    return texts;
  }

  Scratch scratch_;
};

TEST_F(TextsTest, DocumentsAreCutOneBehindTheOther) {
  lines("{\"text\": \"abc\"}\n\n{\"text\": \"de fgh\", \"id\": 7}\n");
  const DatasetPtr cut = data("sequence_length = 4\n");
  EXPECT_THAT(shown(cut, "input"), ElementsAre("abc.", "de f"));
  EXPECT_THAT(shown(cut, "target"), ElementsAre("bc.d", "e fg"));
  EXPECT_EQ(cut->spec().classes, 29);
  EXPECT_THAT(shown(data("sequence_length = 4\nadd_bos_token = true\nadd_eos_token = false\n"), "input"),
              ElementsAre("^abc", "^de "));
  EXPECT_THAT(shown(data("sequence_length = 4\neos_token = 'z'\n"), "input"), ElementsAre("abcz", "de f"));
}

TEST_F(TextsTest, OtherFilesAreADocumentEach) {
  write_text(scratch_.path("1.txt"), "abcd");
  write_text(scratch_.path("2.txt"), "ef");
  EXPECT_THAT(shown(data("sequence_length = 7\n", "*.txt"), "input"), ElementsAre("abcd.ef"));
}

TEST_F(TextsTest, AFileThatIsNoTextIsRefusedOrLeftOut) {
  for (const std::string no_text : {"\x1f\x8b\x08\x00 gzip", "caf\xe9 of Latin 1",
                                    "\xff\xfe"
                                    "a"}) {
    write_text(scratch_.path("1.txt"), no_text);
    EXPECT_THAT(message_of<UserError>([&] { data("sequence_length = 3\n", "*.txt"); }),
                HasSubstr("1.txt: no text in UTF-8"));
  }
  write_text(scratch_.path("2.txt"), "abcd");
  const DatasetPtr rest = data("sequence_length = 3\non_bad_sample = 'skip'\n", "*.txt");
  EXPECT_THAT(shown(rest, "input"), ElementsAre("abc"));
  EXPECT_THAT(rest->replaced(), HasSubstr("1 line was left out; the first: "));
}

TEST_F(TextsTest, DocumentsThatArePackedDoNotSeeEachOther) {
  lines("{\"text\": \"abcde\"}\n{\"text\": \"fghi\"}\n{\"text\": \"jk\"}\n{\"text\": \"lmnopqrst\"}\n");
  const DatasetPtr packed = data("sequence_length = 7\npacking = 'first_fit'\n");
  // Each but for its last token, which is a target alone: 5, 4, 2 and 7 + 2 tokens.
  EXPECT_THAT(shown(packed, "input"), ElementsAre("abcdejk", "fghist.", "lmnopqr"));
  EXPECT_THAT(shown(packed, "target"), ElementsAre("bcde.k.", "ghi.t.-", "mnopqrs"));
  EXPECT_THAT(shown(packed, "segments"), ElementsAre("1111122", "1111220", "1111111"));
  EXPECT_THAT(shown(packed, "positions"), ElementsAre("0123401", "0123010", "0123456"));
}

TEST_F(TextsTest, PromptsDoNotCountInTheLoss) {
  lines("{\"question\": \"abc\", \"answer\": \"de\"}\n");
  const std::string fields = "prompt_field = 'question'\nresponse_field = 'answer'\nsequence_length = 5\n";
  EXPECT_THAT(shown(data(fields), "input"), ElementsAre("abcde"));
  EXPECT_THAT(shown(data(fields), "target"), ElementsAre("--de."));
  EXPECT_THAT(shown(data(fields + "packing = 'first_fit'\n"), "target"), ElementsAre("--de."));
}

TEST_F(TextsTest, PairsOfAnswersAreASampleEach) {
  lines("{\"p\": \"abc\", \"c\": \"de\", \"r\": \"f\"}\n{\"p\": \"abcdefgh\", \"c\": \"x\", \"r\": \"y\"}\n");
  const std::string fields = "prompt_field = 'p'\nchosen_field = 'c'\nrejected_field = 'r'\n";
  const DatasetPtr pairs = data(fields + "sequence_length = 10\n");
  EXPECT_THAT(shown(pairs, "input"), ElementsAre("abcdeabcf."));
  EXPECT_THAT(shown(pairs, "target"), ElementsAre("--de.--f.-"));
  EXPECT_THAT(shown(pairs, "segments"), ElementsAre("1111122220"));
  EXPECT_THAT(shown(pairs, "positions"), ElementsAre("0123401230"));
  EXPECT_EQ(pairs->replaced(), "1 of 2 pairs do not fit into sequence_length and are left out");
  EXPECT_THAT(error_of(fields + "sequence_length = 4\n"), HasSubstr("no pair of answers fits"));
  lines("{\"p\": \"abc\", \"c\": \"\", \"r\": \"f\"}\n{\"p\": \"a\", \"c\": \"b\", \"r\": \"c\"}\n");
  EXPECT_THAT(error_of(fields + "add_eos_token = false\nsequence_length = 10\n"),
              HasSubstr("a pair needs both of its answers"));
}

// A blank at the begin of a text belongs to SentencePiece's first word, and is none of the response.
TEST_F(TextsTest, ThePartsOfATextAreNoTextsOfTheirOwn) {
  std::string tokenizer = letters_tokenizer();
  tokenizer.replace(tokenizer.find("\"normalizer\": null"), 18,
                    R"("normalizer": {"type": "Prepend", "prepend": " "})");
  write_text(scratch_.path("tokenizer.json"), tokenizer);
  lines(R"({"q": "ab", "a": "cd"})");
  const std::string keys =
      "prompt_field = 'q'\nresponse_field = 'a'\npacking = 'first_fit'\nsequence_length = 5\n";
  EXPECT_THAT(shown(data(keys), "input"), ElementsAre(" abcd"));
  EXPECT_THAT(shown(data(keys), "target"), ElementsAre("--cd."));
  // "bc" would be a token of both.
  tokenizer.replace(tokenizer.find(R"("z")"), 3, R"("bc")");
  tokenizer.replace(tokenizer.find(R"("merges": [])"), 12, R"("merges": ["b c"])");
  const std::size_t split = tokenizer.find(R"({"type": "Split")");
  tokenizer.replace(split, tokenizer.find(R"("post_processor")") - split, "null, ");
  write_text(scratch_.path("tokenizer.json"), tokenizer);
  EXPECT_THAT(shown(data(keys + "add_eos_token = false\n"), "input"), ElementsAre(" ab c"));
  EXPECT_THAT(shown(data(keys + "add_eos_token = false\n"), "target"), ElementsAre("-- cd"));
}

TEST_F(TextsTest, OfChatsTheAssistantsMessagesCount) {
  lines(R"({"chat": [{"role": "user", "content": "ab"}, {"role": "assistant", "content": "c"},)"
        R"( {"from": "user", "value": "d"}, {"from": "gpt", "value": "ef"}]})");
  const DatasetPtr chat =
      data("messages_field = 'chat'\nturn = 'x{content} '\nsequence_length = 15\npacking = 'first_fit'\n");
  EXPECT_THAT(shown(chat, "input"), ElementsAre("xab xc xd xef ."));
  EXPECT_THAT(shown(chat, "target"), ElementsAre("----c ----ef .-"));
}

constexpr const char* kTemplate =
    R"({"bos_token": "<s>", "eos_token": "</s>", "chat_template": "{% for m in messages %})"
    R"({{ 'x' if m.role == 'user' )"
    R"(else 'y' }}{{ m.content }}{{ eos_token if m.role != 'user' }}{% endfor %})"
    R"({% if add_generation_prompt %}y{% endif %}"})";
constexpr const char* kChat = "messages_field = 'chat'\npacking = 'first_fit'\n";

TEST_F(TextsTest, AChatIsWrittenAsTheTokenizersTemplateSays) {
  write_text(scratch_.path("tokenizer_config.json"), kTemplate);
  lines(R"({"chat": [{"role": "user", "content": "ab"}, {"role": "assistant", "content": "cd"}]})");
  const DatasetPtr chat = data(std::string(kChat) + "sequence_length = 8\n");
  EXPECT_THAT(shown(chat, "input"), ElementsAre("xabycd.."));
  EXPECT_THAT(shown(chat, "target"), ElementsAre("---cd.--")) << "the template ends the chat";
  EXPECT_EQ(chat->advice(), "");
  EXPECT_THAT(shown(data(std::string(kChat) + "sequence_length = 8\nadd_eos_token = true\n"), "target"),
              ElementsAre("---cd.--"))
      << "what the template wrote is not written again";
  EXPECT_THAT(shown(data(std::string(kChat) + "sequence_length = 8\nturn = 'z{content}'\n"), "input"),
              ElementsAre("zabzcd.."));
  write_text(scratch_.path("tokenizer_config.json"),
             R"({"eos_token": "</s>", "chat_template": "{{ 1 | shuffle }}"})");
  EXPECT_THAT(error_of(kChat),
              AllOf(HasSubstr("r.toml:5"), HasSubstr("the filter 'shuffle'"), HasSubstr("give turn")));
}

TEST_F(TextsTest, AChatsTemplateAndTheRecipeWriteOneBegin) {
  const auto with_begin = [&](const std::string& begin) {
    write_text(scratch_.path("tokenizer_config.json"),
               R"({"bos_token": "<s>", "eos_token": "</s>", "chat_template": ")" + begin +
                   R"({% for m in messages %}{{ m.content }}{% endfor %}"})");
    const DatasetPtr chat =
        data(std::string(kChat) + "sequence_length = 7\nadd_bos_token = true\nadd_eos_token = true\n");
    EXPECT_THAT(shown(chat, "target"), ElementsAre("--cd.--"));
    return shown(chat, "input")[0];
  };
  lines(R"({"chat": [{"role": "user", "content": "ab"}, {"role": "assistant", "content": "cd"}]})");
  EXPECT_EQ(with_begin("{{ bos_token }}"), "^abcd..");
  EXPECT_EQ(with_begin(""), "^abcd..");
}

TEST_F(TextsTest, AnAnswerOfWeight0IsNoTarget) {
  const auto chat_with = [&](const std::string& user, const std::string& assistant) {
    lines(R"({"chat": [{"role": "user", "content": "a")" + user +
          R"(}, {"role": "assistant", "content": "bc", "weight": )" + assistant +
          R"(}, {"role": "user", "content": "d"}, {"role": "assistant", "content": "ef", "weight": 1}]})");
  };
  chat_with(R"(, "weight": 0)", "0");
  for (const char* prompt : {"", "{% if add_generation_prompt %}y{% endif %}"}) {
    write_text(scratch_.path("tokenizer_config.json"),
               std::string(R"({"eos_token": "</s>", "chat_template": "{% for m in messages %})") +
                   R"({{ 'x' if m.role == 'user' else 'y' }}{{ m.content }}{{ eos_token }}{% endfor %})" +
                   prompt + "\"}");
    const DatasetPtr chat = data(std::string(kChat) + "sequence_length = 14\n");
    EXPECT_THAT(shown(chat, "input"), ElementsAre("xa.ybc.xd.yef."));
    EXPECT_THAT(shown(chat, "target"), ElementsAre(*prompt ? "----------ef.-" : "---------yef.-"));
  }
  EXPECT_THAT(shown(data(std::string(kChat) + "turn = '{content} '\nsequence_length = 10\n"), "target"),
              ElementsAre("------ef ."));
  for (const char* turn : {"", "turn = '{content}'\n"}) {
    chat_with("", "0.5");
    EXPECT_THAT(error_of(kChat + std::string(turn)),
                HasSubstr("t.jsonl:1: the weight of a message is 0.5; expected 0 or 1"));
    chat_with(R"(, "weight": 1)", "1");
    EXPECT_THAT(error_of(kChat + std::string(turn)), HasSubstr("a message of 'user' has weight 1"));
  }
}

TEST_F(TextsTest, ATemplateWhoseAnswersHaveNoEndIsSaid) {
  write_text(
      scratch_.path("tokenizer_config.json"),
      R"({"eos_token": "</s>", "chat_template": "{% for m in messages %}x{{ m.content }}{% endfor %}"})");
  lines(R"({"chat": [{"role": "user", "content": "ab"}, {"role": "assistant", "content": "cd"}]})");
  const DatasetPtr chat = data(std::string(kChat) + "sequence_length = 6\n");
  EXPECT_THAT(shown(chat, "input"), ElementsAre("xabxc."));
  EXPECT_THAT(chat->advice(), HasSubstr("no special token of this tokenizer counts behind an answer"));
  EXPECT_EQ(data(std::string(kChat) + "sequence_length = 8\nadd_eos_token = true\n")->advice(), "");
}

TEST_F(TextsTest, AChatWithoutAnAnswerHasNoTargets) {
  const std::string unanswered = R"({"chat": [{"role": "user", "content": "ab"}]})";
  const std::string keys = std::string(kChat) + "turn = '{content}'\nsequence_length = 6\n";
  lines(unanswered);
  EXPECT_THAT(error_of(keys), AllOf(HasSubstr("every text was left out"), HasSubstr("t.jsonl:1: no answer")));
  lines(unanswered + R"(
{"chat": [{"role": "assistant", "content": "c"}, {"role": "user", "content": "de"}]}
{"chat": [{"role": "user", "content": "f"}, {"role": "assistant", "content": "g"}]})");
  const DatasetPtr chats = data(keys);
  EXPECT_THAT(shown(chats, "input"), ElementsAre("cdefg."));
  EXPECT_THAT(shown(chats, "target"), ElementsAre("---g.-")) << "the end behind a user's words is no target";
  EXPECT_THAT(chats->replaced(), HasSubstr("1 line was left out; the first: "));
}

TEST_F(TextsTest, MarkersThatAreNoTokensAreSaid) {
  lines(R"({"chat": [{"role": "user", "content": "ab"}, {"role": "assistant", "content": "c"}]})");
  EXPECT_THAT(data(std::string(kChat) + "turn = '[ab]{content}'\n")->advice(),
              HasSubstr("the marker [ab] of turn is 2 tokens of this tokenizer"));
  EXPECT_EQ(data(std::string(kChat) + "turn = '<s>{content}</s>'\n")->advice(), "");
}

TEST_F(TextsTest, AJsonArrayIsReadAsLinesAre) {
  write_text(scratch_.path("a.json"),
             "[\n {\"instruction\": \"ab\",\n \"input\": \"c\", \"output\": \"d\"},\n"
             " {\"instruction\": \"e\", \"input\": \"\", \"output\": \"f\"}]\n");
  const std::string keys = "response_field = 'output'\nsequence_length = 4\npacking = 'first_fit'\n";
  EXPECT_THAT(shown(data(keys + "prompt_field = 'instruction'\n", "a.json"), "input"),
              ElementsAre("abd.", "ef.."));
  const std::string both = keys + "prompt_field = ['instruction', 'input']\n";
  EXPECT_THAT(shown(data(both, "a.json"), "input"), ElementsAre("abcd", "ef.."))
      << "no token is a line's end";
  EXPECT_THAT(shown(data(both, "a.json"), "target"), ElementsAre("--d.", "f.--"));
  write_text(scratch_.path("a.json"), R"([{"text": "abcdef"}, {"txt": "b"}])");
  EXPECT_THAT(message_of<UserError>([&] { data("sequence_length = 4\n", "a.json"); }),
              HasSubstr("a.json: object 2: no member 'text'"));
}

TEST_F(TextsTest, MaskingKnowsTheTokenizersSpecialTokens) {
  lines("{\"text\": \"abc\"}\n{\"text\": \"d\"}\n");
  const std::string keys =
      "sequence_length = 4\n[[data.train.transforms]]\nkind = 'mask_tokens'\nmlm_probability = 1\n";
  EXPECT_THAT(error_of(keys), HasSubstr("give mask_token_id"));
  write_text(scratch_.path("tokenizer_config.json"), R"({"eos_token": "</s>", "mask_token": "<s>"})");
  EXPECT_THAT(shown(data(keys), "target"), ElementsAre("abc-")) << "the end of a document is special";
  lines("{\"text\": \"a</s><s>e\"}\n{\"text\": \"bcd\"}\n");
  const std::string mask = "mask_token_id = 7\n";
  write_text(scratch_.path("tokenizer_config.json"), "{}");
  EXPECT_THAT(shown(data("add_eos_token = false\n" + keys + mask), "target"), ElementsAre("a--e"))
      << "tokenizer.json says which are special";
  write_text(scratch_.path("tokenizer_config.json"),
             R"({"additional_special_tokens": ["a", {"content": "b"}], "extra_special_tokens": {"x": "e"}})");
  lines("{\"text\": \"abcdef\"}\n");
  EXPECT_THAT(shown(data("add_eos_token = false\n" + keys + mask), "target"), ElementsAre("--cd"));
  lines("{\"text\": \"ecdef\"}\n");
  EXPECT_THAT(shown(data("add_eos_token = false\n" + keys + mask), "target"), ElementsAre("-cd-"));
}

TEST_F(TextsTest, TokensThatAreCutOffAreNoFile) {
  lines("{\"text\": \"ab\"}\n{\"text\"\n");
  Tokenization how{.files = {scratch_.path("t.jsonl")},
                   .tokenizer = Tokenizer::read(scratch_.path("tokenizer.json"))};
  std::filesystem::create_directory(scratch_.path("out"));
  const std::string stem = scratch_.path("out/tokens");
  EXPECT_THROW(tokenize(how, stem), UserError);
  EXPECT_TRUE(std::filesystem::is_empty(scratch_.path("out")));
  how.skip_bad = true;
  tokenize(how, stem);
  EXPECT_EQ(TokenizedTexts(stem).tokens().tokens(), 2);
  lines("{\"text\": \"abc\"}\n");
  tokenize(how, stem);
  EXPECT_EQ(TokenizedTexts(stem).tokens().tokens(), 3);
  EXPECT_EQ(TokenizedTexts(stem).left_out(), "") << "what was left out of other texts";
}

Tokenization chats_by(const std::string& tokenizer) {
  return {.format = {.messages = "chat"},
          .tokenizer = Tokenizer::read(TUTTI_SOURCE_DIR "/tests/golden/tokenizers/" + tokenizer)};
}

std::string chat_of(const std::vector<std::string>& contents) {
  std::string line;
  for (std::size_t i = 0; i < contents.size(); ++i)
    line += std::string(i == 0 ? R"({"chat": [)" : ", ") + R"({"role": ")" +
            (i % 2 == 0 ? "user" : "assistant") + R"(", "content": ")" + contents[i] + "\"}";
  return line + "]}";
}

// What a chat's tokens are by their definition: those of the whole text, unless one lies in two parts.
EncodedDocument chat_tokens(const Tokenization& how, const std::string& line) {
  EncodedDocument expected;
  std::string text;
  std::vector<std::vector<uint32_t>> until;
  const TextDocument parts = how.format.read(line);
  for (const TextPart& part : parts) until.push_back(how.tokenizer->encode(text += part.text, false));
  const auto begins_whole = [&](const auto& ids) {
    return ids.size() <= until.back().size() && std::equal(ids.begin(), ids.end(), until.back().begin());
  };
  const bool are_apart = !std::ranges::all_of(until, begins_whole);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto alone = how.tokenizer->encode(parts[i].text, false);
    if (are_apart) expected.ids.insert(expected.ids.end(), alone.begin(), alone.end());
    expected.counts.resize(are_apart ? expected.ids.size() : until[i].size(), parts[i].counts);
  }
  if (!are_apart) expected.ids = until.back();
  return expected;
}

TEST_F(TextsTest, TheTokensOfAChatAreThoseOfItsTextUnlessOneLiesInTwoParts) {
  const std::vector<std::vector<std::string>> chats = {
      {"Who is it?", "A man."},
      {"say", " two", "x", "y", "go  ", "z", "\\n", " "},
      {"a", "b", "c", "d", "e", "f", "g", "h"},
      {"a", "\\n\\n b", "\\n", "\\td", "e ", "  f", "", "h"}};
  const std::string plain = "{role}: {content}\n", bare = "{content}", marked = DocumentFormat().turn;
  for (const char* file : {"gpt2.json", "llama2.json", "llama3.json", "bert.json", "t5.json"})
    for (const std::string& turn : {plain, bare, marked})
      for (const auto& contents : chats) {
        Tokenization how = chats_by(file);
        how.format.turn = turn;
        const std::string line = chat_of(contents);
        const EncodedDocument found = encode_document(how, line, true), expected = chat_tokens(how, line);
        EXPECT_EQ(found.ids, expected.ids) << file << ' ' << turn << line;
        EXPECT_EQ(found.counts, expected.counts) << file << ' ' << turn << line;
      }
}

double seconds_of(const std::function<void()>& work) {
  const std::clock_t begin = std::clock();
  work();
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

TEST_F(TextsTest, ALongChatTakesAsLongAsItsText) {
  for (const char* file : {"gpt2.json", "llama2.json"}) {
    const Tokenization how = chats_by(file);
    const std::string line = chat_of(std::vector<std::string>(3000, "In the beginning God created it."));
    std::string text;
    for (const TextPart& part : how.format.read(line)) text += part.text;
    const double alone = seconds_of([&] { how.tokenizer->encode(text, false); });
    EXPECT_LT(seconds_of([&] { encode_document(how, line, true); }), 100 * alone) << "thousands by each part";
  }
}

TEST_F(TextsTest, PartsForEvaluationAreTheLast) {
  lines("{\"text\": \"abcd\"}\n{\"text\": \"efgh\"}\n{\"text\": \"ijkl\"}\n{\"text\": \"mnop\"}\n");
  const std::string keys = "sequence_length = 4\neval_fraction = 0.5\npacking = 'first_fit'\n";
  EXPECT_THAT(shown(data(keys + "split = 'train'\n"), "input"), ElementsAre("abcd", "efgh"));
  EXPECT_THAT(shown(data(keys + "split = 'eval'\n"), "input"), ElementsAre("ijkl", "mnop"));
}

TEST_F(TextsTest, BadLinesAreNamedOrLeftOutAndCounted) {
  lines("{\"text\": \"abcdef\"}\n{\"txt\": \"b\"}\n{\"text\": 3}\n{\"text\"\n");
  EXPECT_THAT(error_of("sequence_length = 4\n"), HasSubstr("t.jsonl:2: no member 'text'; it has txt"));
  const DatasetPtr rest = data("sequence_length = 4\non_bad_sample = 'skip'\n");
  EXPECT_THAT(shown(rest, "input"), ElementsAre("abcd"));
  EXPECT_THAT(rest->replaced(), HasSubstr("3 lines were left out; the first: "));
  EXPECT_THAT(rest->replaced(), HasSubstr("t.jsonl:2: no member 'text'"));
  lines("{\"text\": \"a\"}\n\xff\n");
  EXPECT_THAT(error_of("sequence_length = 4\n"), HasSubstr("t.jsonl:2: not JSON"));
}

TEST_F(TextsTest, WrongKeysAreErrorsOfTheRecipe) {
  lines("{\"text\": \"abcdefgh\"}\n");
  EXPECT_THAT(error_of("eos_token = 'zz'\n"), HasSubstr("the tokenizer has no such token"));
  EXPECT_THAT(error_of("prompt_field = 'a'\n"),
              HasSubstr("prompt_field and response_field are given together"));
  EXPECT_THAT(error_of("turn = 'a'\n"), HasSubstr("expected {content} in it"));
  write_text(scratch_.path("tokenizer_config.json"), "{}");
  EXPECT_THAT(error_of(""),
              HasSubstr("no tokenizer_config.json beside the tokenizer says which token that is"));
}

// The time of the file is that of the kernel's last tick; a file that is made anew has another size here.
TEST_F(TextsTest, TokensAreMadeOnceAndAnewForOtherTexts) {
  lines("{\"text\": \"abcdefgh\"}\n");
  const std::string keys = "sequence_length = 4\n";
  std::vector<DatasetPtr> opened(4);
  std::vector<std::thread> processes;
  for (DatasetPtr& one : opened) processes.emplace_back([&] { one = data(keys); });
  for (std::thread& one : processes) one.join();
  for (const DatasetPtr& one : opened) EXPECT_EQ(one->digest(), opened[0]->digest());
  const auto folders = [&] {
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(scratch_.path("cache")))
      count += entry.is_directory();
    return count;
  };
  EXPECT_EQ(folders(), 1);
  lines("{\"text\": \"abcdefghi\"}\n");
  EXPECT_NE(data("sequence_length = 5\n")->digest(), opened[0]->digest());
  EXPECT_EQ(folders(), 2);
}

}  // namespace
}  // namespace tutti
