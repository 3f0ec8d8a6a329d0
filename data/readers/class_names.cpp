#include "data/readers/class_names.h"

#include <filesystem>
#include <sstream>

#include "data/readers/image_folder.h"
#include "data/readers/mds_dataset.h"
#include "data/readers/options.h"
#include "data/tables/fitted_table.h"
#include "io/hdf5/hdf5.h"
#include "runtime/error.h"
#include "runtime/regular_file.h"

namespace tutti {
namespace {

std::vector<std::string> lines_of(std::istream& text) {
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) {
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty()) lines.push_back(line);
  }
  return lines;
}

std::vector<std::string> cifar_names(const std::string& path, const std::string& archive,
                                     const std::string& file) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::path folder = fs::is_directory(path, ignored) ? fs::path(path) : fs::path(path).parent_path();
  for (const fs::path& path : {folder / archive / file, folder / file})
    if (const RegularFile file(path, kMostTextBytes); file.problem().empty()) {
      std::istringstream text(file.text());
      return lines_of(text);
    }
  return {};
}

// The path of "target" in the file.
std::string target_path(const Hdf5Options& options) {
  const bool is_renamed = options.arrays && options.arrays->is_table() && options.arrays->has("target");
  const std::string name = is_renamed ? options.arrays->at("target").text() : "target";
  std::string path = name.starts_with('/') ? name : options.group + '/' + name;
  path.erase(0, std::min(path.find_first_not_of('/'), path.size()));
  return path;
}

std::vector<std::string> hdf5_names(const Hdf5Options& options) {
  const Hdf5File file(options.path, SoftLinks::kFollowed);
  const Hdf5Entry* target = file.find(target_path(options));
  if (!target || !target->attributes.contains("class_names")) return {};
  const auto* names = std::get_if<std::string>(&target->attributes.at("class_names"));
  if (!names) return {};
  std::istringstream text(*names);
  return lines_of(text);
}

}  // namespace

std::vector<std::string> class_names(const Setting& section) try {
  const std::string& kind = section.at("kind").text();
  if (kind == "hdf5") return hdf5_names(Hdf5Options::kind().read(section));
  if (kind == "image_folder") return image_folder_classes(ImageFolderOptions::kind().read(section));
  if (kind == "image_table") return ImageTableOptions::kind().read(section).classes;
  if (kind == "webdataset") return given_classes(WebDatasetOptions::kind().read(section));
  if (kind == "mds") return mds_classes(MdsOptions::kind().read(section));
  if (kind == "cifar10")
    return cifar_names(section.at("path").text(), "cifar-10-batches-bin", "batches.meta.txt");
  if (kind != "cifar100") return {};
  const std::string labels = section.at("labels").text();
  return cifar_names(section.at("path").text(), "cifar-100-binary", labels + "_label_names.txt");
} catch (const UserError&) {
  return {};
}

std::vector<std::string> class_names(const Setting& section, const std::string& fitted) {
  return fitted.empty() ? class_names(section) : FittedTable::from_json(fitted).classes;
}

}  // namespace tutti
