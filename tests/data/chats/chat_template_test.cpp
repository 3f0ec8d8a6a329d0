#include "data/chats/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "runtime/error.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using nlohmann::ordered_json;
using testing::HasSubstr;

// What counts is in brackets.
std::string shown(const TextDocument& document, bool marks = true) {
  std::string text;
  for (const TextPart& part : document) text += part.counts && marks ? '[' + part.text + ']' : part.text;
  return text;
}

class ChatTemplateTest : public testing::Test {
 protected:
  ChatTemplateTest() {
    write_text(scratch_.path("tokenizer.json"),
               R"({"added_tokens": [{"id": 0, "content": "<s>", "special": true, "single_word": false,
        "lstrip": false, "rstrip": false, "normalized": false}, {"id": 1, "content": "</s>", "special": true,
        "single_word": false, "lstrip": false, "rstrip": false, "normalized": false}], "model":
        {"type": "WordLevel",
        "vocab": {"a": 2}, "unk_token": "a"}})");
    configure(ordered_json::object());
  }

  void configure(const ordered_json& more) const {
    ordered_json config = {{"bos_token", "<s>"}, {"eos_token", "</s>"}};
    config.update(more);
    write_text(scratch_.path("tokenizer_config.json"), config.dump());
  }
  std::shared_ptr<const Tokenizer> tokenizer() const {
    return Tokenizer::read(scratch_.path("tokenizer.json"));
  }

  std::string written(const std::string& source, const ordered_json& messages, bool marks = true,
                      const std::string& tools = "") const {
    std::vector<std::string> all;
    for (const auto& one : messages) all.push_back(one.dump());
    return shown(ChatTemplate(source, *tokenizer()).write(all, tools), marks);
  }
  std::string error_of(const std::string& source, const ordered_json& messages = kTwo) const {
    return message_of<UserError>([&] { written(source, messages); });
  }

  static ordered_json say(const char* role, const char* content) {
    return {{"role", role}, {"content", content}};
  }
  static inline const ordered_json kTwo = {say("user", "Hello"), say("assistant", "Good day")};
  static inline const std::string kAll = "{% for m in messages %}{{ m.content }}{% endfor %}";

  Scratch scratch_;
};

std::string golden_template(const std::string& name) {
  return read_text(TUTTI_SOURCE_DIR "/tests/golden/chats/" + name + ".jinja");
}

ordered_json golden_chats() {
  std::ifstream in(TUTTI_SOURCE_DIR "/tests/golden/chats/chats.json");
  return ordered_json::parse(in);
}

// Null: jinja2 refuses. A list written as a text is Python's, and refused here.
TEST_F(ChatTemplateTest, TemplatesOfKnownModelsAreWrittenAsByJinja2) {
  const ordered_json golden = golden_chats();
  int texts = 0;
  for (const auto& row : golden["texts"]) {
    const ordered_json& chat = golden["chats"][row["chat"].get<std::size_t>()];
    const std::string name = row["template"], source = golden_template(name);
    const std::string tools = chat.contains("tools") ? chat["tools"].dump() : "";
    SCOPED_TRACE(name + " " + row["chat"].dump());
    const bool is_python =
        row["text"].is_string() && row["text"].get<std::string>().find("[{'") != std::string::npos;
    if (row["text"].is_null() || is_python) {
      EXPECT_THROW(written(source, chat["messages"], false, tools), UserError);
      continue;
    }
    EXPECT_EQ(written(source, chat["messages"], false, tools), row["text"].get<std::string>());
    ++texts;
  }
  EXPECT_GT(texts, 70);
}

TEST_F(ChatTemplateTest, AnAssistantsWordsCountAndWhatItsTurnHasBehindThem) {
  const auto by = [&](const char* name) {
    return written(golden_template(name),
                   {say("user", "Hi"), say("assistant", "Yes"), say("user", "So?"), say("assistant", "No")});
  };
  EXPECT_EQ(by("chatml"),
            "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n[Yes<|im_end|>\n]<|im_start|>user\nSo?"
            "<|im_end|>\n<|im_start|>assistant\n[No<|im_end|>\n]");
  EXPECT_EQ(by("llama2"), "<s>[INST] Hi [/INST][ Yes </s>]<s>[INST] So? [/INST][ No </s>]");
  EXPECT_EQ(by("mistral"), "<s>[INST] Hi [/INST][Yes</s>][INST] So? [/INST][No</s>]");
  EXPECT_EQ(by("gemma"),
            "<s><start_of_turn>user\nHi<end_of_turn>\n<start_of_turn>model\n[Yes<end_of_turn>\n]"
            "<start_of_turn>user\nSo?<end_of_turn>\n<start_of_turn>model\n[No<end_of_turn>\n]");
  EXPECT_EQ(by("phi3"),
            "<|user|>\nHi<|end|>\n<|assistant|>\n[Yes<|end|>\n]<|user|>\nSo?<|end|>\n<|assistant|>\n[No"
            "<|end|>\n</s>]");
  EXPECT_EQ(by("zephyr"),
            "<|user|>\nHi</s>\n<|assistant|>\n[Yes</s>\n]<|user|>\nSo?</s>\n<|assistant|>\n[No</s>\n]");
}

TEST_F(ChatTemplateTest, TextBeforeAnAssistantsWordsCountsUnlessThePromptHasIt) {
  const std::string calls =
      "{% for m in messages %}{% if m.role == 'user' %}<u>{{ m.content }}</u>{% elif m.role == 'tool' %}<r>"
      "{{ m.content }}</r>{% elif m.tool_calls is defined %}<call> {{ m.tool_calls[0].function | tojson }}"
      "{{ eos_token }}{% else %} {{ m.content }}{{ eos_token }}{% endif %}{% endfor %}";
  ordered_json call = say("assistant", "");
  call["tool_calls"] = {{{"function", {{"name", "add"}}}}};
  EXPECT_EQ(written(calls, {say("user", "1+2"), call, say("tool", "3"), say("assistant", "It is 3")}),
            "<u>1+2</u>[<call> {\"name\": \"add\"}</s>]<r>3</r>[ It is 3</s>]");
  const std::string thinks =
      "{% for m in messages %}<{{ m.role }}>{% if m.role == 'assistant' and loop.last %}<think></think>"
      "{% endif %}{{ m.content }}<end>{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}";
  EXPECT_EQ(written(thinks, kTwo), "<user>Hello<end><assistant>[<think></think>Good day<end>]");
  EXPECT_EQ(
      written(thinks, {say("user", "a"), say("assistant", "b"), say("user", "c"), say("assistant", "d")}),
      "<user>a<end><assistant>[b<end>]<user>c<end><assistant>[<think></think>d<end>]");
}

TEST_F(ChatTemplateTest, BeginningsOfKnownModelsCallsCount) {
  const ordered_json golden = golden_chats();
  const ordered_json& chat = golden["chats"][5];
  const auto counted = [&](const char* name) {
    std::vector<std::string> all;
    for (const auto& one : chat["messages"]) all.push_back(one.dump());
    std::string text;
    for (const TextPart& part : ChatTemplate(golden_template(name), *tokenizer()).write(all, ""))
      if (part.counts) text += '[' + part.text + ']';
    return text;
  };
  const std::string arguments = R"({"z": 1, "a": [2.5, "é\n\""]})";
  EXPECT_EQ(counted("mistral3"), R"([[TOOL_CALLS] [{"name": "add", "arguments": )" + arguments +
                                     R"(, "id": "abcdefghi"}]</s>][ It is 3</s>])");
  EXPECT_EQ(counted("qwen2.5"), "[<tool_call>\n{\"name\": \"add\", \"arguments\": " + arguments +
                                    "}\n</tool_call><|im_end|>\n][It is 3<|im_end|>\n]");
  EXPECT_EQ(counted("llama3.1"),
            R"([{"name": "add", "parameters": )" + arguments + "}<|eot_id|>][It is 3<|eot_id|>]");
}

TEST_F(ChatTemplateTest, BehindTheLastAnswerAllCounts) {
  const ordered_json four = {say("user", "a"), say("assistant", "b"), say("user", "c"),
                             say("assistant", "d")};
  const std::string loop = "{% for m in messages %}<{{ m.role[0] }}>{{ m.content }};{% endfor %}";
  const std::string prompt = "{% if add_generation_prompt %}<a>{% endif %}";
  EXPECT_EQ(written(loop + "{% if add_generation_prompt %}<a>{% else %}{{ eos_token }}{% endif %}", four),
            "<u>a;<a>[b;]<u>c;<a>[d;</s>]");
  EXPECT_EQ(written(loop + "{{ eos_token }}", four), "<u>a;<a>[b;]<u>c;<a>[d;</s>]");
  const std::string built =
      "{% set n = namespace(t='') %}{% for m in messages %}{% set n.t = n.t + '<' + m.role[0] + '>' + "
      "m.content + ';' %}{% endfor %}{{ n.t }}";
  EXPECT_EQ(written(built + prompt, four), "<u>a;<a>[b;]<u>c;<a>[d;]");
  EXPECT_EQ(written(built + "{{ eos_token }}", kTwo), "<u>Hello;<a>[Good day;</s>]");
  EXPECT_EQ(written(loop + "{{ eos_token }}", {say("assistant", "b"), say("user", "c")}), "<a>[b;]<u>c;</s>");
}

TEST_F(ChatTemplateTest, HeadersOfOthersInALoopWithinALoopDoNotCount) {
  const ordered_json four = {say("user", "a"), say("assistant", "b"), say("user", "c"),
                             say("assistant", "d")};
  const std::string nested =
      "{% for g in [messages] %}{% for m in g %}<{{ m.role[0] }}>{{ m.content }};{% endfor %}{% endfor %}";
  EXPECT_EQ(written(nested + "{% if add_generation_prompt %}<a>{% endif %}", four),
            "<u>a;<a>[b;]<u>c;<a>[d;]");
  const std::string alternates =
      "{% if messages | length < 2 %}{{ raise_exception('no') }}{% endif %}";  // marks serve
  EXPECT_EQ(written(alternates + nested, kTwo), "<u>Hello;<a>[Good day;]");
  EXPECT_EQ(written("{% if messages | length is odd %}{{ raise_exception('no') }}{% endif %}" + nested, four),
            "<u>a;<a>[b;]<u>c;<a>[d;]");
}

TEST_F(ChatTemplateTest, PromptsOfALongChatAreNotWritten) {
  ordered_json chat;
  for (int i = 0; i < 64; ++i) chat.push_back(say(i % 2 == 0 ? "user" : "assistant", "x"));
  const std::string source = "{% for m in messages %}<{{ m.role[0] }}>{{ m.content }}{% endfor %}";
  std::string all, marked;
  for (int i = 0; i < 32; ++i) all += "<u>x[<a>x]", marked += "<u>x<a>[x]";
  EXPECT_EQ(written(source, chat), all);
  chat.push_back(say("user", "y"));
  EXPECT_EQ(written(source, chat), marked + "<u>y");
}

TEST_F(ChatTemplateTest, MembersThatATemplateSetsAreNotThoseOfTheNextText) {
  EXPECT_EQ(written("{% for m in messages %}{% set m.content = m.content + '!' %}<{{ m.role[0] }}>"
                    "{{ m.content }}{% endfor %}{% if add_generation_prompt %}<a>{% endif %}",
                    kTwo),
            "<u>Hello!<a>[Good day!]");
}

TEST_F(ChatTemplateTest, TheTagGenerationSaysWhatCounts) {
  EXPECT_EQ(
      written(
          "{% for m in messages %}{{ m.role }}:{% if m.role == 'assistant' %}{% generation %}{{ m.content }}"
          "{% endgeneration %}{% else %}{{ m.content }}{% endif %};{% endfor %}",
          kTwo),
      "user:Hello;assistant:[Good day];");
}

TEST_F(ChatTemplateTest, AMessageOfWeight0DoesNotCountInGeneration) {
  ordered_json four = {say("user", "a"), say("assistant", "b"), say("user", "c"), say("assistant", "d")};
  four[1]["weight"] = 0;
  EXPECT_EQ(written("{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}<{{ m.content }}>"
                    "{% endgeneration %}{% else %}{{ m.content }}{% endif %}{% endfor %}",
                    four),
            "a<b>c[<d>]");
  four[1]["content"] = "";
  EXPECT_EQ(written("{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}<{{ m.content }}>"
                    "{% endgeneration %}{% else %}{{ m.content }}{% endif %}{% endfor %}",
                    four),
            "a<>c[<d>]");
  four[1]["weight"] = nullptr;
  EXPECT_EQ(written("{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}<{{ m.content }}>"
                    "{% endgeneration %}{% else %}{{ m.content }}{% endif %}{% endfor %}",
                    four),
            "a[<>]c[<d>]");
}

TEST_F(ChatTemplateTest, JsonIsWrittenInAsciiOnDemand) {
  const ordered_json chat = {say("user", "\u00e9\U0001f600\x7f"), say("assistant", "b")};
  const auto by = [&](const std::string& filter) {
    return written("{{ messages[0].content | " + filter + " }}{{ messages[-1].content }}", chat, false);
  };
  EXPECT_EQ(by("tojson"), "\"\u00e9\U0001f600\x7f\"b");
  EXPECT_EQ(by("tojson(ensure_ascii=true)"), R"("\u00e9\ud83d\ude00\u007f"b)");
  EXPECT_EQ(by("tojson(true, 2)"), by("tojson(ensure_ascii=true)"));
}

TEST_F(ChatTemplateTest, ShareGptsNamesAreThoseOfTemplates) {
  const ordered_json chat = {{{"from", "human"}, {"value", "a"}}, {{"from", "gpt"}, {"value", "b"}}};
  EXPECT_EQ(written("{% for m in messages %}{{ m.role }}={{ m.content }} {% endfor %}", chat),
            "user=a[ assistant=b ]")
      << "without a prompt the role is the assistant's to write";
}

TEST_F(ChatTemplateTest, TheTemplateIsThatBesideTheTokenizer) {
  EXPECT_EQ(ChatTemplate::beside(*tokenizer()), nullptr);
  configure({{"chat_template", kAll + "1"}});
  EXPECT_EQ(ChatTemplate::beside(*tokenizer())->source(), kAll + "1");
  configure({{"chat_template",
              {{{"name", "rag"}, {"template", "x"}}, {{"name", "default"}, {"template", kAll + "2"}}}}});
  EXPECT_EQ(ChatTemplate::beside(*tokenizer())->source(), kAll + "2");
  configure(
      {{"chat_template", {{{"name", "rag"}, {"template", kAll}}, {{"name", "tools"}, {"template", kAll}}}}});
  EXPECT_THAT(message_of<UserError>([&] { ChatTemplate::beside(*tokenizer()); }),
              HasSubstr("chat_template: of its templates (rag, tools) none is called default"));
  write_text(scratch_.path("chat_template.jinja"), kAll + "3");
  EXPECT_EQ(ChatTemplate::beside(*tokenizer())->source(), kAll + "3");
}

TEST_F(ChatTemplateTest, AnUnknownConstructIsNamedWithItsLine) {
  EXPECT_THAT(error_of("\n{% include 'x' %}"), HasSubstr("line 2: the tag 'include'"));
  EXPECT_THAT(error_of("{{ 1 }}\n\n{{ messages | shuffle }}"),
              HasSubstr("line 3 of the chat template: the filter 'shuffle' is not known here"));
  EXPECT_THAT(error_of("{{ open('/etc/passwd') }}"), HasSubstr("the function 'open' is not known here"));
  EXPECT_THAT(error_of("{{ messages.__class__.__mro__ }}"),
              HasSubstr("line 1 of the chat template: '__class__' is undefined"));
  EXPECT_THAT(error_of("{{ ''.format(1) }}"), HasSubstr("the method 'format' of a text is not known here"));
  EXPECT_THAT(error_of("{% if messages is callable %}{% endif %}"),
              HasSubstr("the test 'callable' is not known"));
  EXPECT_THAT(error_of("{% for m in messages %}{{ loop.depth }}{% endfor %}"),
              HasSubstr("loop.depth is not known"));
  configure({{"chat_template", "{{ 1 | shuffle }}"}});
  EXPECT_THAT(
      message_of<UserError>([&] { ChatTemplate::beside(*tokenizer()); }),
      testing::AllOf(HasSubstr("tokenizer_config.json"), HasSubstr("shuffle"), HasSubstr("give turn")));
}

TEST_F(ChatTemplateTest, ATemplateWithoutTheAssistantIsRefused) {
  EXPECT_THAT(error_of("{{ messages[0].content }}"), HasSubstr("does not write what an assistant says"));
}

TEST_F(ChatTemplateTest, ABrokenTemplateIsRefused) {
  for (const char* source : {"{{",
                             "{% for %}",
                             "{% if 1 %}",
                             "{% endif %}",
                             "{{ 1 + }}",
                             "{# ",
                             "{{ 'a }}",
                             "{{ a.b( }}",
                             "{% for a in b %}{% else %}",
                             "{{ [1 }}",
                             "{{ {1: 2} }}",
                             "{% set %}",
                             "{% break %}",
                             "{% %}",
                             "{{ 'a' + 1 }}",
                             "{{ 1 / 0 }}",
                             "{{ 9223372036854775807 + 1 }}",
                             "{{ missing.x }}",
                             "{{ 99999999999999999999 }}",
                             "{{ messages[0][::0] }}",
                             "{{ range(1, 9, 0) }}",
                             "{{ 1 < 2 < 3 }}"})
    EXPECT_NE(error_of(source), "") << source;
}

TEST_F(ChatTemplateTest, WorkMemoryAndDepthAreBounded) {
  const std::string deep = std::string(100'000, '(') + '1' + std::string(100'000, ')') + " }}";
  EXPECT_THAT(error_of("{{ " + deep), HasSubstr("nested too deeply"));
  std::string tags;
  for (int i = 0; i < 100'000; ++i) tags += "{% if 1 %}";
  EXPECT_THAT(error_of(tags), HasSubstr("nested too deeply"));
  const std::string steps = "takes too many steps, or writes too much";
  EXPECT_THAT(error_of("{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}"),
              HasSubstr(steps));
  EXPECT_THAT(
      error_of(
          "{% set n = namespace(x='aaaaaaaaaaaaaaaa') %}{% for a in range(99) %}{% set n.x = n.x + n.x %}"
          "{% endfor %}"),
      HasSubstr(steps));
  EXPECT_THAT(error_of("{% set n = namespace(x='aaaaaaaaaa') %}{% for a in range(99) %}"
                       "{% set n.x = n.x.replace('a', n.x) %}{% endfor %}"),
              HasSubstr(steps));
  EXPECT_THAT(error_of("{% set n = namespace(x=[1, 2, 3]) %}{% for a in range(99) %}{% set n.x = n.x + n.x "
                       "%}{% endfor %}"),
              HasSubstr(steps));
  EXPECT_THAT(error_of("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"), HasSubstr("too deeply"));
  EXPECT_THAT(error_of("{{ range(1000000000000) }}"), HasSubstr("too long"));
  const std::string nested = "lists and maps that lie too deep in each other";
  EXPECT_THAT(error_of("{% set n = namespace() %}{% set n.x = [n] %}{{ n | tojson }}"), HasSubstr(nested));
  EXPECT_THAT(
      error_of("{% set n = namespace(x=[]) %}{% for a in range(9999) %}{% set n.x = [n.x] %}{% endfor %}"),
      HasSubstr(nested));
  EXPECT_THAT(
      error_of(
          "{% set n = namespace(x=1) %}{% for a in range(9999) %}{% set n.x = {'a': n.x} %}{% endfor %}"),
      HasSubstr(nested));
}

TEST_F(ChatTemplateTest, ALongChatIsWritten) {
  ordered_json chat;
  for (int i = 0; i < 5000; ++i)
    chat.push_back(say(i % 2 == 0 ? "user" : "assistant", "In the beginning God created it."));
  for (const char* name : {"qwen3", "mistral3", "llama3.1", "gemma3"})
    EXPECT_GT(written(golden_template(name), chat).size(), 5000 * 33) << name;
}

}  // namespace
}  // namespace tutti
