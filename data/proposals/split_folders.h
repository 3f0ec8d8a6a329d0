#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tutti {

// Names of the data to evaluate on, in lower case; of several, the first is taken.
std::span<const std::string_view> evaluated_names();

// True for the name, in any case, of a part of the data, to train or to evaluate on: "Training", "val".
bool is_split_name(const std::string& name);

// The folders of training and evaluation data below a folder; "" where a folder is missing.
struct SplitFolders {
  std::string train, eval;

  static SplitFolders of(const std::string& folder);
};

}  // namespace tutti
