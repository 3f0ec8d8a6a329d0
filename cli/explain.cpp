#include <cstdio>

#include "algorithms/catalog.h"
#include "cli/catalog_text.h"
#include "cli/commands.h"
#include "cli/recipe_markdown.h"
#include "io/formats/recipe_schema.h"
#include "job/names/foreign_names.h"
#include "job/recipe_catalogs.h"
#include "runtime/error.h"

namespace tutti {
namespace {

struct ExplainArguments {
  std::vector<std::string> words;  // of a name or topic
  bool markdown = false, schema = false;

  std::string name() const {
    std::string text;
    for (const auto& word : words) text += (text.empty() ? "" : " ") + word;
    return text;
  }
};

std::string explanation(const ExplainArguments& arguments) {
  const std::string name = arguments.name();
  if (arguments.schema) return recipe_schema(recipe_catalogs());
  if (!arguments.markdown) return explain_text(all_catalogs(), foreign_names(), name, guides());
  return name == "algorithms" ? algorithms_markdown(algorithm_catalog()) : recipe_markdown(recipe_catalogs());
}

int explain(const ExplainArguments& arguments) {
  if (arguments.words.empty() && !arguments.markdown && !arguments.schema)
    throw UserError("explain needs a name: a section, a kind or a key of a recipe, or a topic");
  std::fputs(explanation(arguments).c_str(), stdout);
  return 0;
}

}  // namespace

void add_explain(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand(
      "explain", "Explain a section, kind or key of a recipe, a topic, or a Composer name");
  auto arguments = std::make_shared<ExplainArguments>();
  command->add_option("NAME", arguments->words,
                      "for example optimizer, adamw, train.max_duration, learning rate, SpeedMonitor");
  command->add_flag("--schema", arguments->schema, "print the JSON Schema of recipes, for editors");
  command->add_flag("--markdown", arguments->markdown,
                    "print docs/recipe.md; with the name algorithms, docs/algorithms.md");
  command->callback([&action, arguments] { action = [=] { return explain(*arguments); }; });
}

void add_list(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("list", "List the models, datasets, optimizers, ... for recipes");
  auto what = std::make_shared<std::string>();
  command->add_option("WHAT", *what, "models, datasets, optimizers, ... (default: all)");
  command->callback([&action, what] {
    action = [=] {
      std::fputs(list_text(all_catalogs(), *what).c_str(), stdout);
      return 0;
    };
  });
}

}  // namespace tutti
