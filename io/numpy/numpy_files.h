#pragma once

#include <optional>
#include <string>
#include <vector>

#include "io/formats/zip_file.h"
#include "io/numpy/npy.h"

namespace tutti {

// True for a name that ends in .npz, and for a folder that has .npy files.
bool is_numpy(const std::string& path);

// The arrays of an .npz archive, or of a folder of .npy files, by their names. Free of libtorch.
class NumpyFiles {
 public:
  using Content = ZipFile::Content;  // bytes of a .npy file, and what keeps them

  // Throws UserError with the file.
  explicit NumpyFiles(const std::string& path);

  const std::string& path() const { return path_; }
  // As stored in an archive, sorted in a folder.
  const std::vector<std::string>& names() const { return names_; }
  // The archive, or the array's own file.
  std::string file_of(const std::string& name) const;
  NpyHeader header(const std::string& name) const;
  // Throws UserError, too, if a member of an archive is much longer than its array.
  Content read(const std::string& name) const;

 private:
  const ZipFile::Member& member(const std::string& name) const;

  std::string path_;
  std::optional<ZipFile> archive_;
  std::vector<std::string> names_;
};

}  // namespace tutti
