#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

// The parts of data by their names: "Training", "val".
namespace tutti {

// Names of the data to evaluate on, in lower case; of several, the first is taken.
std::span<const std::string_view> evaluated_names();

// True for the name, in any case, of data to train on, or to evaluate on.
bool is_trained_name(const std::string& name);
bool is_evaluated_name(const std::string& name);

// True for the name of a folder or column of pictures, or of what belongs to their pixels: masks and labels.
bool is_name_of_pictures(const std::string& name);
bool is_name_of_masks(const std::string& name);

// The folders of training and evaluation data below a folder; "" where a folder is missing.
struct SplitFolders {
  std::string train, eval;

  static SplitFolders of(const std::string& folder);
};

// The file beside the file to train on that `suits` takes: val.csv beside train.csv. "" = none.
std::string file_to_evaluate(const std::string& file, const std::function<bool(const std::string&)>& suits);

}  // namespace tutti
