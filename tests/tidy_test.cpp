#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tidy/english.h"
#include "tests/tidy/english_ratchet.h"
#include "tests/tidy/error_texts.h"
#include "tests/tidy/function_length.h"
#include "tests/tidy/rules.h"

namespace tutti {

void PrintTo(const TidyRule& rule, std::ostream* out) { *out << rule.name; }

namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

const SourceTree& whole_tree() {
  static const SourceTree tree = read_source_tree(TUTTI_SOURCE_DIR);
  return tree;
}

std::string joined(const Findings& findings) {
  std::string text;
  for (const std::string& line : findings) text += line + "\n";
  return text;
}

class Tidy : public testing::TestWithParam<TidyRule> {};

TEST_P(Tidy, TheTreeKeepsTheRule) {
  const Findings findings = GetParam().check(whole_tree());
  EXPECT_TRUE(findings.empty()) << joined(findings);
}

TEST_P(Tidy, TheRuleBites) { EXPECT_THAT(GetParam().check(GetParam().broken), SizeIs(1)); }

INSTANTIATE_TEST_SUITE_P(Rule, Tidy, testing::ValuesIn(tidy_rules()),
                         [](const auto& info) { return info.param.name; });

TEST(TidyTree, HoldsTheSources) {
  bool found = false;
  for (const SourceFile& file : whole_tree()) found = found || file.path == "tests/tidy_test.cpp";
  EXPECT_TRUE(found);
  EXPECT_GT(whole_tree().size(), 50u);
}

SourceTree including(const std::string& path, const std::string& header) {
  return {parse_source(path, "#include " + header + "\n")};
}

TEST(ThirdParties, HaveOneHomeEach) {
  const auto away = third_party_outside_its_home;
  EXPECT_THAT(away(including("io/a.cpp", "<hdf5.h>")), IsEmpty());
  EXPECT_THAT(away(including("data/a.cpp", "<hdf5.h>")), SizeIs(1));
  EXPECT_THAT(away(including("data/a.cpp", "<H5Dpublic.h>")), SizeIs(1));
  EXPECT_THAT(away(including("io/a.cpp", "<toml++/toml.h>")), SizeIs(1));
  EXPECT_THAT(away(including("training/a.cpp", "<nlohmann/json.hpp>")), SizeIs(1));
  EXPECT_THAT(away(including("runtime/log.cpp", "<spdlog/spdlog.h>")), IsEmpty());
  EXPECT_THAT(away(including("runtime/log.h", "<spdlog/spdlog.h>")), SizeIs(1));
  EXPECT_THAT(away(including("cli/main.cpp", "<CLI/CLI.hpp>")), IsEmpty());
  EXPECT_THAT(away(including("io/a.cpp", "<CLI/CLI.hpp>")), SizeIs(1));
  EXPECT_THAT(away(including("data/readers/a.cpp", "<jpeglib.h>")), SizeIs(1));
  EXPECT_THAT(away(including("models/a.cpp", "<torch/torch.h>")), SizeIs(1));
  EXPECT_THAT(away(including("tests/models/a_test.cpp", "<torch/torch.h>")), SizeIs(1));
}

TEST(ThirdParties, MpiAndNcclLiveInCollectives) {
  const auto away = third_party_outside_its_home;
  EXPECT_THAT(away(including("collectives/mpi/world.cpp", "<mpi.h>")), IsEmpty());
  EXPECT_THAT(away(including("actors/sync.cpp", "<mpi.h>")), SizeIs(1));
  EXPECT_THAT(away(including("collectives/nccl/nccl_group.cpp", "<nccl.h>")), IsEmpty());
  EXPECT_THAT(away(including("collectives/mpi/world.cpp", "<nccl.h>")), SizeIs(1));
  EXPECT_THAT(away(including("tensors/cuda/device.cu", "<cuda_runtime.h>")), IsEmpty());
  EXPECT_THAT(away(including("tensors/memory/meter.cpp", "<cuda_runtime.h>")), SizeIs(1));
}

TEST(ThirdParties, LibtorchIsNotInRuntimeAndCli) {
  const auto away = third_party_outside_its_home;
  EXPECT_THAT(away(including("runtime/actor.h", "<c10/util/Exception.h>")), SizeIs(1));
  EXPECT_THAT(away(including("cli/eval.cpp", "<torch/types.h>")), SizeIs(1));
  EXPECT_THAT(away(including("io/dtypes.cpp", "<ATen/ATen.h>")), IsEmpty());
}

std::vector<int> lengths(const std::string& text) {
  std::vector<int> lines;
  for (const FunctionSpan& span : find_functions(parse_source("io/a.cpp", text).code))
    lines.push_back(span.lines());
  return lines;
}

TEST(FunctionLength, CountsFromTheSignatureToTheClosingBrace) {
  EXPECT_THAT(lengths("namespace a {\nint f(int x,\n      int y) {\n  return x;\n}\n}\n"), ElementsAre(4));
  EXPECT_THAT(lengths("struct A {\n  int f() const { return 1; }\n  int g();\n};\n"), ElementsAre(1));
  EXPECT_THAT(lengths("template <class T>\nvoid f() {\n  for (;;) {\n  }\n}\n"), ElementsAre(5));
  EXPECT_THAT(lengths("TEST(A, B) {\n  EXPECT_TRUE(true);\n}\n"), ElementsAre(3));
}

TEST(FunctionLength, IsNotFooledByBracesInTextOrData) {
  EXPECT_THAT(lengths("const int a[] = {\n1,\n2};\n"), IsEmpty());
  EXPECT_THAT(lengths("void f() {\n  g(\"}\", '{');  // }\n  h(R\"(\n}\n)\");\n}\n"), ElementsAre(6));
  EXPECT_THAT(lengths("void f() {\n  g(1'000);\n}\nvoid h() {}\n"), ElementsAre(3, 1));
  EXPECT_THAT(lengths("#define X(a) \\\n  void a() {\nvoid f() {\n}\n"), ElementsAre(2));
}

TEST(CommentedOutCode, IsDistinguishedFromProse) {
  const auto dead = commented_out_code;
  EXPECT_THAT(dead({parse_source("io/a.cpp", "// sums, then divides; see the header\n")}), IsEmpty());
  EXPECT_THAT(dead({parse_source("io/a.cpp", "f(\"// a;\");\n")}), IsEmpty());
  EXPECT_THAT(dead({parse_source("io/a.cpp", "// scaled inside (float32 scalar;\n")}), IsEmpty());
  EXPECT_THAT(dead({parse_source("io/a.cpp", "// progress (one line, plain lines else);\n")}), IsEmpty());
  EXPECT_THAT(dead({parse_source("io/a.cpp", "// std::string name;\n")}), SizeIs(1));
  EXPECT_THAT(dead({parse_source("io/a.cpp", "// return;\n")}), SizeIs(1));
  EXPECT_THAT(dead({parse_source("io/a.cpp", "g();  // f();\n")}), SizeIs(1));
  EXPECT_THAT(dead({parse_source("io/a.cpp", "/* if (a) {\n")}), SizeIs(1));
  EXPECT_THAT(dead({parse_source("io/a.cpp", "#if 0\n")}), SizeIs(1));
}

TEST(Words, AreReadInCommentsTextsAndTestNames) {
  const auto unclear = unclear_words;
  EXPECT_THAT(unclear({parse_source("io/a.cpp", "#include \"io/things.h\"\nint things;\n")}), IsEmpty());
  EXPECT_THAT(unclear({parse_source("io/a.cpp", "f();  // the thing\n")}), SizeIs(1));
  EXPECT_THAT(unclear({parse_source("io/a.cpp", "f(R\"(\nthe run goes on)\");\n")}), SizeIs(1));
  EXPECT_THAT(unclear({parse_source("tests/a.cpp", "TEST_F(A,\n       ItGoesOn) {\n}\n")}), SizeIs(1));
  EXPECT_THAT(unclear({parse_source("io/a.cpp", "// starts, and is told from others\n")}), SizeIs(1));
}

TEST(Subjects, OfTestsAreNouns) {
  const auto pronoun = [](const std::string& name) {
    return pronouns_as_subjects({parse_source("tests/a_test.cpp", "TEST(A, " + name + ") {}\n")}).size();
  };
  for (const char* name : {"WhatIsNoFileIsSaid", "OneThatHangsEnds", "TheOldOneStays", "DamagedOnesAreNamed",
                           "AllAreAsked", "ItEnds", "NothingIsLeft", "ThatFits"})
    EXPECT_EQ(pronoun(name), 1u) << name;
  for (const char* name : {"ANonFileIsNamed", "OneRankEnds", "AllRanksAreAsked", "IsLeft", "ItsPathIsKept",
                           "TheMixIsOneForTheStep", "EndsWithOne"})
    EXPECT_EQ(pronoun(name), 0u) << name;
  EXPECT_THAT(pronouns_as_subjects({parse_source("tests/a.py", "  def test_it_ends(self):")}), SizeIs(1));
}

TEST(English, KeepsItsBounds) {
  const Findings findings = english_off_its_bounds(whole_tree(), english_bounds());
  EXPECT_TRUE(findings.empty()) << joined(findings);
}

SourceFile header_of(const std::string& comment, const std::string& path = "io/a.h") {
  return parse_source(path, "#pragma once\n// " + comment + "\nint a;\n");
}

std::string pronoun_of(const std::string& sentence) { return bare_pronoun({1, sentence}); }

TEST(English, PronounsWithoutTheirNounAreBare) {
  for (const char* bare : {"Closes the file when it is full.", "Keeps those that fit.", "Reads what is left.",
                           "Is larger than that of the rank.", "Takes one, then waits.", "This is shared.",
                           "Holds the `sum` of them", "Waits for others.", "Before that, waits."})
    EXPECT_NE(pronoun_of(bare), "") << bare;
  for (const char* named :
       {"Keeps those ranks that fit.", "Takes one message, then waits.", "Waits for others' parts",
        "The messages that fit are kept.", "This rank is shared.", "Reads a one-line text.",
        "Calls `it()` of one of the ranks.", "So that one rank alone writes."})
    EXPECT_EQ(pronoun_of(named), "") << named;
}

TEST(English, IsReadBySentencesOfEightWords) {
  const auto counted = [](const std::string& comment) {
    int count = 0;
    for (const Sentence& sentence : sentences_of_comments(header_of(comment))) count += is_counted(sentence);
    return count;
  };
  EXPECT_EQ(counted("Reads the one file of a.b and closes it."), 1);
  EXPECT_EQ(counted("Reads the file. Then closes it, e.g. at end."), 0);
  EXPECT_EQ(counted("Reads all lines of the file\n// and then closes the file"), 1);
  EXPECT_EQ(counted("Reads all lines of the file\nint b;  // and then closes the file"), 0);
}

TEST(English, OfPagesIsReadWithoutCode) {
  const auto texts = [](const std::string& page) {
    return sentences_of_page(parse_source("docs/a.md", page));
  };
  EXPECT_THAT(texts("A file.\nIt ends.\n"), SizeIs(2));
  EXPECT_THAT(texts("```\nA file.\n```\n    indented\n"), IsEmpty());
  EXPECT_THAT(texts("| a | b |\n"), SizeIs(2));
}

TEST(English, NamesWithoutNounAreFound) {
  const auto names = [](const std::string& line) {
    return names_without_noun(parse_source("io/a.cpp", line));
  };
  for (const char* empty :
       {"for (const Rank& one : ranks) stop(one);", "const auto found = map.find(key);",
        "Rank of_all(int n);", "void f(int wanted, int b) {", "const auto& [one, rest] = pair;",
        "std::find_if(a, b, [](int one) {", "std::vector<int> one;"})
    EXPECT_THAT(names(empty), SizeIs(1)) << empty;
  for (const char* good : {"sort([](int one) { return one > 1; });", "return one;", "f(a, one);",
                           "one.stop();", "int number_of_ranks;", "return a > one;"})
    EXPECT_THAT(names(good), IsEmpty()) << good;
}

TEST(English, MayOnlyGetBetter) {
  const SourceTree tree{header_of("Closes the file of the rank when it is full.\n"),
                        parse_source("io/a.cpp", "int one;\nint found;\nint wanted;\n")};
  const auto off = [&](int percent, int names) {
    return english_off_its_bounds(tree, {{"io", percent, names}});
  };
  EXPECT_THAT(off(100, 3), IsEmpty());
  EXPECT_THAT(off(99, 3), SizeIs(1));
  EXPECT_THAT(off(100, 2), SizeIs(1));
  EXPECT_THAT(off(100, 5), IsEmpty());
  EXPECT_THAT(off(100, 6), ElementsAre(testing::HasSubstr("write 3")));
  EXPECT_THAT(english_off_its_bounds({}, {{"io", 12, 0}}), ElementsAre(testing::HasSubstr("write 10")));
  EXPECT_THAT(english_off_its_bounds({}, {{"io", 11, 0}}), IsEmpty());
  EXPECT_THAT(english_off_its_bounds({}, {{"io", 10, 1}}), ElementsAre(testing::HasSubstr("write 0")));
  EXPECT_THAT(english_off_its_bounds(tree, {}), SizeIs(2));
  EXPECT_THAT(english_off_its_bounds({header_of("Closes the file of the rank when it is full.", "docs/a.md")},
                                     {{"docs", 99, 0}}),
              SizeIs(1));
}

std::vector<std::string> texts_of_errors(const std::string& code) {
  std::vector<std::string> texts;
  for (const ErrorText& text : error_texts(parse_source("io/a.cpp", code))) texts.push_back(text.text);
  return texts;
}

TEST(Errors, AreTheTextsOfFailuresAlone) {
  EXPECT_THAT(texts_of_errors("f(\"a\"); key.fail(\"b\" + name(\"c\") + \"d\"); g(\"e\");\n"),
              ElementsAre("b", "c", "d"));
  EXPECT_THAT(texts_of_errors("throw UserError({path}, \"a \"\n    \"b, 'c'\",\n  d);\nf(\"e\");\n"),
              ElementsAre("a b, 'c'"));
  EXPECT_THAT(texts_of_errors("throw OperatingError(c == '\"' ? \"a\" : \"b\");\n"), testing::Contains("b"));
  EXPECT_THAT(texts_of_errors("failed(\"a\"); // fail(\"b\")\n"), IsEmpty());
}

Findings errors_beyond(const std::string& code, int bound, const std::string& path = "io/a.cpp") {
  return errors_off_their_bound({parse_source(path, code)}, bound);
}

TEST(Errors, PronounsThatBeginAClauseAreBare) {
  for (const char* bare :
       {"key.fail(\"it is full\");", "throw UserError(path + \": it has no \" + name);",
        "key.fail(\"'\" + name + \"'; this is wrong\");", "key.fail(full ? \"is full\" : \"they are full\");",
        "throw OperatingError({path},\n    \"damaged: it \"\n \"ends early\");"})
    EXPECT_THAT(errors_beyond(bare, 0), SizeIs(2)) << bare;
  for (const char* named :
       {"key.fail(\"the file is full\");", "throw UserError(\"the file \" + path + \": full, as it was\");",
        "key.fail(\"this file is full\");", "key.fail(\"the file is torn; it ends early\");",
        "key.fail(name + \"it is full\");", "warn(\"it is full\");"})
    EXPECT_THAT(errors_beyond(named, 0), IsEmpty()) << named;
}

TEST(Errors, MayOnlyGetBetter) {
  const std::string code = "key.fail(\"it is full\");\n";
  EXPECT_THAT(errors_beyond(code, 1), IsEmpty());
  EXPECT_THAT(errors_beyond(code, 5), IsEmpty());
  EXPECT_THAT(errors_beyond(code, 6), ElementsAre(testing::HasSubstr("write 1")));
  EXPECT_THAT(errors_beyond(code, 0, "tests/a.cpp"), IsEmpty());
}

TEST(Errors, KeepTheirBound) {
  const Findings findings = errors_off_their_bound(whole_tree(), kMostBareErrors);
  EXPECT_TRUE(findings.empty()) << joined(findings);
}

TEST(AbsolutePaths, AreDistinguishedFromRelativeOnes) {
  const auto bad = absolute_paths;
  EXPECT_THAT(bad({parse_source("a.sh", "cd ~/work/x; ls a/home/b $X/root/y https://a.b/work/")}), IsEmpty());
  EXPECT_THAT(bad({parse_source("a.sh",
                                "cd /ro"
                                "ot/x")}),
              SizeIs(1));
  EXPECT_THAT(bad({parse_source("a.md",
                                "in /tm"
                                "p/build-x")}),
              SizeIs(1));
}

}  // namespace
}  // namespace tutti
