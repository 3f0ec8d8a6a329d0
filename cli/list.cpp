#include <cstdio>

#include "cli/catalog_text.h"
#include "cli/commands.h"
#include "job/recipe_catalogs.h"

namespace tutti {

void add_list(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("list", "What a recipe can name: models, datasets, optimizers, ...");
  auto what = std::make_shared<std::string>();
  command->add_option("WHAT", *what, "models, datasets, optimizers, ...; all of them when left out");
  command->callback([&action, what] {
    action = [=] {
      std::fputs(list_text(all_catalogs(), *what).c_str(), stdout);
      return 0;
    };
  });
}

}  // namespace tutti
