#pragma once

#include <cstdint>
#include <string>

#include "data/proposals/proposal.h"

namespace tutti {

struct DraftOptions {
  std::string program = "";  // path of a model written by Python; "" = one of tutti's own
  std::string network = "";  // of networks_for; "" = the default
  std::string command;       // the command line that asked for the draft
  std::string schema = "";   // the JSON Schema of recipes for editors; "" = none
  int64_t num_workers = 0;   // threads that read and transform samples
};

// A commented recipe that trains on the data. Throws UserError if the network does not take such samples.
std::string draft_recipe(const Proposal& data, const DraftOptions& options);

// Names the paths of a proposal from the recipe's folder. Throws UserError for a path that is not UTF-8.
Proposal placed(Proposal data, const std::string& recipe_folder);
std::string recipe_path(const std::string& path, const std::string& recipe_folder);  // as TOML

}  // namespace tutti
