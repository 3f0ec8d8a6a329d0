#pragma once

#include <string>

#include "cli/init/look.h"

namespace tutti {

// A commented recipe that trains on the data. `command`: the command line that asked for the draft; `schema`:
// the JSON Schema of recipes for editors, "" = none.
std::string draft_recipe(const FoundData& data, const std::string& command, const std::string& schema);

}  // namespace tutti
