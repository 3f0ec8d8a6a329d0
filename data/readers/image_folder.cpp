#include "data/readers/image_folder.h"

#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <sstream>

#include "data/images/picture_files.h"
#include "io/image_folders.h"
#include "runtime/error.h"
#include "runtime/hashes.h"
#include "runtime/nearest_name.h"
#include "runtime/regular_file.h"

namespace tutti {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

class FolderSource final : public PictureSource {
 public:
  explicit FolderSource(std::string folder) : PictureSource(PictureFiles(std::move(folder))) {}

  std::optional<ImageTarget> target_form() const override { return ImageTarget(); }
  int64_t target(int64_t index) const override { return targets_[static_cast<std::size_t>(index)]; }
  int64_t classes() const override { return count_; }
  LabelRange labels() const override {
    LabelCounter counter;
    for (int64_t i = 0; are_numbers_ && i < size(); ++i) counter.add(target(i), i);
    return counter.range();
  }
  uint64_t digest() const override {
    return XXH3_64bits_withSeed(targets_.data(), targets_.size() * sizeof(targets_[0]), files_.digest());
  }

  void add(const std::string& path, int64_t target) {
    files_.add(path);
    targets_.push_back(static_cast<int32_t>(target));
    count_ = std::max(count_, target + 1);
  }
  void set_classes(int64_t count, bool are_numbers) {
    count_ = std::max(count_, count);
    are_numbers_ = are_numbers;
  }

 private:
  std::vector<int32_t> targets_;
  int64_t count_ = 0;
  bool are_numbers_ = false;  // in the list
};

std::string trimmed(std::string line) {
  while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back()))) line.pop_back();
  return line;
}

template <class Use>
void on_lines(const std::string& path, const Use& use) {
  const RegularFile file(path);
  if (!file.problem().empty()) throw UserError({path}, file.problem());
  std::istringstream lines(file.text());
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    if (++number == 1 && line.starts_with(kByteOrderMark)) line.erase(0, kByteOrderMark.size());
    if (line = trimmed(line); !line.empty()) use(number, line);
  }
}

struct ListedImage {
  std::string path, class_name;
};

std::optional<int64_t> number_in(const std::string& text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0 || number > INT32_MAX - 1)
    return {};
  return number;
}

ListedImage listed(const std::string& list, int number, const std::string& line) {
  const std::size_t tab = line.rfind('\t');
  const std::size_t end = tab != std::string::npos ? tab : line.rfind(' ');
  if (end == std::string::npos || trimmed(line.substr(0, end)).empty())
    throw UserError({list, number}, "expected a path, a tab or a space, and a class; found '" + line +
                                        "'; a table with commas is for kind = \"image_table\"");
  ListedImage image{trimmed(line.substr(0, end)), line.substr(end + 1)};
  if (image.class_name.starts_with('-') && number_in(image.class_name.substr(1)))
    throw UserError({list, number},
                    "class " + image.class_name + "; classes are names, or numbers from 0 on");
  return image;
}

bool is_decimal(const std::string& text) {
  char* end = nullptr;
  std::strtod(text.c_str(), &end);
  return !text.empty() && *end == '\0';
}

// The classes of a list, sorted; empty if all are whole numbers.
std::vector<std::string> classes_in(const std::string& list) {
  std::set<std::string> names;
  bool are_numbers = true, are_decimals = true;
  std::pair<int, std::string> decimal;  // the first, with its line
  on_lines(list, [&](int number, const std::string& line) {
    const std::string name = listed(list, number, line).class_name;
    const bool is_number = number_in(name).has_value();
    are_numbers = are_numbers && is_number;
    are_decimals = are_decimals && is_decimal(name);
    if (!is_number && decimal.first == 0) decimal = {number, name};
    names.insert(name);
  });
  if (are_decimals && !are_numbers)
    throw UserError({list, decimal.first},
                    "class " + decimal.second +
                        "; classes are names, or whole numbers from 0 on: kind = \"image_table\" reads "
                        "numbers to predict (docs/data.md)");
  return are_numbers ? std::vector<std::string>() : std::vector(names.begin(), names.end());
}

void add_list(FolderSource& source, const ImageFolderOptions& options, const ClassTable& classes) {
  on_lines(options.list, [&](int number, const std::string& line) {
    const auto [path, name] = listed(options.list, number, line);
    try {
      source.add(path, classes.number(name));
    } catch (const UserError& error) {
      throw UserError({options.list, number}, error.message());
    }
  });
}

LeftOutFiles add_folder(FolderSource& source, const std::string& root, const std::string& folder,
                        int64_t target) {
  const int64_t before = source.size();
  const LeftOutFiles others =
      for_each_image(root, folder, [&](const std::string& path) { source.add(path, target); });
  if (source.size() == before) throw UserError({root + '/' + folder}, no_image_text(others));
  return others;
}

void add_folders(FolderSource& source, const ImageFolderOptions& options, const ClassTable& classes) {
  LeftOutFiles others;
  for (const std::string& folder : class_folders(options.path)) {
    try {
      others.add(add_folder(source, options.path, folder, classes.number_of_name(folder)));
    } catch (const UserError& error) {
      throw error.position().file.empty() ? UserError({options.path + '/' + folder}, error.message()) : error;
    }
  }
  for (const std::string& image : entries_of_folder(options.path).images) others.add(image);
  if (!others.empty()) source.set_advice(options.path + ": " + others.text());
}

}  // namespace

std::vector<std::string> given_classes(const ImageFileOptions& options) {
  if (options.classes_from.empty()) return options.classes;
  struct stat facts {};
  if (stat(options.classes_from.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode))
    return class_folders(options.classes_from);
  std::vector<std::string> names;
  on_lines(options.classes_from, [&](int, const std::string& line) { names.push_back(line); });
  return names;
}

ClassTable::ClassTable(std::vector<std::string> names) : names_(std::move(names)) {
  for (const std::string& name : names_)
    if (!numbers_.emplace(name, std::ssize(numbers_)).second)
      throw UserError("two classes have the name '" + name + "'");
}

int64_t ClassTable::number_of_name(const std::string& name) const {
  if (const auto number = numbers_.find(name); number != numbers_.end()) return number->second;
  const std::string nearest = nearest_name(name, names_);
  throw UserError("'" + name + "' is no class" + (nearest.empty() ? "" : "; did you mean " + nearest + "?"));
}

int64_t ClassTable::number(const std::string& name) const {
  const auto number = number_in(name);
  if (!number || numbers_.contains(name)) return number_of_name(name);
  if (!names_.empty() && *number >= std::ssize(names_))
    throw UserError("class " + name + " is not in [0, " + std::to_string(names_.size()) + ")");
  if (*number >= kMaxInferredClasses) throw UserError(name + " is not a class");
  return *number;
}

int64_t least_classes(const ImageSource& images, const ClassTable& classes, const ImageFileOptions& options) {
  if (options.num_classes == 0 || images.classes() <= options.num_classes)
    return std::max<int64_t>(std::ssize(classes.names()), options.num_classes);
  throw UserError({options.path}, "has a class " + std::to_string(images.classes() - 1) +
                                      ", which is not in [0, " + std::to_string(options.num_classes) + ")");
}

std::vector<std::string> class_folders(const std::string& path) {
  std::vector<std::string> folders = entries_of_folder(path).folders;
  if (folders.empty())
    throw UserError({path}, "has no folders, which would be the classes; of files in a list give list");
  return folders;
}

std::vector<std::string> image_folder_classes(const ImageFolderOptions& options) {
  if (std::vector<std::string> given = given_classes(options); !given.empty()) return given;
  if (!options.masks.empty()) return {};
  return options.list.empty() ? class_folders(options.path) : classes_in(options.list);
}

ImageSourcePtr open_image_folder(const ImageFolderOptions& options) {
  const ClassTable classes(image_folder_classes(options));
  const auto source = std::make_shared<FolderSource>(options.path);
  if (options.list.empty())
    add_folders(*source, options, classes);
  else
    add_list(*source, options, classes);
  if (source->size() == 0) throw UserError({options.list}, "names no image");
  source->set_classes(least_classes(*source, classes, options), classes.names().empty());
  return source;
}

ImageSourcePtr open_pictures(const ImageFolderOptions& options) {
  const std::filesystem::path path(options.path);
  if (!std::filesystem::is_directory(path)) {
    if (!is_image_name(options.path) || !std::filesystem::exists(path))
      throw UserError({options.path}, std::filesystem::exists(path)
                                          ? "expected a folder of pictures, or a picture"
                                          : "there is no such folder or picture");
    PictureFiles picture(path.parent_path());
    picture.add(path.filename());
    return std::make_shared<PictureSource>(std::move(picture));
  }
  PictureFiles files(options.path);
  const LeftOutFiles others =
      for_each_image(options.path, "", [&](const std::string& name) { files.add(name.substr(1)); });
  if (files.size() == 0) throw UserError({options.path}, no_image_text(others));
  const auto source = std::make_shared<PictureSource>(std::move(files));
  if (!others.empty()) source->set_advice(options.path + ": " + others.text());
  return source;
}

}  // namespace tutti
