#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "data/dataset.h"
#include "data/readers/image_files.h"
#include "data/readers/options.h"

namespace tutti {

// The names of the classes that the options give: `classes`, or the content of `classes_from`. Empty: no
// names are given. Throws UserError with the file.
std::vector<std::string> given_classes(const ImageFileOptions& options);

// Finds classes by their names, or by their numbers.
class ClassTable {
 public:
  explicit ClassTable(std::vector<std::string> names);

  const std::vector<std::string>& names() const { return names_; }
  // Throws UserError, without a file, if there is no class of this name or number.
  int64_t number(const std::string& name) const;
  // The same for names alone.
  int64_t number_of_name(const std::string& name) const;

 private:
  std::vector<std::string> names_;
  std::unordered_map<std::string, int64_t> numbers_;
};

// Classes that the data have beside the images' classes: as many as have names, or num_classes. Throws
// UserError if a class of the images is not below num_classes.
int64_t least_classes(const ImageSource& images, const ClassTable& classes, const ImageFileOptions& options);

// The folders in a folder, sorted by name; without hidden folders. Throws UserError.
std::vector<std::string> class_folders(const std::string& path);

// The names of the classes of an image folder, in the order of their numbers; empty for numbers as names.
std::vector<std::string> image_folder_classes(const ImageFolderOptions& options);

// The image files of a folder of class folders, or of a list; sorted, or in the order of the list. Files are
// opened only to be read. Throws UserError with the file.
ImageSourcePtr open_image_folder(const ImageFolderOptions& options);

// The image files of a folder and of all folders below, or a single file, without targets. Throws UserError
// with the file.
ImageSourcePtr open_pictures(const ImageFolderOptions& options);

}  // namespace tutti
