#include <cstdio>

#include "algorithms/catalog.h"
#include "cli/catalog_text.h"
#include "cli/commands.h"
#include "cli/composer_names.h"
#include "cli/recipe_markdown.h"
#include "job/recipe_catalogs.h"
#include "runtime/error.h"

namespace tutti {
namespace {

std::string explanation(const std::string& name, bool markdown) {
  if (!markdown) return explain_text(all_catalogs(), composer_names(), name);
  return name == "algorithms" ? algorithms_markdown(algorithm_catalog()) : recipe_markdown(recipe_catalogs());
}

int explain(const std::string& name, bool markdown) {
  if (name.empty() && !markdown)
    throw UserError("explain needs a name: a section, a kind or a key of a recipe");
  std::fputs(explanation(name, markdown).c_str(), stdout);
  return 0;
}

}  // namespace

void add_explain(CLI::App& app, Action& action) {
  auto* command =
      app.add_subcommand("explain", "Explain a section, kind or key of a recipe, or a Composer name");
  auto name = std::make_shared<std::string>();
  auto markdown = std::make_shared<bool>(false);
  command->add_option("NAME", *name,
                      "for example optimizer, adamw, train.max_duration, momentum, SpeedMonitor");
  command->add_flag("--markdown", *markdown,
                    "print docs/recipe.md; with the name algorithms, docs/algorithms.md");
  command->callback([&action, name, markdown] { action = [=] { return explain(*name, *markdown); }; });
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
