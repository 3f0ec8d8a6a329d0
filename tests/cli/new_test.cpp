// `tutti new` in an empty folder. tests/runs/install_test.py builds and runs the folders that it writes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <filesystem>

#include "cli/command_line.h"
#include "runtime/error.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::HasSubstr;
using testing::Not;

class NewFolder : public testing::Test {
 protected:
  NewFolder() { std::filesystem::current_path(scratch_.path()); }
  ~NewFolder() override { std::filesystem::current_path(before_); }

  // The output.
  static std::string written(const std::string& line) {
    CLI::App app("", "tutti");
    Action action;
    add_commands(app, action);
    app.parse("new " + line, false);
    testing::internal::CaptureStdout();
    try {
      EXPECT_EQ(action(), 0);
    } catch (...) {
      testing::internal::GetCapturedStdout();
      throw;
    }
    return testing::internal::GetCapturedStdout();
  }
  static std::string refusal(const std::string& line) {
    return message_of<UserError>([&] { written(line); });
  }

  const std::filesystem::path before_ = std::filesystem::current_path();
  Scratch scratch_;
};

TEST_F(NewFolder, FilesHaveTheNameInAllPlaces) {
  EXPECT_THAT(written("plugin noise"), HasSubstr("cd noise\n  cmake -B build && cmake --build build\n"));
  EXPECT_THAT(written("program mine"), HasSubstr("mpirun -np 2 build/mine recipe.toml\n"));
  for (const std::string name : {"noise", "mine"}) {
    for (const std::string file :
         {std::string("CMakeLists.txt"), name + ".cpp", std::string("recipe.toml")}) {
      const std::string text = read_text(name + '/' + file);
      EXPECT_THAT(text, HasSubstr(name)) << file;
      for (const char* field : {"{name}", "{hints}", "four_ranks"}) EXPECT_THAT(text, Not(HasSubstr(field)));
    }
  }
  EXPECT_THAT(read_text("noise/recipe.toml"), HasSubstr("library = \"build/libnoise.so\""));
  EXPECT_THAT(read_text("mine/mine.cpp"), HasSubstr("tutti::train_program<Net>(argc, argv)"));
}

TEST_F(NewFolder, AnExistingFolderStaysAsItIs) {
  std::filesystem::create_directory("mine");
  EXPECT_THAT(refusal("program mine"), HasSubstr("mine: exists already"));
  std::filesystem::create_symlink("nowhere", "link");
  EXPECT_THAT(refusal("program link"), HasSubstr("link: exists already"));
  EXPECT_TRUE(std::filesystem::is_empty("mine"));
}

TEST_F(NewFolder, WrongWordsAreRefused) {
  EXPECT_THAT(refusal("plugins noise"), HasSubstr("expected plugin or program; did you mean plugin?"));
  for (const std::string name : {"a-b", "a/b", "../a", "1st", ".", "a.b"})
    EXPECT_THAT(refusal("plugin " + name), HasSubstr("NAME " + name + ": expected letters, digits and _"));
  EXPECT_THAT(refusal("plugin test"), HasSubstr("CMake has a target of this name"));
  EXPECT_TRUE(std::filesystem::is_empty("."));
}

}  // namespace
}  // namespace tutti
