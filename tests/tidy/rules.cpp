#include "tests/tidy/rules.h"

namespace tutti {
namespace {

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

SourceTree one(const std::string& path, const std::string& text) { return {parse_source(path, text)}; }

SourceTree two(const std::string& path, const std::string& text, const std::string& path2,
               const std::string& text2) {
  return {parse_source(path, text), parse_source(path2, text2)};
}

SourceTree rooms_of_one_folder(int number) {
  SourceTree tree;
  for (int i = 0; i < number; ++i) tree.push_back(parse_source("io/room" + std::to_string(i) + ".h", ""));
  return tree;
}

const std::string kIncludesIo = "#include \"io/a.h\"\n";

}  // namespace

const std::vector<TidyRule>& tidy_rules() {
  static const std::vector<TidyRule> rules{
      {"FunctionsAreShort", long_functions,
       one("io/a.cpp", "void f() {\n" + repeated("  g();\n", 69) + "}\n")},
      {"FilesAreShort", long_files, one("io/a.cpp", repeated("int a;\n", 501))},
      {"LinesAreShort", long_lines, one("io/a.cpp", repeated("-", 111))},
      {"PathsAreOfNoMachine", absolute_paths,
       one("examples/a.toml",
           "path = \"/ho"
           "me/me/digits.h5\"")},
      {"NoCodeInComments", commented_out_code, one("io/a.cpp", "int a;\n  // return 3;\n")},
      {"NamesSaySomething", empty_names, one("io/string_utils.cpp", "")},
      {"HeadersArePragmaOnce", headers_without_pragma_once, one("io/a.h", "#ifndef A_H\n")},
      {"TypesHaveNamesOfTheirOwn", types_of_one_name,
       two("data/a.h", "struct A {\n};\n", "io/a.h", "class A final : public B {\n};\n")},
      {"ProbesHaveNamesOfTheirOwn", ill_named_probes,
       two("io/a.cpp", "void f() { TUTTI_PROBE(\"io: rare\"); }\n", "io/b.cpp",
           "void g() { TUTTI_PROBE(\"io: rare\"); }\n")},
      {"ProbesNameTheirPart", ill_named_probes, one("io/a.cpp", "void f() { TUTTI_PROBE(\"Rare\"); }\n")},
      {"ProbesAreInSources", ill_named_probes, one("io/a.h", "#pragma once\nTUTTI_PROBE(\"io: rare\");\n")},
      {"IncludesFollowTheTable", forbidden_folders, one("collectives/a.cpp", kIncludesIo)},
      {"NoTwoFoldersIncludeEachOther", circles_of_folders,
       two("data/a.cpp", kIncludesIo, "io/a.cpp", "#include \"data/a.h\"\n")},
      {"NorDoSubfolders", circles_of_folders,
       two("io/a/a.cpp", "#include \"io/b/b.h\"\n", "io/b/b.cpp", "#include \"io/a/a.h\"\n")},
      {"NorDoAFolderAndItsSubfolder", circles_of_folders,
       two("io/a.cpp", "#include \"io/b/b.h\"\n", "io/b/b.cpp", kIncludesIo)},
      {"NorDoThreeInACircle",
       circles_of_folders,
       {parse_source("io/a/a.cpp", "#include \"io/b/b.h\"\n"),
        parse_source("io/b/b.cpp", "#include \"io/c/c.h\"\n"),
        parse_source("io/c/c.cpp", "#include \"io/a/a.h\"\n")}},
      {"NorDoFoldersByFilesOfDifferentSubfolders", circles_of_folders,
       two("io/a/x/a.cpp", "#include \"io/b/x/b.h\"\n", "io/b/y/b.cpp", "#include \"io/a/y/a.h\"\n")},
      {"TheTestDeviceIsForTests", test_device_outside_tests,
       one("job/a.cpp", "#include \"tests/device/test_device.h\"\n")},
      {"DevicesAreNamedInTensorsAlone", devices_outside_tensors,
       one("models/a.cpp", "at::Tensor zero() { return at::zeros({1}, at::kCPU); }\n")},
      {"NorAreTheirTypes", devices_outside_tensors,
       one("job/a.cpp", "const auto type = c10::DeviceType::PrivateUse1;\n")},
      {"TheMemoryOfTensorsIsForFew", memory_touched_elsewhere,
       one("models/a.cpp", "float first(const at::Tensor& x) { return x.const_data_ptr<float>()[0]; }\n")},
      {"ThirdPartiesStayAtHome", third_party_outside_its_home,
       one("cli/train.cpp", "#include <ATen/ATen.h>\n")},
      {"IncludesStartAtTheRoot", includes_not_from_the_root,
       two("io/b.h", "", "io/b.cpp", "#include \"b.h\"\n")},
      {"OwnHeaderComesFirst", own_header_not_first, two("io/b.h", "", "io/b.cpp", "#include <map>\n")},
      {"SourcesAreListed", unlisted_sources, two("io/b.cpp", "", "io/CMakeLists.txt", "# b.cpp\n")},
      {"FoldersAreAdded", unlisted_folders, two("io/CMakeLists.txt", "", "CMakeLists.txt", "sim\n")},
      {"FoldersHaveFewRooms", crowded_folders, rooms_of_one_folder(21)},
      {"WordsArePlain", unclear_words, one("io/a.cpp", "// Tears the newest start's file.\n")},
      {"TestsHaveANounAsSubject", pronouns_as_subjects,
       one("tests/io/a_test.cpp", "TEST(A, WhatIsNoFileIsSaid) {\n}\n")},
  };
  return rules;
}

}  // namespace tutti
