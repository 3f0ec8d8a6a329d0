#pragma once

#include <string>
#include <vector>

#include "recipe/setting.h"

namespace tutti {

// A part of a training with a recipe of its own.
struct Stage {
  std::string name;  // "" = not named
  Setting recipe;    // without [[stages]]
};

// True if the written recipe has [[stages]], of which no stage is chosen by the key `stage`.
bool has_stages(const Setting& recipe);

// The recipes of [[stages]], as written: each is the recipe with the keys of the stage's table in place of
// its own. A list replaces a list, a table of another kind replaces a table, and values of --set stay. Keys
// that say where a run starts are the first stage's alone; all others start from weights alone, unless their
// table has load_weights_only. Throws UserError for keys that no stage can have.
std::vector<Stage> written_stages(const Setting& recipe);

// The recipe of the stage that the key `stage` chooses, or the recipe itself if there are no stages. Throws
// UserError if there are stages and none is chosen.
Setting chosen_stage(const Setting& recipe);

}  // namespace tutti
