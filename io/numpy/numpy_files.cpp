#include "io/numpy/numpy_files.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string_view>

#include "runtime/error.h"
#include "runtime/text.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kNpyEnding = ".npy";

}  // namespace

bool is_numpy(const std::string& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return lower_case(fs::path(path).extension().string()) == ".npz";
  return std::ranges::any_of(fs::directory_iterator(path, ignored),
                             [](const auto& entry) { return entry.path().extension() == kNpyEnding; });
}

NumpyFiles::NumpyFiles(const std::string& path) : path_(path) {
  if (fs::is_directory(path)) {
    for (const auto& entry : fs::directory_iterator(path))
      if (entry.path().extension() == kNpyEnding) names_.push_back(entry.path().stem().string());
    std::ranges::sort(names_);
    return;
  }
  if (is_npy(MappedFile(path).bytes()))
    throw UserError({path}, "a single array (.npy): path is an .npz file, or a folder of .npy files");
  archive_.emplace(path);
  for (const ZipFile::Member& member : archive_->members())
    if (member.name.ends_with(kNpyEnding))
      names_.push_back(member.name.substr(0, member.name.size() - kNpyEnding.size()));
}

std::string NumpyFiles::file_of(const std::string& name) const {
  return archive_ ? path_ : (fs::path(path_) / (name + std::string(kNpyEnding))).string();
}

NpyHeader NumpyFiles::header(const std::string& name) const {
  const std::string place = path_ + ": array '" + name + "'";
  return archive_ ? read_npy_header(*archive_, member(name), place)
                  : read_npy_header(MappedFile(file_of(name)).bytes(), place);
}

NumpyFiles::Content NumpyFiles::read(const std::string& name) const {
  if (!archive_) {
    const auto file = std::make_shared<const MappedFile>(file_of(name));
    return {file, file->bytes()};
  }
  header(name);
  return archive_->read(member(name));
}

const ZipFile::Member& NumpyFiles::member(const std::string& name) const {
  return *std::ranges::find(archive_->members(), name + std::string(kNpyEnding), &ZipFile::Member::name);
}

}  // namespace tutti
