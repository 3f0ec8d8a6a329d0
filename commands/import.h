#pragma once

#include <string>

#include "recipe/toml_reader.h"

namespace tutti {

struct ImportOptions {
  std::string path;        // another program's checkpoint: a file or a folder
  RecipeFile recipe = {};  // of the run that continues the checkpoint
  std::string out;         // the checkpoint's folder to write; "": among the checkpoints of the recipe's run
};

// `tutti import`: writes another program's checkpoint (io/foreign/foreign_checkpoint.h) as a checkpoint of
// tutti's, as if the recipe's run had saved the checkpoint. Needs the recipe's data, and memory for the model
// and its optimizer. Returns the text to print, with the parts taken over and the parts left. Throws
// UserError.
std::string import_text(const Setting& recipe, const ImportOptions& options);

}  // namespace tutti
