#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "cli/commands.h"
#include "cli/new_file.h"
#include "recipe/placeholders.h"
#include "runtime/disk.h"
#include "runtime/error.h"
#include "runtime/nearest_name.h"

namespace tutti {

extern const char kPluginSource[], kPluginRecipe[], kPluginCMake[];
extern const char kProgramSource[], kProgramRecipe[], kProgramCMake[];

namespace {

namespace fs = std::filesystem;

struct NewArguments {
  std::string kind, name;
};

// The installation with this executable, which find_package(tutti) looks into first; "" in a build tree.
std::string installed_prefix() {
  std::error_code ignored;
  const fs::path prefix = fs::read_symlink("/proc/self/exe", ignored).parent_path().parent_path();
  return fs::exists(prefix / "lib/cmake/tutti/tuttiConfig.cmake", ignored) ? prefix.string() : "";
}

bool is_word_character(unsigned char c) { return std::isalnum(c) != 0 || c == '_'; }

// A name of a folder, a source, a target of CMake and a library.
void require_name(const std::string& name) {
  constexpr std::array kTargets = {"all",     "clean",   "edit_cache",    "help",
                                   "install", "package", "rebuild_cache", "test"};
  if (std::isalpha(static_cast<unsigned char>(name[0])) == 0 || !std::ranges::all_of(name, is_word_character))
    throw UserError("NAME " + name + ": expected letters, digits and _, a letter first");
  if (std::ranges::count(kTargets, name) > 0)
    throw UserError("NAME " + name + ": CMake has a target of this name; expected another name");
  std::error_code ignored;
  if (fs::exists(fs::symlink_status(name, ignored)))
    throw UserError({name}, "exists already; expected the name of a new folder");
}

// The texts of the folder's files, by name.
std::map<std::string, std::string> files_of(const NewArguments& arguments) {
  const std::string source = arguments.name + ".cpp";
  if (arguments.kind == "plugin")
    return {{"CMakeLists.txt", kPluginCMake}, {source, kPluginSource}, {"recipe.toml", kPluginRecipe}};
  std::string program = kProgramSource;
  replace_all(program, "four_ranks.toml", "recipe.toml");
  replace_all(program, "four_ranks", arguments.name);
  return {{"CMakeLists.txt", kProgramCMake}, {source, program}, {"recipe.toml", kProgramRecipe}};
}

int create(const NewArguments& arguments) {
  if (arguments.kind != "plugin" && arguments.kind != "program") {
    const std::string near = nearest_name(arguments.kind, {"plugin", "program"});
    throw UserError("new " + arguments.kind + ": expected plugin or program" +
                    (near.empty() ? "" : "; did you mean " + near + "?"));
  }
  require_name(arguments.name);
  const std::string prefix = installed_prefix();
  PosixDisk().make_folders(arguments.name);
  for (auto& [file, text] : files_of(arguments)) {
    std::string written = text;
    replace_all(written, "{name}", arguments.name);
    replace_all(written, "{hints}", prefix.empty() ? "" : " HINTS \"" + prefix + '"');
    write_new(arguments.name + '/' + file, written, /*overwrite=*/false);
  }
  const std::string name = arguments.name;
  const std::string runs = arguments.kind == "plugin" ? "tutti train" : "build/" + name;
  std::printf(
      "%s: a %s: %s.cpp, recipe.toml, CMakeLists.txt with a test.\nNext:\n  cd %s\n  cmake -B build && cmake "
      "--build build\n  ctest --test-dir build\n  mpirun -np 2 %s recipe.toml\n",
      name.c_str(), arguments.kind.c_str(), name.c_str(), name.c_str(), runs.c_str());
  if (prefix.empty())
    std::printf(
        "This tutti is not installed: add -DCMAKE_PREFIX_PATH=PREFIX to the first command of cmake.\n");
  return 0;
}

}  // namespace

void add_new(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand(
      "new",
      "Write a folder that builds: a plugin for recipes, or a program with a model of its own, in C++");
  auto arguments = std::make_shared<NewArguments>();
  command
      ->add_option("KIND", arguments->kind,
                   "plugin: a library that recipes name, with an algorithm and a callback; program: a main "
                   "that trains a torch::nn::Module")
      ->type_name("plugin|program")
      ->required();
  command->add_option("NAME", arguments->name, "the name, also of the new folder: letters, digits and _")
      ->type_name("NEW")
      ->required();
  command->callback([&action, arguments] { action = [=] { return create(*arguments); }; });
}

}  // namespace tutti
