#include <cstdio>
#include <filesystem>
#include <memory>

#include "cli/commands.h"
#include "cli/convert/foundry.h"
#include "cli/convert/yaml_reader.h"
#include "cli/new_file.h"
#include "recipe/toml_reader.h"
#include "runtime/error.h"
#include "runtime/printable.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

struct ConvertArguments {
  std::string yaml;
  std::string out = "recipe.toml";
  bool force = false;
};

std::string comments(const RecipeDraft& draft, const std::string& yaml) {
  std::string out =
      "# Converted from " + on_one_line(fs::path(yaml).filename().string()) + " by tutti convert.\n";
  if (!draft.advice.empty()) out += "#\n# Needed before it trains:\n";
  for (const auto& line : draft.advice) out += "# - " + on_one_line(line) + '\n';
  if (!draft.left_out().empty()) out += "#\n# Left out:\n";
  for (const auto& setting : draft.left_out())
    out += "# - " + on_one_line(setting.name) +
           (setting.line > 0 ? " (line " + std::to_string(setting.line) + ')' : "") + ": " +
           on_one_line(setting.why) + '\n';
  return out + '\n';
}

int convert(const ConvertArguments& arguments) {
  const RecipeDraft draft = recipe_of_foundry(read_yaml(arguments.yaml));
  const std::string said = comments(draft, arguments.yaml);
  const std::string recipe = said + write_recipe(draft.recipe());
  if (arguments.out == "-") {
    std::fputs(recipe.c_str(), stdout);
    return 0;
  }
  write_new(arguments.out, recipe, arguments.force);
  const std::string out = on_one_line(arguments.out);
  std::fputs(said.c_str(), stdout);
  std::printf("%s is written. Next: tutti check %s, then tutti train %s\n", out.c_str(), out.c_str(),
              out.c_str());
  return 0;
}

}  // namespace

void add_convert(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("convert", "Write a recipe from a YAML file of MosaicML's llm-foundry");
  auto arguments = std::make_shared<ConvertArguments>();
  command->add_option("YAML", arguments->yaml, "a file that llm-foundry trains by, like mpt-125m.yaml")
      ->required()
      ->type_name("FILE");
  command
      ->add_option("--out", arguments->out, "the recipe to write; -: standard output (default: recipe.toml)")
      ->type_name("FILE");
  command->add_flag("--force", arguments->force, "overwrite an existing file");
  command->callback([&action, arguments] { action = [=] { return convert(*arguments); }; });
}

}  // namespace tutti
