#pragma once

#include <string>

#include "data/proposals/proposal.h"

namespace tutti {

// A commented recipe that trains on the data. `program`: the path of a model written by Python, "" = one of
// tutti's own; `command`: the command line that asked for the draft; `schema`: the JSON Schema of recipes for
// editors, "" = none.
std::string draft_recipe(const Proposal& data, const std::string& program, const std::string& command,
                         const std::string& schema);

// Names the paths of a proposal from the recipe's folder. Throws UserError for a path that is not UTF-8.
Proposal placed(Proposal data, const std::string& recipe_folder);
std::string recipe_path(const std::string& path, const std::string& recipe_folder);  // as TOML

}  // namespace tutti
